package projector

import (
	"maps"
	"math"

	"github.com/helixd/helixd/eventlog/fact"
)

// Usage is what a session has used, without its sub-agents. A rollback keeps it, since
// the usage did happen. A fork begins at zero.
type Usage struct {
	Totals
	// Runs is the usage by run.
	Runs map[string]Totals `json:"runs,omitempty"`
}

// Totals are sums. Failed model calls have no usage and don't count.
type Totals struct {
	Tokens     fact.TokenUsage `json:"tokens"`
	ModelCalls int             `json:"modelCalls"`
	ToolStats  ToolStats       `json:"toolStats"`
	// Models is the tokens by model, as the provider names it.
	Models map[string]ModelUsage `json:"models,omitempty"`
	// Tools is the calls by tool, sub-agents' tools among them.
	Tools map[string]ToolStats `json:"tools,omitempty"`
	// Recorded sums the amounts of usage_recorded facts, by source type and
	// source name.
	Recorded map[string]map[string]Amount `json:"recorded,omitempty"`
}

// ToolStats counts tool calls.
type ToolStats struct {
	TotalCalls  int `json:"totalCalls"`
	FailedCalls int `json:"failedCalls"`
}

// ModelUsage is what one model was used for.
type ModelUsage struct {
	Calls  int             `json:"calls"`
	Tokens fact.TokenUsage `json:"tokens"`
}

// Amount sums usage_recorded facts of one source.
type Amount struct {
	Count int     `json:"count"`
	Sum   float64 `json:"sum"`
}

// UnknownModel is the name of a model whose adapter gives none.
const UnknownModel = "unknown"

// use adds to the sums of the session and of one of its runs.
func (s *Session) use(run string, add func(*Totals)) {
	add(&s.Usage.Totals)
	if run == "" {
		return
	}
	sums := s.Usage.Runs[run]
	add(&sums)
	put(&s.Usage.Runs, run, sums)
}

func (t *Totals) modelTurn(f *fact.ModelTurn) {
	t.ModelCalls++
	t.Tokens = t.Tokens.Plus(f.Usage)
	m := t.Models[modelOf(f)]
	m.Calls++
	m.Tokens = m.Tokens.Plus(f.Usage)
	t.Models = with(t.Models, modelOf(f), m)
}

func modelOf(f *fact.ModelTurn) string {
	if f.Model == "" {
		return UnknownModel
	}
	return f.Model
}

func (t *Totals) toolResult(tool string, failed bool) {
	one := ToolStats{TotalCalls: 1}
	if failed {
		one.FailedCalls = 1
	}
	t.ToolStats = t.ToolStats.plus(one)
	t.Tools = with(t.Tools, tool, t.Tools[tool].plus(one))
}

func (t *Totals) recorded(f *fact.UsageRecorded) {
	names := t.Recorded[f.SourceType]
	names = with(names, f.SourceName, names[f.SourceName].plus(Amount{Count: 1, Sum: f.Amount}))
	t.Recorded = with(t.Recorded, f.SourceType, names)
}

func (t *Totals) add(typ, name string, more Amount) {
	names := t.Recorded[typ]
	put(&names, name, names[name].plus(more))
	put(&t.Recorded, typ, names)
}

// Plus adds other sums to t, which must not share maps with them.
func (t *Totals) Plus(o Totals) {
	t.Tokens = t.Tokens.Plus(o.Tokens)
	t.ModelCalls += o.ModelCalls
	t.ToolStats = t.ToolStats.plus(o.ToolStats)
	for name, m := range o.Models {
		mine := t.Models[name]
		put(&t.Models, name, ModelUsage{Calls: mine.Calls + m.Calls, Tokens: mine.Tokens.Plus(m.Tokens)})
	}
	for name, stats := range o.Tools {
		put(&t.Tools, name, t.Tools[name].plus(stats))
	}
	for typ, names := range o.Recorded {
		for name, a := range names {
			t.add(typ, name, a)
		}
	}
}

func (s ToolStats) plus(o ToolStats) ToolStats {
	return ToolStats{TotalCalls: s.TotalCalls + o.TotalCalls, FailedCalls: s.FailedCalls + o.FailedCalls}
}

