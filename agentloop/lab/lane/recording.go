package lane

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/conversation"
	"github.com/helixd/helixd/agentloop/internal/decide"
	"github.com/helixd/helixd/agentloop/lab/result"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
)

// Recording is what the records of a session say.
type Recording struct {
	ID      string
	Lane    result.Lane
	Created fact.SessionCreated // of the root
	// Begun are the records of a fork before its first input: its first state is not made of inputs.
	Begun  []eventlog.Record
	Inputs []Input // in their order
	Found  []Found // the recorded answers, in their order
	// Stopped: a person stopped the last run. What the agents would have decided then is not known.
	Stopped bool
	// Unfit says why agents can't be driven with the session's inputs; empty: they can.
	Unfit string
}

// Input is a request of a user's that began a run of the root's.
type Input struct {
	Messages []agentloop.Input
	Options  fact.RunOptions
}

// Found is a recorded answer to something that an agent asked for. One of the pointers is set.
type Found struct {
	Agent   string // its type
	Session string // its own, a sub-agent's is not the root's
	// Key is that of a conversation, or of a call: see CallKey.
	Key    string
	CallID string // of a call
	Turn   *Turn
	Result *Result
	Recall *fact.MemoryRecalled
	Answer *fact.ResultSubmitted
}

// Turn is a model's answer, or why it gave none.
type Turn struct {
	Answer *fact.ModelTurn
	Failed *fact.ModelFailed
	// Latency is the time from the beginning of the step to the answer.
	Latency time.Duration
}

// Result is a call's.
type Result struct {
	fact.ToolResult
	Patches []*eventlog.StatePatch // of the custom state, by the call
}

// CallKey names a call of an agent's: the same tool with the same arguments.
func CallKey(tool string, arguments json.RawMessage) string {
	return tool + " " + string(Arguments(arguments))
}

// Asked returns what is known of a model request: parts beside the messages, false if the agent did
// not make it. A nil function: nothing is known.
type Asked func(agentType, key string) (parts map[string]string, ok bool)

// Unrecorded is the code of model requests, and begins the error of calls, that had no recorded
// answer. A lane ends with them.
const Unrecorded = "lab_unrecorded"

// Read reads the records of a session, all from the first one on.
func Read(id string, records []eventlog.Record, known Asked) *Recording {
	r := &reader{
		rec: Recording{ID: id}, known: known, agents: map[string]*agent{}, tree: new(projector.Tree),
		messages: map[string][]agentloop.Input{}, patches: map[string][]*eventlog.StatePatch{},
		began: map[string]time.Time{},
	}
	decoded, whole := make([]projector.Decoded, len(records)), new(projector.Tree)
	for i, record := range records {
		decoded[i] = projector.Decode(record)
		projector.ApplyDecoded(whole, record, decoded[i])
	}
	r.dead = whole.Dead
	for i, record := range records {
		r.see(record, decoded[i])
		if r.forked && len(r.rec.Begun) == 0 && r.waiting != "" {
			r.rec.Begun = records[:i]
		}
	}
	r.finish()
	return &r.rec
}

type reader struct {
	rec      Recording
	known    Asked
	tree     *projector.Tree
	dead     eventlog.Truncations
	agents   map[string]*agent
	messages map[string][]agentloop.Input // of a run that is requested, by its id
	patches  map[string][]*eventlog.StatePatch
	began    map[string]time.Time // of a step and its agent: when it asked the model
	refused  []string             // calls, in any order: those of a step end as they like
	waiting  string               // the run of messages whose request was taken back
	forked   bool
	keys     Keys
	aborted  bool // the root's run: what ends then was not decided by an agent
}

// agent is one session of the tree.
type agent struct {
	id, typ string
	child   bool // an ephemeral one: its place is at the call
	items   []item
	calls   map[string]*call
	cut     bool // an unrecorded answer has ended it
	failed  *fact.ModelFailed
	request *result.Decision
}

type item struct {
	decision result.Decision
	call     *call // in place of a decision
}

type call struct {
	fact.ToolCall
	sequence  uint64
	child     string
	approval  *result.Decision
	allowed   *bool
	result    *result.Decision
	suspended fact.PendingKind
}

func (r *reader) agent(id string) *agent {
	a := r.agents[id]
	if a == nil {
		a = &agent{id: id, calls: map[string]*call{}}
		r.agents[id] = a
	}
	return a
}

func (r *reader) path(id string) string {
	if id == r.rec.ID {
		return ""
	}
	return id
}

func (r *reader) decision(kind result.Kind, a *agent, name string, content any, at uint64) result.Decision {
	raw, _ := eventlog.Marshal(content) // of values that were JSON
	d := result.NewDecision(kind, r.path(a.id), name, raw)
	d.Sequence = at
	return d
}

