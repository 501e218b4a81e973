package uimessage

import (
	"encoding/json"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
)

// The parts of a tool call.
type (
	toolPart struct {
		Type             string `json:"type"`
		ToolCallID       string `json:"toolCallId"`
		ToolName         string `json:"toolName,omitempty"`
		ProviderExecuted *bool  `json:"providerExecuted,omitempty"`
	}
	toolInputDelta struct {
		Type       string `json:"type"`
		ToolCallID string `json:"toolCallId"`
		Delta      string `json:"inputTextDelta"`
	}
	toolInput struct {
		toolPart
		Input json.RawMessage `json:"input"`
	}
	toolInputError struct {
		toolInput
		ErrorText string `json:"errorText"`
	}
	toolApproval struct {
		Type       string `json:"type"`
		ApprovalID string `json:"approvalId"`
		ToolCallID string `json:"toolCallId"`
	}
	toolOutput struct {
		toolPart
		Output json.RawMessage `json:"output"`
	}
	toolOutputError struct {
		toolPart
		ErrorText string `json:"errorText"`
	}
)

func (e *Encoder) call(id, name string) *call {
	c := e.calls[id]
	if c == nil {
		c = &call{name: name}
		e.calls[id] = c
	}
	return c
}

// announce begins the part of a call, once.
func (e *Encoder) announce(id, name string) *call {
	c := e.call(id, name)
	if c.announced == nil {
		c.announced = new(e.at)
		e.openInput(id, c)
	}
	return c
}

func (e *Encoder) openInput(id string, c *call) {
	e.emit(toolPart{Type: "tool-input-start", ToolCallID: id, ToolName: c.name})
	c.open, c.streamed = true, false
}

func (e *Encoder) inputDelta(d *eventlog.ToolArgStreamDelta) {
	c := e.calls[d.ToolCallID]
	if c == nil || !c.open {
		return // without its beginning it is of no use; the whole input follows
	}
	c.streamed = true
	e.emit(toolInputDelta{Type: "tool-input-delta", ToolCallID: d.ToolCallID, Delta: d.Delta})
}

// toolChunk shows a call; it reports false if the chunk is not about one.
func (e *Encoder) toolChunk(c eventlog.Chunk) bool {
	if e.o.Earlier[callOf(c)] {
		return true
	}
	switch c := c.(type) {
	case *eventlog.ToolStart:
		e.toolStart(c)
	case *eventlog.ToolApprovalRequest:
		e.closeBlock()
		call := e.announce(c.ToolCallID, c.ToolName)
		// Early clients of version 6 send no answer for a call of the server's.
		e.inputAvailable(c.ToolCallID, call, nil, c.Input)
		if _, answered := e.o.Answered[c.ToolCallID]; !answered {
			e.emit(toolApproval{Type: "tool-approval-request", ApprovalID: c.ApprovalID, ToolCallID: c.ToolCallID})
		}
	case *eventlog.ToolApprovalResponse:
		if call := e.shown(c.ToolCallID); call != nil && !c.Approved && call.over == nil {
			call.over = new(e.at)
			e.emit(toolPart{Type: "tool-output-denied", ToolCallID: c.ToolCallID})
		}
	case *eventlog.ToolInputError:
		e.inputError(c)
	case *eventlog.ToolOutputError:
		e.outputError(c.ToolCallID, c.Error)
	case *eventlog.ToolEnd:
		e.toolEnd(c)
	case *eventlog.ToolArgStreamEnd:
	default:
		return false
	}
	return true
}

// callOf returns the id of the call that a chunk of toolChunk is about, or "".
func callOf(c eventlog.Chunk) string {
	switch c := c.(type) {
	case *eventlog.ToolStart:
		return c.ToolCallID
	case *eventlog.ToolApprovalRequest:
		return c.ToolCallID
	case *eventlog.ToolApprovalResponse:
		return c.ToolCallID
	case *eventlog.ToolInputError:
		return c.ToolCallID
	case *eventlog.ToolOutputError:
		return c.ToolCallID
	case *eventlog.ToolEnd:
		return c.ToolCallID
	}
	return ""
}

func (e *Encoder) toolStart(c *eventlog.ToolStart) {
	e.closeBlock()
	call := e.announce(c.ToolCallID, c.ToolName)
	answer, answered := e.o.Answered[c.ToolCallID]
	switch {
	case !call.client:
		e.inputAvailable(c.ToolCallID, call, &yes, c.Arguments)
	case !answered:
		e.inputAvailable(c.ToolCallID, call, nil, c.Arguments)
	case answer.Failed: // clients complete what streams with an output only
		e.inputAvailable(c.ToolCallID, call, &yes, c.Arguments)
	default:
		e.inputStreamed(c.ToolCallID, call, c.Arguments)
	}
}

