package drive

import (
	"context"
	"log/slog"
	"time"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine/internal/record"
	"github.com/helixd/helixd/agentloop/internal/decide"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
)

// closeCall records the outcome of a call that has waited.
func (t *task) closeCall(ctx context.Context, e decide.CloseCall) error {
	c := t.newCall(e.StepID, e.Call)
	ctx = t.traces.Call(ctx, t.traced(), c.step, e.Call)
	if e.Call.Pending.Kind == fact.PendingChild {
		return t.closeChild(ctx, c, e.Call)
	}
	answer := e.Call.Answer
	if answer == nil { // the deadline has passed, and no record says so yet
		answer = &projector.Answer{Kind: fact.SubmitTimeout}
	}
	var facts []record.Draft
	result, code, message := decide.JudgeAnswer(t.def, c.ToolName, answer)
	if code == agentloop.CodeClientToolInvalid {
		c.log(slog.LevelWarn, LogValidationFailed)
	}
	if e.Call.Pending.Kind == fact.PendingApproval && answer.Kind != fact.SubmitTimeout {
		denied := e.Call
		denied.Answer = &projector.Answer{Kind: answer.Kind, Reason: answer.Reason}
		facts = append(facts, c.approvalResponse(denied), c.outputError(message))
	}
	err := t.append(ctx, append(facts, c.outcome(result, code, message)...)...)
	if err == nil && e.Call.Answer == nil { // otherwise Submit has logged it
		c.log(slog.LevelInfo, LogTimeout)
	}
	return err
}

// awaitDeadline ends a call that has waited for a sub-agent for too long: one
// that the call has made is stopped, another one continues.
func (t *task) awaitDeadline(ctx context.Context, e decide.AwaitDeadline) error {
	if err := eventlog.Sleep(ctx, time.Duration(e.At-t.host.Millis())*time.Millisecond); err != nil {
		return err
	}
	c := t.newCall(e.StepID, e.Call)
	if t.def.Companion[c.ToolName] != nil {
		return t.append(ctx, c.ended(t.childStatus(e.Call.Pending.Child), "", "")...)
	}
	var run string
	t.look(func(*projector.Session) {
		if child := t.tree.Get(e.Call.Pending.Child); child != nil && child.Turn != nil {
			run = child.Turn.RunID
		}
	})
	if run == "" { // it has ended at this very moment: the call has its result
		return nil
	}
	stop := t.fact(&fact.InterruptRequested{
		RunID: run, Kind: fact.StopAbort, Code: agentloop.CodeToolTimeout, Reason: "it took too long",
		Base: t.host.FactBase(e.Call.Pending.Child),
	})
	stop.Agent = e.Call.Pending.Child
	return t.append(ctx, stop)
}
