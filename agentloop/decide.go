package agentloop

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
)

// Effect is something to be done: one of the types below. Effects that Decide
// returns together may be performed at the same time.
type Effect interface{ effect() }

// The effects.
type (
	// Truncate strikes orphans and tells clients to reload.
	Truncate struct {
		Ranges []eventlog.Range
		Reason eventlog.ResyncReason
	}
	// CallModel asks the model for the next answer, after a pause.
	CallModel struct {
		StepID string
		Step   int
		After  time.Duration
	}
	// RunCall executes a tool call.
	RunCall struct {
		StepID string
		Call   projector.Call
	}
	// CommitStep makes a step final and marks a checkpoint.
	CommitStep struct{ Step projector.Step }
	// Remind asks the model to give its output by the finish tool.
	Remind struct{ Text string }
	// Finish completes the run.
	Finish struct {
		Output     json.RawMessage
		Structured bool // there is an output chunk
	}
	// Fail ends the run with an error.
	Fail struct{ Code, Message string }
)

func (Truncate) effect()   {}
func (CallModel) effect()  {}
func (RunCall) effect()    {}
func (CommitStep) effect() {}
func (Remind) effect()     {}
func (Finish) effect()     {}
func (Fail) effect()       {}

// Codes of failed runs and calls.
const (
	CodeMaxSteps      = "agent_max_steps_exceeded"
	CodeOutputMissing = "agent_output_missing"
	CodeToolFailed    = "tool_execution_failed"
	CodeToolTimeout   = "tool_timeout"
	CodeToolNotFound  = "tool_not_found"
	CodeToolInput     = "tool_input_invalid"
	CodeInternal      = "internal_error"
)

const (
	// maxReminders is how often a model is asked for structured output that
	// it did not give.
	maxReminders = 1
	reminder     = "Give your final answer by calling the tool " + FinishTool + "."
	// maxRetryDelay caps the doubling pause between model calls.
	maxRetryDelay = 30 * time.Second
)

// decider holds what decisions depend on beside the state.
type decider struct {
	def        *definition
	retryDelay time.Duration // before the first repetition; it doubles
}

// decide returns what has to be done next in state t, nothing if the root's
// turn is over or waits. It is pure: whoever holds the tree decides the same.
func (d decider) decide(t *projector.Tree) []Effect {
	turn := t.Turn
	if turn == nil || t.Status != projector.SessionActive {
		return nil
	}
	step := turn.Step
	if orphans := t.Orphans(); len(orphans) > 0 {
		reason := eventlog.ResyncCrashRecovery
		if step != nil && step.Failure != nil && !step.Recorded {
			reason = eventlog.ResyncRetry
			if !d.retries(step) {
				return []Effect{Fail{Code: step.Failure.Code, Message: step.Failure.Error}}
			}
		}
		return []Effect{Truncate{Ranges: orphans, Reason: reason}}
	}
	switch {
	case step == nil:
		return d.nextStep(turn, 1)
	case !step.Recorded:
		if step.Failure == nil {
			return []Effect{CallModel{StepID: step.ID, Step: step.Number}}
		}
		if !d.retries(step) {
			return []Effect{Fail{Code: step.Failure.Code, Message: step.Failure.Error}}
		}
		delay := min(d.retryDelay<<min(step.Attempts-1, 20), maxRetryDelay)
		return []Effect{CallModel{StepID: step.ID, Step: step.Number, After: delay}}
	case !step.Committed:
		if calls := d.runnable(step); len(calls) > 0 {
			return calls
		}
		return []Effect{CommitStep{Step: *step}}
	}
	return d.afterStep(t, turn, step)
}

func (d decider) retries(step *projector.Step) bool {
	return step.Failure.Retryable && step.Attempts < d.def.maxTries
}

// runnable returns the calls to execute next: all ordinary ones together,
// then those that finish the turn, one by one (document 002).
func (d decider) runnable(step *projector.Step) []Effect {
	var ordinary, finishing []Effect
	for _, c := range step.Pending() {
		e := RunCall{StepID: step.ID, Call: c}
		if d.def.finishes(c.Name) {
			finishing = append(finishing, e)
		} else {
			ordinary = append(ordinary, e)
		}
	}
	if len(ordinary) > 0 || len(finishing) == 0 {
		return ordinary
	}
	return finishing[:1]
}

func (d decider) nextStep(turn *projector.Turn, n int) []Effect {
	if n > d.def.MaxSteps {
		return []Effect{Fail{
			Code: CodeMaxSteps, Message: fmt.Sprintf("the agent did not finish within %d steps", d.def.MaxSteps),
		}}
	}
	return []Effect{CallModel{StepID: fmt.Sprintf("turn-%d-step-%d", turn.Number, n), Step: n}}
}

func (d decider) afterStep(t *projector.Tree, turn *projector.Turn, step *projector.Step) []Effect {
	if step.Message < 0 || step.Message >= len(t.Messages) { // a damaged state
		return []Effect{Fail{Code: CodeInternal, Message: "the step's answer is not there"}}
	}
	if newMessages(t, step) { // the user has more to say, whatever the answer was
		return d.nextStep(turn, step.Number+1)
	}
	for _, c := range step.Calls {
		if !c.Failed && d.def.finishes(c.Name) {
			output := c.Result
			if c.Name == FinishTool {
				output = c.Arguments
			}
			return []Effect{Finish{Output: output, Structured: true}}
		}
	}
	switch {
	case len(step.Calls) > 0:
		return d.nextStep(turn, step.Number+1)
	case d.def.finish == nil:
		text, _ := json.Marshal(t.Messages[step.Message].Content)
		return []Effect{Finish{Output: text}}
	case turn.Reminders < maxReminders:
		return []Effect{Remind{Text: reminder}}
	default:
		return []Effect{Fail{Code: CodeOutputMissing, Message: "the agent gave no structured output"}}
	}
}

// newMessages reports whether the conversation has gone on after the step's
// answer: a reminder, or a user's message that came with a resume.
func newMessages(t *projector.Tree, step *projector.Step) bool {
	return t.Messages[len(t.Messages)-1].Role == projector.RoleUser && len(t.Messages)-1 > step.Message
}
