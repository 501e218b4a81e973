package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine/internal/drive"
	"github.com/helixd/helixd/agentloop/engine/internal/record"
	"github.com/helixd/helixd/agentloop/engine/internal/request"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
)

// Limits of a submission, in bytes.
const (
	MaxSubmittedResult = request.MaxSubmittedResult
	MaxSubmittedError  = request.MaxSubmittedError
)

// Submission answers a call that waits. The
// session is always the root's; the call may be a sub-agent's.
type Submission struct {
	SessionID  string
	ToolCallID string
	Kind       fact.SubmissionKind // client-tool-result or approval-response

	// Of a client-tool-result exactly one.
	Result json.RawMessage
	Error  string

	// Of an approval-response.
	Approved   bool
	Reason     string
	ApprovalID string // if set, it must be the pending call's

	// MessageID is the client's id of the message that brings the result, if it has one.
	MessageID string
}

// Submitted says what has become of a submission (see docs/reference/protocol.md#suspension).
type Submitted struct {
	Status             SubmitStatus `json:"status"`
	Reason             string       `json:"reason,omitempty"` // client_tool_timeout
	SessionID          string       `json:"sessionId"`
	ToolCallID         string       `json:"toolCallId"`
	PendingToolCallIDs []string     `json:"pendingToolCallIds"` // that are still open in the tree
}

// SubmitStatus is the outcome of a submission.
type SubmitStatus string

// Outcomes of submissions.
const (
	SubmitAccepted         SubmitStatus = "accepted"
	SubmitAlreadyCompleted SubmitStatus = "already_completed"
)

// Submit stores the answer to a call that waits. It only stores it: the run continues when
// it is resumed; a run that is live for another reason uses the answer at once. The first
// answer wins. The deadline is judged here, by the wall
// clock: an answer that comes too late stores the time-out.
//
// Errors, nothing is stored: *eventlog.ValidationError, also for an answer of
// the wrong kind or one that does not fit the tool's OutputSchema;
// eventlog.ErrSessionNotFound, ErrCallNotFound; ErrAlreadyCompleted.
func (l *Loop) Submit(ctx context.Context, sub Submission) (Submitted, error) {
	if err := sub.check(); err != nil {
		return Submitted{}, err
	}
	answer := Submitted{SessionID: sub.SessionID, ToolCallID: sub.ToolCallID}
	about := []string{sub.SessionID, "", ""} // for the log: the owner, the run, the tool
	log := func(level slog.Level, event string, more ...any) {
		drive.LogCall(ctx, l.requests.Logger, level, event, about[0], about[1], sub.ToolCallID, about[2], more...)
	}
	attempt, timedOut := 0, false
	t, err := l.requests.Update(ctx, sub.SessionID, func(t *projector.Tree) ([]record.Draft, error) {
		if t == nil {
			return nil, eventlog.ErrSessionNotFound
		}
		owner, call := t.OpenCall(sub.ToolCallID)
		if call != nil {
			about = []string{owner.SessionID, call.RunID, call.Name}
		}
		timedOut = false
		if attempt++; attempt > 1 {
			log(slog.LevelInfo, drive.LogOwnershipRetry, "attempt", attempt)
		}
		if call == nil || call.Done || !call.Awaited() {
			var err error
			answer.Status = SubmitAlreadyCompleted
			answer.Reason, err = answered(t, call, sub.ToolCallID)
			return nil, err
		}
		f, err := l.submission(ctx, owner, call, sub)
		if err != nil {
			return nil, err
		}
		answer.Status = SubmitAccepted
		if timedOut = f.Kind == fact.SubmitTimeout; timedOut {
			answer.Status, answer.Reason = SubmitAlreadyCompleted, agentloop.CodeClientToolTimeout
		}
		return []record.Draft{{Fact: f, Run: call.RunID, Agent: owner.SessionID}}, nil
	})
	if err != nil {
		return Submitted{}, err
	}
	answer.PendingToolCallIDs = []string{}
	for _, a := range t.AwaitedCalls() {
		answer.PendingToolCallIDs = append(answer.PendingToolCallIDs, a.Call.ID)
	}
	log(slog.LevelInfo, drive.LogSubmitted, "status", string(answer.Status))
	if timedOut {
		log(slog.LevelInfo, drive.LogTimeout)
	}
	return answer, nil
}

