package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine/internal/record"
	"github.com/helixd/helixd/agentloop/engine/internal/request"
	"github.com/helixd/helixd/agentloop/engine/timetravel"
	"github.com/helixd/helixd/agentloop/internal/decide"
	"github.com/helixd/helixd/agentloop/internal/plan"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
)

// ResumeRequest continues a session.
type ResumeRequest struct {
	SessionID string
	// Mode; empty: with_message if there are messages, otherwise continue.
	Mode     fact.RunMode
	Messages []agentloop.Input // with_message; also from_checkpoint and retry
	// CheckpointID is where from_checkpoint goes back to.
	CheckpointID string
	// Turn is the turn that retry does again, from 1; 0: the last one.
	Turn int
	// Approved decides all open approvals (with_confirmation) that Answers do not.
	Approved bool
	// Answers are to calls that wait; they are stored with the request, all or none.
	Answers []Submission
	// MergeState is an object: its members replace those of the session's state. nil: nothing
	// changes.
	MergeState json.RawMessage
	// Options are what the request asks of this run alone. If a run of the session has
	// their name, it is the answer.
	Options fact.RunOptions
	// After, if set, is the run that must be the session's last one, and not deleted: if not,
	// ErrNotLast.
	After string
	// Hooks, if set, are notified of the run that the request begins, while this
	// process drives it.
	Hooks *agentloop.Hooks
}

// Resume continues a session in a new run:
//
//   - continue: after a crash, an interruption or a pause. What was submitted
//     is taken up first; calls that are still open have the run suspended
//     again without a model call.
//   - with_message: the same with a further user message. Open calls are
//     abandoned, and the message comes after their results.
//   - with_confirmation: the same with all open approvals decided.
//   - from_checkpoint, retry: the state is that of a checkpoint, or of a
//     turn's beginning; clients get a stream_resync (rollback, retry).
//
// On a live run without a message it answers with that run.
//
// Errors: eventlog.ErrSessionNotFound, ErrAlreadyCompleted, ErrAlreadyRunning,
// ErrNothingToResume, ErrNothingToConfirm, ErrUnknownAgent, ErrMessageKnown,
// ErrCheckpointNotFound, *eventlog.ValidationError, and what the log returns.
func (l *Loop) Resume(ctx context.Context, req ResumeRequest) (Started, error) {
	if req.Mode == "" {
		req.Mode = fact.ModeContinue
		if len(req.Messages) > 0 {
			req.Mode = fact.ModeWithMessage
		}
	}
	if err := request.CheckInputs(req.Messages); err != nil {
		return Started{}, err
	}
	if len(req.Answers) > maxAnswers {
		return Started{}, &eventlog.ValidationError{Field: "answers", Reason: fmt.Sprintf("must be at most %d", maxAnswers)}
	}
	switch req.Mode {
	case fact.ModeFromCheckpoint, fact.ModeRetry:
		return l.TimeTravel.Rewind(ctx, timetravel.RewindRequest{
			SessionID: req.SessionID, Mode: req.Mode, CheckpointID: req.CheckpointID, Turn: req.Turn, Messages: req.Messages, Hooks: req.Hooks,
		})
	case fact.ModeContinue, fact.ModeWithMessage, fact.ModeWithConfirmation:
	default:
		return Started{}, &eventlog.ValidationError{Field: "mode", Reason: "is no mode of resuming"}
	}
	if (req.Mode == fact.ModeWithMessage) != (len(req.Messages) > 0) {
		return Started{}, &eventlog.ValidationError{Field: "message", Reason: "goes with the mode with_message"}
	}
	for {
		more := false
		s, err := l.requests.Do(ctx, req.SessionID, "", req.Hooks, func(t *projector.Tree) (facts []record.Draft, run string, err error) {
			if t != nil {
				if run := t.RunNamed(req.Options.Name); run != nil {
					return nil, run.RunID, nil
				}
				if err := isLast(t, req.After); err != nil {
					return nil, "", err
				}
				if knows(t, req.Messages) {
					return nil, "", agentloop.ErrMessageKnown
				}
			}
			facts, run, more, err = l.resumption(ctx, t, req)
			return facts, run, err
		})
		if err != nil || !more {
			return s, err
		}
	}
}

// maxAnswers is how many answers to open calls are appended at once.
const maxAnswers = 500