// inputStreamed shows the input of a client's call that is answered. If the
// input were available, the client would execute the call again: the input
// comes as it would while it streams, and the output completes it.
func (e *Encoder) inputStreamed(id string, c *call, input json.RawMessage) {
	c.input = input
	if !c.open {
		e.openInput(id, c)
	}
	if !c.streamed {
		c.streamed = true
		e.emit(toolInputDelta{Type: "tool-input-delta", ToolCallID: id, Delta: string(input)})
	}
}

// yes and no are what providerExecuted can be.
var yes, no = true, false

// inputAvailable shows a call's input. Clients execute what says nothing of who
// does.
func (e *Encoder) inputAvailable(id string, c *call, byUs *bool, input json.RawMessage) {
	c.open, c.input = true, input
	e.emit(toolInput{toolPart{
		Type: "tool-input-available", ToolCallID: id, ToolName: c.name, ProviderExecuted: byUs,
	}, orNull(input)})
}

// inputError shows a call whose input can't be used. It is shown as executed
// by the server, since clients send their own calls back when they are finished.
func (e *Encoder) inputError(c *eventlog.ToolInputError) {
	e.closeBlock()
	call := e.call(c.ToolCallID, c.ToolName)
	if call.announced == nil {
		call.announced = new(e.at)
	}
	call.open, call.over = true, new(e.at)
	input := c.PartialInput
	if input == nil {
		input = json.RawMessage("{}")
	}
	e.emit(toolInputError{toolInput{toolPart{
		Type: "tool-input-error", ToolCallID: c.ToolCallID, ToolName: c.ToolName, ProviderExecuted: &yes,
	}, input}, c.Error})
}

func (e *Encoder) outputError(id, text string) {
	call := e.shown(id)
	if call == nil || call.over != nil {
		return
	}
	call.over = new(e.at)
	e.emit(toolOutputError{toolPart{Type: "tool-output-error", ToolCallID: id, ProviderExecuted: call.byUs()}, text})
}

func (e *Encoder) toolEnd(c *eventlog.ToolEnd) {
	call := e.shown(c.ToolCallID)
	switch {
	case call == nil || call.over != nil:
	case c.Error != nil:
		e.outputError(c.ToolCallID, *c.Error)
	default:
		by := c.ProviderExecuted
		if by == nil {
			by = call.byUs()
		}
		e.emit(toolOutput{toolPart{
			Type: "tool-output-available", ToolCallID: c.ToolCallID, ProviderExecuted: by,
		}, orNull(c.Result)})
	}
}

// submitted shows what a client has answered, before the run continues and takes
// it up: the first answer counts.
func (e *Encoder) submitted(f *fact.ResultSubmitted) {
	call := e.shown(f.ToolCallID)
	if call == nil || !call.client || call.over != nil || f.Kind != fact.SubmitClientResult {
		return
	}
	if f.Error != "" {
		e.outputError(f.ToolCallID, f.Error)
		return
	}
	call.over = new(e.at)
	e.emit(toolOutput{toolPart{
		Type: "tool-output-available", ToolCallID: f.ToolCallID, ProviderExecuted: call.byUs(),
	}, orNull(f.Result)})
}

// shown returns a call that the message has, or nil: a result that comes after
// a further user message belongs to an earlier one. After Reopen it begins the
// call's part again: a result without one ends a client's stream.
func (e *Encoder) shown(id string) *call {
	c := e.calls[id]
	switch {
	case c == nil || c.announced == nil:
		return nil
	case c.open || c.over != nil:
	case c.client:
		e.inputStreamed(id, c, orNull(c.input))
	default:
		e.inputAvailable(id, c, &yes, c.input)
	}
	return c
}

// truncated forgets the parts of records that a range truncates: the call's next execution
// makes them again, also for a client that never saw these.
func (c *call) truncated(g eventlog.Range) {
	if c.announced != nil && g.Covers(*c.announced) {
		c.announced, c.open, c.streamed = nil, false, false
	}
	if c.over != nil && g.Covers(*c.over) {
		c.over = nil
	}
}

// byUs reports whether the server has executed a call.
func (c *call) byUs() *bool {
	if c.client {
		return &no
	}
	return &yes
}

func orNull(raw json.RawMessage) json.RawMessage {
	if raw == nil {
		return json.RawMessage("null")
	}
	return raw
}
