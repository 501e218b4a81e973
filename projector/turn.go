package projector

import (
	"encoding/json"
	"iter"
	"slices"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
)

// Turn is a turn that has not ended.
type Turn struct {
	Number int    `json:"number"`
	RunID  string `json:"runId"` // the run that drives it now
	// Before is the head before the first record of the turn's assistant
	// message, nil while there is none.
	Before    *uint64 `json:"before,omitempty"`
	Reminders int     `json:"reminders,omitempty"`
	// Recalled: memories were looked up for the turn, even if there were none.
	Recalled bool  `json:"recalled,omitempty"`
	Step     *Step `json:"step,omitempty"` // the open or the last step
	// Retryable is the retryable member of the turn's last error.
	Retryable bool `json:"retryable,omitempty"`
	// Instructions and Tools are those of the run that drives the turn now.
	Instructions string            `json:"instructions,omitempty"`
	Tools        []fact.ClientTool `json:"tools,omitempty"`
	// Stop is the request to stop the run that drives the turn now.
	Stop *Stop `json:"stop,omitempty"`
}

// Stop is a request to stop a run.
type Stop struct {
	Kind     fact.StopKind `json:"kind"`
	Reason   string        `json:"reason,omitempty"`
	Code     string        `json:"code,omitempty"`
	ByParent bool          `json:"byParent,omitempty"`
	// Heard is set when the holder of the tree has acknowledged the request: it is alive.
	Heard bool `json:"heard,omitempty"`
}

// Step is one model call and the tool calls that it asked for.
type Step struct {
	ID     string `json:"id"`
	Number int    `json:"number"`

	// Until the model's turn is recorded:
	Attempts int           `json:"attempts,omitempty"` // failed model calls
	Failure  *ModelFailure `json:"failure,omitempty"`  // the last one
	Partial  []PartialPart `json:"partial,omitempty"`  // the text streamed so far
	Streamed *Span         `json:"streamed,omitempty"` // the range of its records
	// RunID is the run whose model call streams, or streamed last.
	RunID string `json:"runId,omitempty"`
	// Discarded: a step_discarded has ended that model call. The next one begins the step
	// again.
	Discarded bool `json:"discarded,omitempty"`

	// From then on:
	Recorded   bool            `json:"recorded,omitempty"`
	StopReason fact.StopReason `json:"stopReason,omitempty"`
	Usage      fact.TokenUsage `json:"usage"`
	Message    int             `json:"message,omitempty"` // index of the assistant's message
	Calls      []Call          `json:"calls,omitempty"`

	Committed bool `json:"committed,omitempty"`
}

// ModelFailure is a model call that gave no answer.
type ModelFailure struct {
	Error     string `json:"error"`
	Code      string `json:"code"`
	Retryable bool   `json:"retryable"`
}

// Call is a tool call of the open step.
type Call struct {
	fact.ToolCall
	// RunID is the run whose model turn recorded the call. It stays the
	// same however often the call is executed.
	RunID    string          `json:"runId"`
	Started  bool            `json:"started,omitempty"`
	Done     bool            `json:"done,omitempty"`
	Failed   bool            `json:"failed,omitempty"`
	Result   json.RawMessage `json:"result,omitempty"`
	Streamed *Span           `json:"streamed,omitempty"` // chunks of an unfinished execution
	// Pending is what the call waits for, or has waited for.
	Pending *Pending `json:"pending,omitempty"`
	// Answer is the answer that was submitted for Pending.
	Answer *Answer `json:"answer,omitempty"`
	// Approval is the answer by which a person approved a call that now waits
	// for a sub-agent.
	Approval *Answer `json:"approval,omitempty"`
	// Denial is set when a person has not approved the call.
	Denial *Denial `json:"denial,omitempty"`
}

// Pending is what a suspended call waits for (see docs/reference/protocol.md#suspension).
type Pending struct {
	Kind       fact.PendingKind `json:"kind"`
	ApprovalID string           `json:"approvalId,omitempty"`
	Child      string           `json:"child,omitempty"`    // the session for which it waits
	CreatedAt  int64            `json:"createdAt"`          // ms since the epoch
	Deadline   int64            `json:"deadline,omitempty"` // ms since the epoch; 0: none
}

// Answer is the answer that was submitted for a suspended call.
type Answer struct {
	Kind        fact.SubmissionKind `json:"kind"`
	Result      json.RawMessage     `json:"result,omitempty"`
	Error       string              `json:"error,omitempty"`
	ErrorCode   string              `json:"errorCode,omitempty"`
	Approved    bool                `json:"approved,omitempty"`
	Reason      string              `json:"reason,omitempty"`
	MessageID   string              `json:"messageId,omitempty"`
	SubmittedAt int64               `json:"submittedAt"` // ms since the epoch
}

// Awaited reports whether the call waits for a person and has no answer.
func (c *Call) Awaited() bool {
	return !c.Done && c.Pending != nil && c.Pending.Kind != fact.PendingChild && c.Answer == nil
}

// approved reports whether a person has approved the call and it has not begun to wait
// for anything else since.
func (c *Call) approved() bool {
	return c.Pending.Kind == fact.PendingApproval && c.Answer != nil && c.Answer.Approved
}

// Expired reports whether the call's deadline has passed.
func (c *Call) Expired(now int64) bool {
	return c.Pending != nil && c.Pending.Deadline > 0 && now >= c.Pending.Deadline
}

