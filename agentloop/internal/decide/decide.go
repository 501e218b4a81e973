// Package decide returns what must happen next in a session tree. It is pure: it
// knows no clock, no log and no network, so every node decides the same.
package decide

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/internal/plan"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
)

const (
	// maxReminders is how often a model is asked for structured output that
	// it did not give.
	maxReminders = 1
	reminder     = "Give your final answer by calling the tool " + agentloop.FinishTool + "."
	// maxRetryDelay caps the doubling pause between model calls.
	maxRetryDelay = 30 * time.Second
)

// Decider holds what decisions depend on beside the state.
type Decider struct {
	Agents     map[string]*plan.Agent
	RetryDelay time.Duration         // before the first repetition; it doubles
	Busy       func(key string) bool // an effect with the key is being performed
	Stopped    map[string]bool       // by StopRemote's key: an abort was sent
}

// Decide returns what is to be done in a tree: the effects that must be under
// way now, those that are already included, and the appends that are due.
// Nothing means that the tree is idle. Except for what is under way it is pure:
// every holder of the tree decides the same.
func (d Decider) Decide(t *projector.Tree) []Effect {
	var effects []Effect
	for _, s := range t.Sessions() {
		effects = append(effects, d.session(t, s)...)
	}
	return effects
}

func (d Decider) session(t *projector.Tree, s *projector.Session) []Effect {
	turn := s.Turn
	if turn == nil || s != &t.Session && (s.Child == nil || s.Child.Remote) { // not ours to drive
		return nil
	}
	if Aborting(s) {
		return d.abort(t, s, *turn.Stop)
	}
	switch {
	case s.Running():
	case d.goesOn(t, s):
		return []Effect{ResumeChild{Session: s.SessionID}}
	case s.Suspended() && turn.Stop != nil:
		return d.interrupt(t, s, *turn.Stop)
	default:
		return nil
	}
	def := d.Agents[s.AgentType]
	if def == nil {
		return []Effect{Fail{Session: s.SessionID, Code: agentloop.CodeUnknownAgent, Message: fmt.Sprintf("no agent %q runs here", s.AgentType)}}
	}
	if turn.Stop != nil {
		return d.interrupt(t, s, *turn.Stop)
	}
	return d.run(t, s, def)
}

// run decides for a session whose run continues.
func (d Decider) run(t *projector.Tree, s *projector.Session, def *plan.Agent) []Effect {
	turn, step := s.Turn, s.Turn.Step
	if orphans := s.Orphans(d.busyWith(s)); len(orphans) > 0 {
		reason := eventlog.ResyncCrashRecovery
		if step.Failure != nil && !step.Recorded {
			reason = eventlog.ResyncRetry
			if !retries(def, step) {
				return []Effect{modelFailure(s, step)}
			}
		}
		return []Effect{Truncate{Session: s.SessionID, Ranges: orphans, Reason: reason}}
	}
	switch {
	case step == nil:
		return d.nextStep(t, s, def, 1)
	case !step.Recorded:
		call := CallModel{Session: s.SessionID, RunID: turn.RunID, StepID: step.ID, Step: step.Number}
		if step.Failure == nil {
			return []Effect{call}
		}
		if !retries(def, step) {
			return []Effect{modelFailure(s, step)}
		}
		call.After = min(d.RetryDelay<<min(step.Attempts-1, 20), maxRetryDelay)
		return []Effect{call}
	case !step.Committed:
		return d.calls(t, s, def, step)
	}
	return d.afterStep(t, s, def, step)
}

func retries(def *plan.Agent, step *projector.Step) bool {
	return step.Failure.Retryable && step.Attempts < def.MaxTries
}

func modelFailure(s *projector.Session, step *projector.Step) Fail {
	return Fail{
		Session: s.SessionID, Code: step.Failure.Code, Message: step.Failure.Error, Retryable: step.Failure.Retryable,
	}
}

// busyWith reports by call id, empty for the model, what of the session is being
// performed.
func (d Decider) busyWith(s *projector.Session) func(call string) bool {
	return func(call string) bool {
		if call == "" {
			return d.Busy(CallModel{Session: s.SessionID, RunID: s.Turn.RunID}.Key())
		}
		return d.Busy(CallKey(s.SessionID, call))
	}
}

// asking reports whether the session's model is being asked for an answer, or
// its recaller for what may matter.
func (d Decider) asking(s *projector.Session) bool {
	return d.Busy(CallModel{Session: s.SessionID}.Key()) || d.Busy(Recall{Session: s.SessionID}.Key())
}

func (d Decider) nextStep(t *projector.Tree, s *projector.Session, def *plan.Agent, n int) []Effect {
	if n > def.MaxSteps {
		return []Effect{Fail{
			Session: s.SessionID, Code: agentloop.CodeMaxSteps,
			Message: fmt.Sprintf("the agent did not finish within %d steps", def.MaxSteps),
		}}
	}
	call := CallModel{
		Session: s.SessionID, RunID: s.Turn.RunID, StepID: fmt.Sprintf("turn-%d-step-%d", s.Turn.Number, n), Step: n,
	}
	if news := childNews(t, s); news != nil && !d.Busy(call.Key()) { // what is under way is not cut off for it
		return []Effect{*news}
	}
	if n == 1 && def.Recall != nil && !s.Turn.Recalled && !d.Busy(call.Key()) {
		return []Effect{Recall{Session: s.SessionID, RunID: s.Turn.RunID}}
	}
	return []Effect{call}
}

func (d Decider) afterStep(t *projector.Tree, s *projector.Session, def *plan.Agent, step *projector.Step) []Effect {
	if step.Message < 0 || step.Message >= len(s.Messages) { // a damaged state
		return []Effect{Fail{Session: s.SessionID, Code: agentloop.CodeInternal, Message: "the step's answer is not there"}}
	}
	if newMessages(s, step) { // the user has sent more, so the answer does not end the turn
		return d.nextStep(t, s, def, step.Number+1)
	}
	for _, c := range step.Calls {
		if !c.Failed && def.Finishes(c.Name) {
			output := c.Result
			if c.Name == agentloop.FinishTool {
				output = c.Arguments
			}
			return []Effect{Finish{Session: s.SessionID, Output: output, Structured: true}}
		}
	}
	switch {
	case len(step.Calls) > 0:
		return d.nextStep(t, s, def, step.Number+1)
	case def.Finish == nil:
		text, _ := json.Marshal(s.Messages[step.Message].Content)
		return []Effect{Finish{Session: s.SessionID, Output: text}}
	case s.Turn.Reminders < maxReminders:
		return []Effect{Tell{Session: s.SessionID, Text: reminder, Metadata: json.RawMessage(projector.ReminderMetadata)}}
	default:
		return []Effect{Fail{Session: s.SessionID, Code: agentloop.CodeOutputMissing, Message: "the agent gave no structured output"}}
	}
}

// newMessages reports whether the conversation has gone on after the step's
// answer: a reminder, or a user's message that came with a resume.
func newMessages(s *projector.Session, step *projector.Step) bool {
	return s.Messages[len(s.Messages)-1].Role == projector.RoleUser && len(s.Messages)-1 > step.Message
}