func (r *reader) see(record eventlog.Record, d projector.Decoded) {
	switch {
	case d.Err != nil || r.dead.Covers(record):
	case d.Fact != nil:
		r.fact(record, d.Fact)
	case d.Chunk != nil:
		switch c := d.Chunk.(type) {
		case *eventlog.StatePatch:
			if record.Call != "" {
				r.patches[record.Call] = append(r.patches[record.Call], c)
			}
		case *eventlog.StepStart:
			if c.StepID != nil {
				r.began[*c.StepID+" "+record.Agent] = record.Time
			}
		}
	}
	projector.ApplyDecoded(r.tree, record, d)
	if f, is := d.Fact.(*fact.SessionForked); is {
		r.fork(f)
	}
}

// fork knows the agents of the other session.
func (r *reader) fork(f *fact.SessionForked) {
	r.forked = true
	r.rec.Created = fact.SessionCreated{AgentType: r.tree.AgentType, Base: f.Base}
	for _, s := range r.tree.Sessions() {
		a := r.agent(s.SessionID)
		a.typ, a.child = s.AgentType, s.Child != nil && s.Child.Mode == fact.SubSessionEphemeral
	}
}

func (r *reader) fact(record eventlog.Record, f fact.Fact) {
	if _, begins := f.(*fact.RunRequested); r.aborted && !begins {
		return
	}
	a := r.agent(record.Agent)
	root := record.Agent == r.rec.ID
	switch f := f.(type) {
	case *fact.SessionCreated:
		a.typ = f.AgentType
		if root {
			r.rec.Created = *f
		} else if f.Child != nil {
			a.child = f.Child.Mode == fact.SubSessionEphemeral
			if parent := r.agent(f.Child.ParentSessionID); a.child && parent.calls[f.Child.CallID] != nil {
				parent.calls[f.Child.CallID].child = a.id
			}
		}
	case *fact.UserMessage:
		if root && record.Run != "" && !decide.OwnMessage(f.Metadata) {
			r.messages[record.Run] = append(r.messages[record.Run], agentloop.Input{Content: f.Content, Files: f.Files, Metadata: f.Metadata})
			r.waiting = record.Run
		}
	case *fact.MessageAdded:
		if root {
			r.messages[record.Run] = append(r.messages[record.Run], agentloop.Input{Added: f})
		}
	case *fact.RunRequested:
		if root {
			if r.rec.Stopped && len(r.messages[f.RunID]) > 0 {
				r.unfit("a run was stopped, and a message continued the session")
			}
			r.rec.Stopped, r.aborted = false, false
			run := f.RunID
			if len(r.messages[run]) == 0 { // it does again what a run has done that was taken back
				run = r.waiting
			}
			if messages := r.messages[run]; len(messages) > 0 {
				r.rec.Inputs = append(r.rec.Inputs, Input{messages, f.RunOptions})
			}
			delete(r.messages, run)
			r.waiting = ""
			a.typ = cmp.Or(a.typ, f.AgentType)
			r.rec.Created.AgentType = cmp.Or(r.rec.Created.AgentType, f.AgentType)
		}
	case *fact.InterruptRequested:
		if root && f.Code == "" {
			r.rec.Stopped, r.aborted = true, f.Kind == fact.StopAbort
		}
	case *fact.MemoryRecalled:
		if why, unknown := strings.CutPrefix(f.Error, Unrecorded+": "); unknown {
			r.end(a, why)
			return
		}
		var memories []string
		for _, m := range f.Memories {
			memories = append(memories, m.Content)
		}
		r.add(a, r.decision(result.Memory, a, "recall", struct {
			Query    string   `json:"query"`
			Memories []string `json:"memories"`
			Error    string   `json:"error,omitempty"`
		}{f.Query, memories, f.Error}, record.Sequence))
		r.rec.Found = append(r.rec.Found, Found{Agent: a.typ, Session: a.id, Key: f.Query, Recall: f})
	case *fact.ModelFailed:
		a.failed = f
		a.request = r.request(a, record.Sequence)
	case *fact.ModelTurn:
		r.turn(record, a, f)
	case *fact.CallSuspended:
		if c := a.calls[f.ToolCallID]; c != nil {
			c.suspended = f.Kind
			if f.Kind == fact.PendingApproval {
				d := r.decision(result.Approval, a, c.Name, nil, record.Sequence)
				c.approval = &d
			}
		}
	case *fact.ResultSubmitted:
		r.answered(record, f)
	case *fact.ToolResult:
		r.result(record, a, f)
	case *fact.RunEnded:
		r.ended(record, a, f)
	}
}

func (r *reader) unfit(why string) { r.rec.Unfit = cmp.Or(r.rec.Unfit, why) }

func (r *reader) add(a *agent, d result.Decision) {
	if !a.cut {
		a.items = append(a.items, item{decision: d})
	}
}