// Span is a range of sequences, both ends included.
type Span struct {
	From uint64 `json:"from"`
	To   uint64 `json:"to"`
}

func grow(s *Span, seq uint64) *Span {
	if s == nil {
		return &Span{From: seq, To: seq}
	}
	s.To = seq
	return s
}

// PartialPart is a part of an answer that is still streaming. Text is the
// text, the reasoning or, of a tool call, the arguments so far.
type PartialPart struct {
	Kind     PartialKind `json:"kind"`
	CallID   string      `json:"callId,omitempty"`
	ToolName string      `json:"toolName,omitempty"`
	Text     Text        `json:"text"`
	Closed   bool        `json:"closed,omitempty"`

	Source *fact.Source      `json:"source,omitempty"`
	File   *fact.MessageFile `json:"file,omitempty"`
}

// PartialKind is the kind of a [PartialPart].
type PartialKind string

// Kinds of partial parts.
const (
	PartialText      PartialKind = "text"
	PartialReasoning PartialKind = "reasoning"
	PartialToolCall  PartialKind = "tool_call"
	PartialSource    PartialKind = "source"
	PartialFile      PartialKind = "file"
)

// Text is a string that grows cheaply.
type Text []byte

// MarshalText writes the text as a JSON string.
func (t Text) MarshalText() ([]byte, error) { return t, nil }

// UnmarshalText reads what MarshalText wrote.
func (t *Text) UnmarshalText(b []byte) error {
	*t = append((*t)[:0], b...)
	return nil
}

// add appends text to the open part of the given kind and call, or begins one.
func (s *Step) add(kind PartialKind, callID, toolName, text string) {
	for i := len(s.Partial) - 1; i >= 0; i-- {
		p := &s.Partial[i]
		if p.Kind == kind && p.CallID == callID && !p.Closed {
			p.Text = append(p.Text, text...)
			return
		}
		if kind != PartialToolCall {
			break // text after another part is a new part
		}
	}
	s.Partial = append(s.Partial, PartialPart{Kind: kind, CallID: callID, ToolName: toolName, Text: Text(text)})
}

// place adds a part that arrives complete.
func (s *Step) place(p PartialPart) {
	p.Text, p.Closed = Text{}, true
	s.Partial = append(s.Partial, p)
}

func orEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// close ends the open part of the given kind and call and reports whether
// there was one.
func (s *Step) close(kind PartialKind, callID string) bool {
	for i := len(s.Partial) - 1; i >= 0; i-- {
		p := &s.Partial[i]
		if p.Kind == kind && p.CallID == callID && !p.Closed {
			p.Closed = true
			return true
		}
	}
	return false
}

func (s *Step) call(id string) *Call {
	for i := range s.Calls {
		if s.Calls[i].ID == id {
			return &s.Calls[i]
		}
	}
	return nil
}

// OpenCalls yields the calls of the session's open step, whether they have a result or not.
func (s *Session) OpenCalls() iter.Seq[*Call] {
	return func(yield func(*Call) bool) {
		if s.Turn == nil || s.Turn.Step == nil {
			return
		}
		for i := range s.Turn.Step.Calls {
			if !yield(&s.Turn.Step.Calls[i]) {
				return
			}
		}
	}
}

// Pending returns the calls that have no result yet.
func (s *Step) Pending() []Call {
	var pending []Call
	for _, c := range s.Calls {
		if !c.Done {
			pending = append(pending, c)
		}
	}
	return pending
}

// Begun returns the step of the open turn that has had its step_start and neither
// a step_end nor a step_discarded, or nil.
func (s *Session) Begun() *Step {
	if s.Turn == nil || s.Turn.Step == nil {
		return nil
	}
	st := s.Turn.Step
	if st.Committed || st.Discarded || !st.Recorded && st.Streamed == nil {
		return nil
	}
	return st
}

// Orphans returns the ranges of chunks that no node will finish, provided that no node
// produces them now: those of a model call without a recorded turn and of tool calls
// without a result.
func (t *Tree) Orphans() []eventlog.Range {
	var ranges []eventlog.Range
	for _, s := range t.Sessions() {
		ranges = append(ranges, s.Orphans(nil)...)
	}
	return ranges
}

// Orphans returns the ranges of the session's orphans, without chunks that are still
// being produced: busy reports that by call id, empty for the model.
func (s *Session) Orphans(busy func(call string) bool) []eventlog.Range {
	if s.Turn == nil || s.Turn.Step == nil {
		return nil
	}
	var ranges []eventlog.Range
	add := func(call string, span *Span) {
		if span != nil && (busy == nil || !busy(call)) {
			ranges = append(ranges, eventlog.Range{AgentID: s.SessionID, CallID: call, From: span.From, To: span.To})
		}
	}
	add("", s.Turn.Step.Streamed)
	for _, c := range s.Turn.Step.Calls {
		add(c.ID, c.Streamed)
	}
	return ranges
}

// Left returns the ranges that earlier runs have left unfinished in the open
// turn: the current run truncates them before it continues.
func (s *Session) Left() []eventlog.Range {
	if !s.Running() {
		return nil
	}
	run := s.CurrentRun()
	return slices.DeleteFunc(s.Orphans(nil), func(g eventlog.Range) bool { return g.To > run.StartSequence })
}
