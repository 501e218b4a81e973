package textstream

import (
	"bytes"
	"encoding/json"

	"github.com/helixd/helixd/eventlog"
)

// call is a tool call of an agent.
type call struct {
	input  json.RawMessage  // as the model's turn has it
	called *eventlog.Record // of the tool-call; nil: there is none
	over   *eventlog.Record // of the tool-result; nil: there is none
}

// truncated forgets the frames of records that a range truncates: the call's next execution
// makes them again, also for a client that never saw these.
func (c *call) truncated(g eventlog.Range) {
	for _, shown := range []**eventlog.Record{&c.called, &c.over} {
		if *shown != nil && g.Covers(**shown) {
			*shown = nil
		}
	}
}

func (a *agent) call(id string) *call {
	c := a.calls[id]
	if c == nil {
		c = &call{}
		a.calls[id] = c
	}
	return c
}

func (e *Encoder) beginInput(a *agent, c *eventlog.ToolArgStreamStart) {
	e.close(a, prose)
	e.close(a, inputOf(c.ToolCallID)) // of an attempt that broke off
	b := &block{kind: kindInput, id: c.ToolCallID, toolName: c.ToolName, since: e.at.Sequence}
	a.open = append(a.open, b)
	e.announce(a, b)
}

func (e *Encoder) growInput(a *agent, c *eventlog.ToolArgStreamDelta) {
	if b := a.find(kindInput, c.ToolCallID); b != nil {
		e.announce(a, b)
		e.send(inputDelta{Type: "tool-input-delta", ID: b.id, Delta: c.Delta, Metadata: e.parent(a)})
	}
}

// toolCall shows a call, once: a tool starts again after an approval. After a crash it is
// shown again, if its first start was truncated.
func (e *Encoder) toolCall(a *agent, id, name string, input json.RawMessage) {
	if e.earlier[id] {
		return
	}
	e.close(a, prose)
	e.close(a, inputOf(id))
	c := a.call(id)
	if c.called != nil {
		return
	}
	if !isObject(input) {
		input = c.input
	}
	if !isObject(input) {
		input = json.RawMessage("{}")
	}
	c.called = new(e.at)
	e.send(toolCall{Type: "tool-call", ToolCallID: id, ToolName: name, Input: input, Metadata: e.parent(a)})
}

// toolResult shows how a call has ended, once: the log repeats a failure when the
// call is finished. A call that was not shown before is shown first, except one of an
// earlier message.
func (e *Encoder) toolResult(a *agent, id, name string, output json.RawMessage) {
	c := a.call(id)
	if c.over != nil || e.earlier[id] {
		return
	}
	c.over = new(e.at)
	if c.input != nil {
		e.toolCall(a, id, name, c.input)
	}
	e.close(a, prose)
	e.close(a, inputOf(id))
	e.send(toolResult{Type: "tool-result", ToolCallID: id, ToolName: name, Output: output, Metadata: e.parent(a)})
}

// failed is the output of a call that has failed.
func failed(text string) json.RawMessage {
	return encode(struct {
		Error string `json:"error"`
	}{text})
}

// isObject reports whether valid JSON is an object.
func isObject(raw json.RawMessage) bool {
	return bytes.HasPrefix(bytes.TrimLeft(raw, " \t\r\n"), []byte("{"))
}