// plus leaves a sum unchanged if JSON could not represent the result: the fold is total.
func (a Amount) plus(o Amount) Amount {
	sum := a.Sum + o.Sum
	if math.IsInf(sum, 0) || math.IsNaN(sum) {
		sum = a.Sum
	}
	return Amount{Count: a.Count + o.Count, Sum: sum}
}

// with returns a copy of m with a value; clones of the state may share m.
func with[K comparable, V any](m map[K]V, k K, v V) map[K]V {
	m = maps.Clone(m)
	put(&m, k, v)
	return m
}

func put[K comparable, V any](m *map[K]V, k K, v V) {
	if *m == nil {
		*m = map[K]V{}
	}
	(*m)[k] = v
}

// Rollup is what a session and its sub-agents have used together.
type Rollup struct {
	SessionID string `json:"sessionId"`
	Totals
	// Waits is how long calls have waited for a person, by tool.
	Waits map[string]Wait `json:"waits,omitempty"`
	// Runs are the runs of the session itself and of its sub-agents that
	// have used something, the session's first, in the order in which they
	// began.
	Runs []RunUsage `json:"runs,omitempty"`
	// SubAgents are the sessions below this one, each with its own usage alone.
	SubAgents []SubAgentUsage `json:"subAgents,omitempty"`
}

// Wait is how long calls of a tool have waited.
type Wait struct {
	Calls   int     `json:"calls"`
	TotalMs float64 `json:"totalMs"`
}

// RunUsage is what one run has used.
type RunUsage struct {
	SessionID string `json:"sessionId"`
	RunID     string `json:"runId"`
	Totals
}

// SubAgentUsage is what one sub-agent's session has used, without its own
// sub-agents.
type SubAgentUsage struct {
	SessionID       string `json:"sessionId"`
	ParentSessionID string `json:"parentSessionId"`
	AgentType       string `json:"agentType"`
	CallID          string `json:"callId,omitempty"`
	Totals
}

// RollUp sums the usage of a session of the tree and of all sessions below it, also of
// those that a rollback has removed. If the session does not exist, it returns the zero
// Rollup.
func (t *Tree) RollUp(id string) Rollup {
	s := t.Get(id)
	if s == nil {
		return Rollup{}
	}
	sum := Rollup{SessionID: id}
	sum.take(s)
	for _, child := range t.Sessions() {
		if child == s || child.Child == nil || !t.below(child, id) {
			continue
		}
		sum.take(child)
		sum.SubAgents = append(sum.SubAgents, SubAgentUsage{
			SessionID: child.SessionID, ParentSessionID: child.Child.ParentSessionID, AgentType: child.AgentType,
			CallID: child.Child.CallID, Totals: child.Usage.clone(),
		})
	}
	for tool, a := range sum.Recorded[fact.ClientToolWait] {
		put(&sum.Waits, tool, Wait{Calls: a.Count, TotalMs: a.Sum})
	}
	return sum
}

func (u *Rollup) take(s *Session) {
	u.Plus(s.Usage.Totals)
	for _, run := range s.Runs {
		if used, ok := s.Usage.Runs[run.RunID]; ok {
			u.Runs = append(u.Runs, RunUsage{SessionID: s.SessionID, RunID: run.RunID, Totals: used.clone()})
		}
	}
}

// below reports whether a session descends from another one.
func (t *Tree) below(s *Session, ancestor string) bool {
	for range len(t.Children) + 1 { // a damaged state may have a circle
		if s == nil || s.Child == nil {
			return false
		}
		if s.Child.ParentSessionID == ancestor {
			return true
		}
		s = t.Get(s.Child.ParentSessionID)
	}
	return false
}

// clone copies the sums, so that the fold can continue.
func (t Totals) clone() Totals {
	t.Models, t.Tools = maps.Clone(t.Models), maps.Clone(t.Tools)
	recorded := t.Recorded
	t.Recorded = maps.Clone(recorded)
	for typ, names := range recorded {
		t.Recorded[typ] = maps.Clone(names)
	}
	return t
}
