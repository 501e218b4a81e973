package drive

import (
	"encoding/json"
	"time"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine/internal/record"
	"github.com/helixd/helixd/agentloop/internal/decide"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
)

// The records of a call.

func (t *task) newCall(stepID string, call projector.Call) *toolCall {
	c := &toolCall{r: t, step: t.step(), stepID: stepID}
	c.Call = agentloop.NewCall(agentloop.Call{
		SessionInfo: t.sessionInfo(), RunID: call.RunID, ToolName: call.Name, ID: call.ID,
		IdempotencyKey: t.root + ":" + call.RunID + ":" + call.ID,
	}, c)
	c.client = call.Pending != nil && call.Pending.Kind == fact.PendingClient
	if a := call.Answer; a != nil && (a.Kind == fact.SubmitClientResult || a.Kind == fact.SubmitApproval) {
		c.answered, c.waited = true, max(a.SubmittedAt-call.Pending.CreatedAt, 0)
	}
	return c
}

func (c *toolCall) base() eventlog.Base { return c.r.base(c.step) }

// chunk labels a chunk of this execution, fact a fact.
func (c *toolCall) chunk(chunk eventlog.Chunk) record.Draft {
	return record.Draft{Chunk: chunk, Run: c.RunID, Call: c.ID}
}
func (c *toolCall) fact(f fact.Fact) record.Draft {
	return record.Draft{Fact: f, Run: c.RunID, Call: c.ID}
}

func (c *toolCall) start(call projector.Call) record.Draft {
	return c.chunk(&eventlog.ToolStart{
		ToolCallID: c.ID, ToolName: c.ToolName, Arguments: call.Arguments, Base: c.base(),
	})
}

// subAgentStart notifies clients that the call has begun a sub-agent's turn.
func (c *toolCall) subAgentStart(agentType, session string) record.Draft {
	return c.chunk(&eventlog.SubAgentStart{SubAgentType: agentType, SubSessionID: session, CallID: c.ID, Base: c.base()})
}

// suspended has the call wait; without a timeout for ever.
func (c *toolCall) suspended(kind fact.PendingKind, approvalID string, timeout time.Duration) record.Draft {
	f := &fact.CallSuspended{
		RunID: c.RunID, StepID: c.stepID, ToolCallID: c.ID, ToolName: c.ToolName, Kind: kind, ApprovalID: approvalID,
		Base: c.r.factBase(),
	}
	if timeout > 0 {
		f.Deadline = f.Timestamp + timeout.Milliseconds()
	}
	return c.fact(f)
}

// awaits has the call wait for a child.
func (c *toolCall) awaits(child string, timeout time.Duration) record.Draft {
	f := c.suspended(fact.PendingChild, "", timeout)
	f.Fact.(*fact.CallSuspended).ChildSessionID = child
	return f
}

func (c *toolCall) approvalResponse(call projector.Call) record.Draft {
	return c.chunk(&eventlog.ToolApprovalResponse{
		ToolCallID: c.ID, ToolName: c.ToolName, ApprovalID: call.Pending.ApprovalID, Approved: call.Answer.Approved,
		Reason: optional(call.Answer.Reason), IsAutomatic: optional(call.Answer.Kind == fact.SubmitAbandoned), Base: c.base(),
	})
}

// result is the commit point of the call.
func (c *toolCall) result(result json.RawMessage, code, message string) record.Draft {
	f := &fact.ToolResult{
		RunID: c.RunID, StepID: c.stepID, ToolCallID: c.ID, ToolName: c.ToolName,
		Result: result, Error: message, ErrorCode: code, Base: c.r.factBase(),
	}
	if message != "" {
		f.Cause = c.cause
	}
	return c.fact(f)
}

// ended returns the records of a finished call.
func (c *toolCall) ended(result json.RawMessage, code, message string) []record.Draft {
	return []record.Draft{c.result(result, code, message), c.end(result, code, message)}
}

// outcome is ended with how long the call has waited for a person, if it has.
func (c *toolCall) outcome(result json.RawMessage, code, message string) []record.Draft {
	return append(c.ended(result, code, message), c.waitUsage()...)
}

// waitUsage records how long the call has waited for a person, if it has. It belongs to the run that
// takes the answer up, which may be a later one than the call's.
func (c *toolCall) waitUsage() []record.Draft {
	if !c.answered {
		return nil
	}
	return []record.Draft{c.fact(&fact.UsageRecorded{
		RunID: c.r.runID, StepCount: c.step, Source: fact.UsageTool, SourceType: fact.ClientToolWait,
		SourceName: c.ToolName, Amount: float64(c.waited), Base: c.r.factBase(),
	})}
}

// end returns the chunk of the result for clients.
func (c *toolCall) end(result json.RawMessage, code, message string) record.Draft {
	byUs := !c.client
	if def := c.r.def; def != nil && def.Functions[c.ToolName] != nil {
		byUs = byUs && !def.Functions[c.ToolName].Client
	}
	end := &eventlog.ToolEnd{
		ToolCallID: c.ID, ToolName: c.ToolName, Result: result, ProviderExecuted: &byUs, Base: c.base(),
	}
	if message != "" {
		end.Error, end.ErrorCode = &message, &code
	}
	return c.chunk(end)
}

// outputError says that the call failed outside of its tool.
func (c *toolCall) outputError(message string) record.Draft {
	return c.chunk(&eventlog.ToolOutputError{ToolCallID: c.ID, ToolName: c.ToolName, Error: message, Base: c.base()})
}

// approved returns the records of a person's approval of a call, and of the
// time that it waited; none if it did not wait.
func (c *toolCall) approved(call projector.Call) []record.Draft {
	if !decide.Gated(call) {
		return nil
	}
	return append([]record.Draft{c.approvalResponse(call)}, c.waitUsage()...)
}