// resumption returns the records that resume a session, and the run that they
// begin; or only some of the answers that precede it, if there are more than go
// with it in one append.
func (l *Loop) resumption(ctx context.Context, t *projector.Tree, req ResumeRequest) (facts []record.Draft, run string, more bool, err error) {
	if run, err := l.resumable(ctx, t, req); run != "" || err != nil {
		return nil, run, false, err
	}
	if facts, err = answersOf(ctx, l, t, req.Answers); err != nil {
		return nil, "", false, err
	}
	switch req.Mode {
	case fact.ModeWithMessage:
		facts = append(facts, unanswered(l.clock.AbandonAll(t), req.Answers)...)
	case fact.ModeWithConfirmation:
		confirmed := l.clock.ConfirmAll(t, req.Approved)
		if len(confirmed) == 0 {
			return nil, "", false, agentloop.ErrNothingToConfirm
		}
		facts = append(facts, unanswered(confirmed, req.Answers)...)
	}
	if len(facts) > maxAnswers && len(req.Answers) == 0 {
		return facts[:maxAnswers], "", true, nil
	}
	if err := plan.CheckClientTools(l.agents.Defs()[t.AgentType], req.Options.Tools); err != nil {
		return nil, "", false, err
	}
	merged, err := mergeState(l.clock, t, t.AgentType, req.MergeState)
	if err != nil {
		return nil, "", false, err
	}
	begin := l.requests.NewRun(ctx, req.SessionID, req.Mode, req.Messages, req.Options)
	run = begin[0].Run
	facts = append(append(append(facts, begin...), l.clock.Resumed(&t.Session, run, req.Mode)), merged...)
	return facts, run, false, nil
}

// resumable returns why the session can't be resumed as it is, or the run that
// continues already.
func (l *Loop) resumable(ctx context.Context, t *projector.Tree, req ResumeRequest) (run string, err error) {
	if t == nil {
		return "", eventlog.ErrSessionNotFound
	}
	switch hosted := l.requests.Hosted(ctx, t.AgentType); {
	case t.Turn == nil && l.requests.ChildWaits(t): // a sub-agent has outlived its parent's turn
		return t.CurrentRun().RunID, nil
	case t.Status == projector.SessionCompleted || t.Status == projector.SessionFailed:
		return "", agentloop.ErrAlreadyCompleted
	case t.Turn == nil:
		return "", agentloop.ErrNothingToResume
	case hosted != nil:
		return "", hosted
	case decide.Aborting(&t.Session):
		return "", agentloop.ErrAlreadyCompleted
	case !l.Executing(ctx, t):
		return "", nil
	case len(req.Messages) > 0 || req.Mode == fact.ModeWithConfirmation:
		return "", agentloop.ErrAlreadyRunning
	case t.Turn.Stop == nil: // else a further run voids the stop
		return t.Turn.RunID, nil
	}
	return "", nil
}

// CanResume says whether a session can be resumed as it is, and if not, why. Failed sessions can go back: modes from_checkpoint and retry.
type CanResume struct {
	CanResume bool   `json:"canResume"`
	Reason    string `json:"reason,omitempty"`
	// State is the session's, if there is one; it must not be changed.
	State *projector.Tree `json:"state,omitempty"`
}

// CanResume says whether the session can be resumed in a mode; empty:
// continue.
func (l *Loop) CanResume(ctx context.Context, session string, mode fact.RunMode) (CanResume, error) {
	t, err := l.states.Head(ctx, session)
	if errors.Is(err, eventlog.ErrSessionNotFound) {
		return CanResume{Reason: err.Error()}, nil
	}
	if err != nil {
		return CanResume{Reason: err.Error()}, err
	}
	answer := CanResume{State: t}
	switch back := mode == fact.ModeFromCheckpoint || mode == fact.ModeRetry; {
	case l.Executing(ctx, t):
		answer.Reason = "the session is running"
	case t.Status == projector.SessionCompleted:
		answer.Reason = "the session has completed"
	case t.Status == projector.SessionFailed && !back:
		answer.Reason = "the session has failed; it can go back to a checkpoint, or retry"
	case t.Turn == nil && !back:
		answer.Reason = "the session has no open turn"
	default:
		answer.CanResume = true
	}
	return answer, nil
}