// request is the model request that the agent makes in the present state.
func (r *reader) request(a *agent, at uint64) *result.Decision {
	s := r.tree.Get(a.id)
	if s == nil {
		return nil
	}
	messages := conversation.ForModel(s.Messages)
	key := r.keys.Of(messages)
	parts := map[string]string{result.PartMessages: key, result.PartMemory: hashOf(s.RecalledIDs())}
	if r.known != nil {
		more, ok := r.known(a.typ, key)
		if !ok && at == 0 {
			return nil // it was not made yet
		}
		for name, hash := range more {
			parts[name] = hash
		}
	}
	d := r.decision(result.ModelRequest, a, "", parts, at)
	d.Parts = parts
	return &d
}

func (r *reader) turn(record eventlog.Record, a *agent, f *fact.ModelTurn) {
	a.failed = nil
	var took time.Duration
	if at, ok := r.began[f.StepID+" "+a.id]; ok {
		took = max(0, record.Time.Sub(at))
	}
	if d := r.request(a, record.Sequence); d != nil {
		r.add(a, *d)
		r.rec.Found = append(r.rec.Found, Found{Agent: a.typ, Session: a.id, Key: d.Parts[result.PartMessages], Turn: &Turn{Answer: f, Latency: took}})
	}
	if a.cut {
		return
	}
	r.add(a, r.decision(result.ModelAnswer, a, "", partsOf(f.Parts), record.Sequence))
	for _, p := range f.Parts {
		if p.ToolCall != nil {
			c := &call{ToolCall: *p.ToolCall, sequence: record.Sequence}
			a.calls[p.ToolCall.ID] = c
			a.items = append(a.items, item{call: c})
		}
	}
	l := &r.rec.Lane
	l.Steps++
	l.Tokens.Input += f.Usage.Prompt
	l.Tokens.Output += f.Usage.Completion
	l.Tokens.Cached += f.Usage.Cached
	l.Tokens.Reasoning += f.Usage.Reasoning
	l.Latency += took
}

// answered notes what a client or a person answered.
func (r *reader) answered(record eventlog.Record, f *fact.ResultSubmitted) {
	a := r.agent(record.Agent)
	c := a.calls[f.ToolCallID]
	if c == nil || f.Kind == fact.SubmitAbandoned {
		return
	}
	if c.suspended == fact.PendingApproval && c.approval != nil {
		c.allowed = &f.Approved
	}
	r.rec.Found = append(r.rec.Found, Found{Agent: a.typ, Session: a.id, Key: CallKey(c.Name, c.Arguments), CallID: c.ID, Answer: f})
}

// executed are the codes of calls that failed while they were executed.
var executed = []string{agentloop.CodeToolFailed, agentloop.CodeToolTimeout, agentloop.CodeToolOutput}

func (r *reader) result(record eventlog.Record, a *agent, f *fact.ToolResult) {
	c := a.calls[f.ToolCallID]
	if c == nil {
		return
	}
	if f.ErrorCode == Unrecorded || strings.HasPrefix(f.Error, Unrecorded) {
		r.refused = append(r.refused, c.Name+": "+strings.TrimPrefix(strings.TrimPrefix(f.Error, Unrecorded), ": "))
		a.cut = true
		return
	}
	code := f.ErrorCode
	if slices.Contains(executed, code) {
		code = "" // the words say why
	}
	var content any = f.Result
	if f.Error != "" {
		content = struct {
			Error string `json:"error"`
			Code  string `json:"code,omitempty"`
		}{f.Error, code}
	}
	d := r.decision(result.ToolResult, a, nameOf(c.Name), content, record.Sequence)
	c.result = &d
	r.rec.Found = append(r.rec.Found, Found{
		Agent: a.typ, Session: a.id, Key: CallKey(c.Name, c.Arguments), CallID: c.ID, Result: &Result{*f, r.patches[c.ID]},
	})
}

// end ends the lane of an agent: what follows was not recorded.
func (r *reader) end(a *agent, why string) {
	a.cut = true
	r.rec.Lane.Unjudged = cmp.Or(r.rec.Lane.Unjudged, why)
}

func (r *reader) ended(record eventlog.Record, a *agent, f *fact.RunEnded) {
	if f.Status == fact.RunFailed && f.ErrorCode == Unrecorded {
		if a.request != nil {
			r.add(a, *a.request)
		}
		r.end(a, f.Error)
		return
	}
	switch f.Status {
	case fact.RunCompleted:
		r.add(a, r.decision(result.Output, a, "", f.Output, record.Sequence))
	case fact.RunFailed:
		if a.failed != nil && a.request != nil {
			r.add(a, *a.request)
			r.rec.Found = append(r.rec.Found, Found{Agent: a.typ, Session: a.id, Key: a.request.Parts[result.PartMessages], Turn: &Turn{Failed: a.failed}})
		}
		r.add(a, r.decision(result.Error, a, f.ErrorCode, f.Error, record.Sequence))
	}
}

// nameOf is a tool's name, or that of the agent that it calls.
func nameOf(tool string) string { return strings.TrimPrefix(tool, agentloop.SubAgentPrefix) }
