package projector

import (
	"encoding/json"
	"fmt"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
)

// suspendCall suspends a call.
func (s *Session) suspendCall(r eventlog.Record, f *fact.CallSuspended) string {
	st, reason := s.openStepOf(f.StepID)
	if reason != "" {
		return reason
	}
	c := st.call(f.ToolCallID)
	switch {
	case c == nil:
		return fmt.Sprintf("call %s is not of the open step", f.ToolCallID)
	case c.Done, c.Pending != nil && (f.Kind != fact.PendingChild || !c.approved()):
		return fmt.Sprintf("call %s is finished or waits", c.ID)
	}
	if c.Answer != nil {
		c.Approval, c.Answer = c.Answer, nil
	}
	c.Pending = &Pending{
		Kind: f.Kind, ApprovalID: f.ApprovalID, Child: f.ChildSessionID, CreatedAt: f.Timestamp, Deadline: f.Deadline,
	}
	c.Started, c.Streamed = true, nil
	s.commit(r.Sequence)
	return ""
}

// submit keeps the first answer to a call and ignores others.
func (s *Session) submit(f *fact.ResultSubmitted) {
	if s.Turn == nil || s.Turn.Step == nil {
		return
	}
	if c := s.Turn.Step.call(f.ToolCallID); c != nil && c.Awaited() {
		c.Answer = &Answer{
			Kind: f.Kind, Result: f.Result, Error: f.Error, ErrorCode: f.ErrorCode,
			Approved: f.Approved, Reason: f.Reason, MessageID: f.MessageID, SubmittedAt: f.Timestamp,
		}
		s.Version++
	}
}

// requestStop keeps a request to stop the current run. It ignores a request that names an
// earlier run, and an interrupt after an abort.
func (t *Tree) requestStop(s *Session, r eventlog.Record, f *fact.InterruptRequested) {
	s.Terminated = s.Terminated || f.Terminate
	holder := t.Claim != nil && r.Writer == t.Claim.Writer
	if s.Turn != nil && s.Turn.RunID == f.RunID && s.Turn.Stop != nil && s.Turn.Stop.Kind == f.Kind {
		s.Turn.Stop.Heard = holder // a repeated request needs a new acknowledgement
		return
	}
	if s.Turn == nil || s.Turn.RunID != f.RunID || s.Turn.Stop != nil && s.Turn.Stop.Kind == fact.StopAbort {
		return
	}
	if f.Kind == fact.StopInterrupt && s.Status != SessionActive {
		return
	}
	s.Turn.Stop = &Stop{Kind: f.Kind, Reason: f.Reason, Code: f.Code, ByParent: f.ByParent, Heard: holder}
}

// ChildNotice is the metadata of a hidden message that notifies a parent of the end of a
// sub-agent's turn.
type ChildNotice struct {
	Hidden  bool   `json:"hidden"`
	Helix   string `json:"helix"` // ChildNoticeMark
	Session string `json:"session"`
	Turn    int    `json:"turn"`
}

// ChildNoticeMark distinguishes a [ChildNotice] from other metadata.
const ChildNoticeMark = "child_turn_ended"

// notice records of which turn's end a message notifies the parent.
func (t *Tree) notice(f *fact.UserMessage) {
	var n ChildNotice
	if f.Metadata == nil || json.Unmarshal(f.Metadata, &n) != nil || n.Helix != ChildNoticeMark {
		return
	}
	if child := t.Get(n.Session); child != nil {
		child.Delivered = max(child.Delivered, n.Turn)
	}
}

// deny records that a person has not approved a call.
func (s *Session) deny(c *eventlog.ToolApprovalResponse) {
	if s.Turn == nil || s.Turn.Step == nil || c.Approved {
		return
	}
	if call := s.Turn.Step.call(c.ToolCallID); call != nil && !call.Done {
		call.Denial = &Denial{ApprovalID: c.ApprovalID}
		if c.Reason != nil {
			call.Denial.Reason = *c.Reason
		}
	}
}