// answersOf drafts the answers of a request that resumes the session. Errors: as Submit.
func answersOf(ctx context.Context, l *Loop, t *projector.Tree, answers []Submission) (facts []record.Draft, err error) {
	for _, sub := range answers {
		if err := sub.check(); err != nil {
			return nil, err
		}
		owner, call := t.OpenCall(sub.ToolCallID)
		switch {
		case call == nil || call.Done || call.Pending == nil || call.Pending.Kind == fact.PendingChild:
			return nil, agentloop.ErrCallNotFound
		case call.Answer != nil: // the first one counts
			continue
		}
		f, err := l.submission(ctx, owner, call, sub)
		if err != nil {
			return nil, err
		}
		facts = append(facts, record.Draft{Fact: f, Run: call.RunID, Agent: owner.SessionID})
	}
	return facts, nil
}

// unanswered leaves out what is drafted about calls that have an answer.
func unanswered(drafted []record.Draft, answers []Submission) []record.Draft {
	return slices.DeleteFunc(drafted, func(d record.Draft) bool {
		f, ok := d.Fact.(*fact.ResultSubmitted)
		return ok && slices.ContainsFunc(answers, func(s Submission) bool { return s.ToolCallID == f.ToolCallID })
	})
}

// check refuses what no call takes.
func (sub Submission) check() error {
	bad := func(field, reason string) error { return &eventlog.ValidationError{Field: field, Reason: reason} }
	switch {
	case eventlog.ValidateID(sub.ToolCallID) != nil:
		return bad("toolCallId", "must be a valid id")
	case sub.Kind == fact.SubmitClientResult:
		return request.CheckResult(sub.ToolCallID, sub.Result, sub.Error)
	case sub.Kind != fact.SubmitApproval:
		return bad("kind", "must be client-tool-result or approval-response")
	case len(sub.Reason) > MaxSubmittedError:
		return bad("reason", fmt.Sprintf("has more than %d bytes", MaxSubmittedError))
	}
	return nil
}

// answered returns the outcome for a call that does not wait for a submission: it was
// answered before, or too late, with the reason, or it never waited.
func answered(t *projector.Tree, call *projector.Call, id string) (reason string, err error) {
	if call != nil && call.Approval != nil {
		return "", nil
	}
	if call != nil && call.Answer != nil {
		if call.Answer.Kind == fact.SubmitTimeout {
			reason = agentloop.CodeClientToolTimeout
		}
		return reason, nil
	}
	for _, s := range t.Sessions() {
		for _, m := range s.Messages {
			if m.ToolCallID != id || m.AnsweredAs != fact.PendingClient && m.AnsweredAs != fact.PendingApproval {
				continue
			}
			switch m.ErrorCode {
			case agentloop.CodeAborted, agentloop.CodeSessionExpired:
				return "", agentloop.ErrAlreadyCompleted
			case agentloop.CodeClientToolTimeout:
				reason = agentloop.CodeClientToolTimeout
			}
			return reason, nil
		}
	}
	if t.Status == projector.SessionCompleted || t.Status == projector.SessionFailed {
		return "", agentloop.ErrAlreadyCompleted
	}
	return "", agentloop.ErrCallNotFound
}

// submission returns what is stored for a submission to a call that waits.
func (l *Loop) submission(ctx context.Context, owner *projector.Session, call *projector.Call, sub Submission) (*fact.ResultSubmitted, error) {
	f := &fact.ResultSubmitted{
		ToolCallID: call.ID, Kind: sub.Kind, Result: sub.Result, Error: sub.Error, Approved: sub.Approved, Reason: sub.Reason,
		MessageID: sub.MessageID, Base: l.clock.FactBase(owner.SessionID),
	}
	bad := func(field, reason string) error { return &eventlog.ValidationError{Field: field, Reason: reason} }
	switch {
	case call.Pending.Kind == fact.PendingClient && sub.Kind != fact.SubmitClientResult:
		return nil, bad("kind", "the call waits for a client-tool-result")
	case call.Pending.Kind == fact.PendingApproval && sub.Kind == fact.SubmitClientResult && sub.Error == "":
		return nil, bad("kind", "the call waits for an approval-response")
	case sub.ApprovalID != "" && sub.ApprovalID != call.Pending.ApprovalID:
		return nil, bad("approvalId", "is not the pending call's")
	}
	if call.Expired(f.Timestamp) {
		return &fact.ResultSubmitted{ToolCallID: call.ID, Kind: fact.SubmitTimeout, Base: f.Base}, nil
	}
	if sub.Result != nil && l.agents.Defs()[owner.AgentType].CheckResult(call.Name, sub.Result) != nil {
		drive.LogCall(ctx, l.requests.Logger, slog.LevelWarn, drive.LogValidationFailed, owner.SessionID, call.RunID, call.ID, call.Name)
		return nil, bad("result", "does not fit the tool's output schema")
	}
	return f, nil
}
