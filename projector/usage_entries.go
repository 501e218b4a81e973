package projector

import (
	"fmt"
	"iter"
	"strings"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
)

// UsageEntry is one use of something.
type UsageEntry struct {
	ID        string           `json:"id"` // usage-{sequence of its record}
	Sequence  uint64           `json:"sequence"`
	SessionID string           `json:"sessionId"`
	RunID     string           `json:"runId"`
	Timestamp int64            `json:"timestamp"` // ms since the epoch
	StepCount int              `json:"stepCount"` // the step within the turn
	Source    fact.UsageSource `json:"source"`
	// SourceName is the agent, or the tool.
	SourceName string    `json:"sourceName"`
	Kind       UsageKind `json:"kind"`

	Model  string           `json:"model,omitempty"`  // tokens
	Tokens *fact.TokenUsage `json:"tokens,omitempty"` // tokens

	CallID  string `json:"toolCallId,omitempty"` // tool, subagent
	Success *bool  `json:"success,omitempty"`    // tool, subagent

	SourceType string   `json:"sourceType,omitempty"` // custom
	Amount     *float64 `json:"amount,omitempty"`     // custom
}

// UsageKind says what an entry counts.
type UsageKind string

// Kinds of usage entries.
const (
	UsageTokens   UsageKind = "tokens"
	UsageTool     UsageKind = "tool"
	UsageSubAgent UsageKind = "subagent"
	UsageCustom   UsageKind = "custom"
)

// subAgentPrefix begins the names of tools that are sub-agents.
const subAgentPrefix = "subagent__"

// UsageEntries yields the usage in a session's records, which start at its first one, in
// their order; an error comes last. The sums of the fold are those of the entries: a
// record that the fold parks yields none.
func UsageEntries(records iter.Seq2[eventlog.Record, error]) iter.Seq2[UsageEntry, error] {
	return func(yield func(UsageEntry, error) bool) {
		t := new(Tree)
		for r, err := range records {
			if err != nil {
				yield(UsageEntry{}, err)
				return
			}
			parked, head := len(t.Parked), t.Head
			Apply(t, r)
			if len(t.Parked) > parked || t.Head == head {
				continue
			}
			if e, ok := t.usageEntry(r); ok && !yield(e, nil) {
				return
			}
		}
	}
}

// usageEntry returns the usage of the record that was applied last.
func (t *Tree) usageEntry(r eventlog.Record) (e UsageEntry, ok bool) {
	if r.Kind != eventlog.KindFact {
		return e, false
	}
	switch r.Type {
	case (*fact.ModelTurn)(nil).Type(), (*fact.ToolResult)(nil).Type(), (*fact.UsageRecorded)(nil).Type():
	default:
		return e, false
	}
	f, err := r.Fact()
	s := t.Get(r.Agent)
	if err != nil || s == nil {
		return e, false
	}
	e = UsageEntry{
		ID: fmt.Sprintf("usage-%d", r.Sequence), Sequence: r.Sequence, SessionID: s.SessionID, Timestamp: f.At(),
	}
	switch f := f.(type) {
	case *fact.ModelTurn:
		e.Source, e.SourceName, e.Kind = fact.UsageAgent, s.AgentType, UsageTokens
		e.RunID, e.StepCount, e.Model, e.Tokens = f.RunID, f.Step, modelOf(f), &f.Usage
	case *fact.ToolResult:
		e.Source, e.SourceName, e.Kind = fact.UsageTool, f.ToolName, UsageTool
		if strings.HasPrefix(f.ToolName, subAgentPrefix) {
			e.Source, e.Kind = fact.UsageSubAgent, UsageSubAgent
		}
		success := f.Error == ""
		e.RunID, e.CallID, e.Success, e.StepCount = f.RunID, f.ToolCallID, &success, s.Turn.Step.Number
	case *fact.UsageRecorded:
		e.Source, e.SourceName, e.Kind = f.Source, f.SourceName, UsageCustom
		e.RunID, e.StepCount, e.SourceType, e.Amount = f.RunID, f.StepCount, f.SourceType, &f.Amount
	}
	return e, true
}
