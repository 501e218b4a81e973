package responses

import (
	"strconv"
	"strings"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/httpapi/internal/web"
)

// again separates a call id from a number, if a call that was taken back had the same id:
// clients refuse an id that is there twice.
const again = "~"

// callBegins shows the call of a client's tool as it streams. Of other calls it is not known
// yet who executes them.
func (f *folder) callBegins(r eventlog.Record, own bool, c *eventlog.ToolArgStreamStart) {
	if own {
		f.message, f.thought = nil, nil
	}
	f.pieces[c.ToolCallID] = &piece{name: c.ToolName}
	if own && f.tools[c.ToolName] {
		f.functionCall(r, c.ToolCallID, c.ToolName)
	}
}

func (f *folder) callGrows(c *eventlog.ToolArgStreamDelta) {
	if p := f.pieces[c.ToolCallID]; p != nil {
		p.args = append(p.args, c.Delta...)
	}
	if it := f.calls[c.ToolCallID]; it != nil && it.kind == kindFunction && !it.done {
		f.arguments(it, c.Delta)
	}
}

// functionCall begins the call of a client's tool.
func (f *folder) functionCall(r eventlog.Record, call, name string) *item {
	it := f.newItem(r, kindFunction)
	it.name, it.call = name, f.callID(call)
	f.calls[call] = it
	f.added(it)
	return it
}

// callID returns the id by which a client knows a call.
func (f *folder) callID(call string) string {
	f.shown[call]++
	if n := f.shown[call]; n > 1 {
		return call + again + strconv.Itoa(n)
	}
	return call
}

func (f *folder) arguments(it *item, delta string) {
	if delta == "" {
		return
	}
	it.args = append(it.args, delta...)
	name := "response.function_call_arguments.delta"
	if it.kind == kindMCP {
		name = "response.mcp_call_arguments.delta"
	}
	f.send(name, object{"item_id": it.id, "output_index": it.index, "delta": delta})
}

// argumentsOf returns the text of a call's arguments, as the model gave them.
func (f *folder) argumentsOf(call string, parsed []byte) string {
	if p := f.pieces[call]; p != nil && len(p.args) > 0 {
		return string(p.args)
	}
	if len(parsed) > 0 {
		return string(parsed)
	}
	return "{}"
}

// callStarts: a call of the session's agent is executed, or one of the tree waits for a
// client.
func (f *folder) callStarts(r eventlog.Record, own bool, c *eventlog.ToolStart) {
	switch {
	case f.waiting[c.ToolCallID]:
		it := f.calls[c.ToolCallID]
		if it == nil {
			it = f.functionCall(r, c.ToolCallID, c.ToolName)
			f.arguments(it, f.argumentsOf(c.ToolCallID, c.Arguments))
		}
		if !it.done {
			if len(it.args) == 0 {
				f.arguments(it, "{}")
			}
			f.finish(it, statusCompleted)
		}
	case own && c.ToolName != agentloop.FinishTool:
		f.serverCall(r, c.ToolCallID, c.ToolName, c.Arguments)
	}
}

// serverCall begins a call that the server executes. Clients leave an mcp_call alone.
func (f *folder) serverCall(r eventlog.Record, call, name string, args []byte) *item {
	if it := f.calls[call]; it != nil {
		if it.kind == kindMCP { // it is executed again
			return it
		}
		if !it.done {
			it.gone = true
			f.finish(it, statusIncomplete)
		}
	}
	it := f.newItem(r, kindMCP)
	it.name, it.approval = name, f.state.approvals[call]
	f.calls[call] = it
	f.added(it)
	f.send("response.mcp_call.in_progress", object{"item_id": it.id, "output_index": it.index})
	f.arguments(it, f.argumentsOf(call, args))
	f.send("response.mcp_call_arguments.done", object{"item_id": it.id, "output_index": it.index, "arguments": string(it.args)})
	return it
}

// asks shows that a call needs an approval, which the next request brings.
func (f *folder) asks(r eventlog.Record, c *eventlog.ToolApprovalRequest) {
	it := f.newItem(r, kindApproval)
	it.id, it.name, it.args = approvalItemID(c.ApprovalID), c.ToolName, c.Input
	f.added(it)
	f.finish(it, statusCompleted)
}

func (f *folder) approved(c *eventlog.ToolApprovalResponse) {
	if f.state.approvals == nil {
		f.state.approvals = map[string]string{}
	}
	f.state.approvals[c.ToolCallID] = approvalItemID(c.ApprovalID)
}

// refused: a call can't be executed, and the model has learnt that. It is not the client's.
func (f *folder) refused(r eventlog.Record, c *eventlog.ToolInputError) {
	if it := f.calls[c.ToolCallID]; it != nil && it.kind == kindFunction && !it.done {
		it.gone = true
		f.finish(it, statusIncomplete)
		return
	}
	if f.tools[c.ToolName] {
		return
	}
	it := f.serverCall(r, c.ToolCallID, c.ToolName, c.PartialInput)
	it.failure = c.Error
	f.finish(it, statusFailed)
}

// callEnds: a call has its result. Of a client's tool, the response has its output only if
// the run has continued with it.
func (f *folder) callEnds(r eventlog.Record, own bool, c *eventlog.ToolEnd) {
	it := f.calls[c.ToolCallID]
	ours := c.ProviderExecuted != nil && *c.ProviderExecuted
	switch {
	case it != nil && it.kind == kindFunction && it.done && !it.gone:
		out := f.newItem(r, kindOutput)
		out.call, out.result = it.call, web.TextOf(c.Result, "")
		if c.Error != nil {
			out.result = *c.Error
		}
		f.added(out)
		f.finish(out, statusCompleted)
		return
	case !own || c.ToolName == agentloop.FinishTool || it == nil && (!ours || denied(c)):
		return
	case it == nil: // it began in an earlier run
		it = f.serverCall(r, c.ToolCallID, c.ToolName, nil)
	case it.done:
		return
	}
	if c.Error != nil {
		it.failure = *c.Error
		f.finish(it, statusFailed)
		return
	}
	it.result = web.TextOf(c.Result, "")
	f.finish(it, statusCompleted)
}

// denied reports whether a call has failed since a person did not approve it.
func denied(c *eventlog.ToolEnd) bool {
	return c.ErrorCode != nil && (*c.ErrorCode == agentloop.CodeApprovalDenied || strings.HasPrefix(*c.ErrorCode, "client_tool_"))
}
