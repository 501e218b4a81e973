package agentloop

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
)

// closeCall records the outcome of a call that has waited.
func (t *task) closeCall(ctx context.Context, e CloseCall) error {
	c := t.newCall(e.StepID, e.Call)
	ctx = t.traceCall(ctx, c, e.Call)
	if e.Call.Pending.Kind == eventlog.PendingChild {
		return t.closeChild(ctx, c, e.Call)
	}
	answer := e.Call.Answer
	if answer == nil { // the deadline has passed, and nobody said so yet
		answer = &projector.Answer{Kind: eventlog.SubmitTimeout}
	}
	var facts []fact
	result, code, message := t.answer(c, answer)
	switch {
	case e.Call.Pending.Kind == eventlog.PendingApproval && answer.Kind != eventlog.SubmitTimeout:
		denied := e.Call
		denied.Answer = &projector.Answer{Kind: answer.Kind, Reason: answer.Reason}
		facts = append(facts, c.approvalResponse(denied), c.outputError(message))
	}
	err := t.append(ctx, append(facts, c.outcome(result, code, message)...)...)
	if err == nil && e.Call.Answer == nil { // else Submit has said so
		c.log(slog.LevelInfo, logTimeout)
	}
	return err
}

// answer is what the model gets for an answer that does not execute the call.
func (t *task) answer(c *Call, answer *projector.Answer) (result json.RawMessage, code, message string) {
	switch answer.Kind {
	case eventlog.SubmitTimeout:
		return nil, CodeClientToolTimeout, fmt.Sprintf("Tool call %s was not answered in time", c.ToolName)
	case eventlog.SubmitAbandoned:
		return nil, CodeClientToolAbandoned, fmt.Sprintf("Tool call %s was abandoned by the user", c.ToolName)
	case eventlog.SubmitApproval:
		message = fmt.Sprintf("Tool call %s was not approved by the user", c.ToolName)
		if answer.Reason != "" {
			message += ": " + answer.Reason
		}
		return nil, CodeApprovalDenied, cut(message)
	}
	if answer.Error != "" {
		return nil, CodeClientToolError, cut(answer.Error)
	}
	if tool := t.tool(c.ToolName); tool != nil {
		if err := checkResult(tool, answer.Result); err != nil {
			c.log(slog.LevelWarn, logValidationFailed)
			return nil, CodeClientToolInvalid, cut("the result does not fit the tool's output schema: " + err.Error())
		}
	}
	return answer.Result, "", ""
}

// checkResult returns why a client's result does not fit the tool.
func checkResult(tool *tool, result json.RawMessage) error {
	if tool.output == nil {
		return nil
	}
	var v any
	if err := json.Unmarshal(result, &v); err != nil {
		return err
	}
	return tool.output.Validate(v)
}

// awaitDeadline ends a call that has waited for a sub-agent for too long: one
// that the call has made is stopped, another one goes on.
func (t *task) awaitDeadline(ctx context.Context, e AwaitDeadline) error {
	if err := wait(ctx, time.Duration(e.At-t.l.now())*time.Millisecond); err != nil {
		return err
	}
	c := t.newCall(e.StepID, e.Call)
	if t.def.companion[c.ToolName] != nil {
		result := t.childStatus(e.Call.Pending.Child)
		return t.append(ctx, c.result(result, "", ""), c.end(result, "", ""))
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
	stop := t.fact(&eventlog.InterruptRequested{
		RunID: run, Kind: eventlog.StopAbort, Code: CodeToolTimeout, Reason: "it took too long",
		FactBase: t.l.factBase(e.Call.Pending.Child),
	})
	stop.agent = e.Call.Pending.Child
	return t.append(ctx, stop)
}
