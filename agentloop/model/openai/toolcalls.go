package openai

import (
	"encoding/json"

	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/provider"
	"github.com/helixd/helixd/eventlog"
)

// toolCalls puts the pieces of tool calls together. A call's position is that
// of its first piece, regardless of its index.
type toolCalls struct {
	list    []*toolCall
	byIndex map[int64]*toolCall
}

type toolCall struct {
	position       int
	id, name       string
	arguments      []byte
	started, ended bool
}

func (t *toolCalls) any() bool { return len(t.list) > 0 }

// delta takes one piece of one call: a whole call, its head, or more of its
// arguments.
func (t *toolCalls) delta(d callDelta, emit func(model.Event) error) error {
	call := t.byIndex[d.index()]
	if call == nil || isNew(call, d) {
		if err := t.endComplete(emit); err != nil {
			return err
		}
		call = &toolCall{position: len(t.list)}
		t.list = append(t.list, call)
		if t.byIndex == nil {
			t.byIndex = make(map[int64]*toolCall)
		}
		t.byIndex[d.index()] = call
	}
	if call.id == "" {
		call.id = d.ID
	}
	if call.name == "" {
		call.name = d.Function.Name
	}
	if err := call.start(emit); err != nil {
		return err
	}
	return call.more(string(d.Function.Arguments), emit)
}

// isNew says whether d is of another call than the one known at its index:
// there are servers that send whole calls and no index at all, some of them
// without an id or with the same one for all.
func isNew(call *toolCall, d callDelta) bool {
	if !call.started || d.Function.Name == "" {
		return false
	}
	if d.ID != "" && d.ID != call.id {
		return true
	}
	return json.Valid(call.arguments) && !repeatsHead(call, d)
}

// repeatsHead says whether d only says again which call it is of, as servers
// do that send the head with every piece, the empty last one included.
func repeatsHead(call *toolCall, d callDelta) bool {
	return d.Index != nil && d.ID != "" && d.ID == call.id &&
		d.Function.Name == call.name && d.Function.Arguments == ""
}

// endComplete ends the calls that cannot continue. Others stay open, because
// calls may interleave.
func (t *toolCalls) endComplete(emit func(model.Event) error) error {
	for _, call := range t.list {
		if !call.started || !json.Valid(call.arguments) {
			continue
		}
		if err := call.end(emit); err != nil {
			return err
		}
	}
	return nil
}

// end ends the calls that are still open.
func (t *toolCalls) end(emit func(model.Event) error) error {
	for _, call := range t.list {
		if err := call.end(emit); err != nil {
			return err
		}
	}
	return nil
}

// start announces the call as soon as its name is known.
func (c *toolCall) start(emit func(model.Event) error) error {
	if c.started || c.name == "" {
		return nil
	}
	c.started = true
	if err := emit(model.ToolCallStart{Call: c.position, ID: c.id, Name: c.name}); err != nil {
		return err
	}
	if len(c.arguments) == 0 {
		return nil
	}
	return emit(model.ToolCallDelta{Call: c.position, Text: string(c.arguments)})
}

// more adds to the arguments; before the start it keeps them.
func (c *toolCall) more(arguments string, emit func(model.Event) error) error {
	if arguments == "" {
		return nil
	}
	if c.ended {
		return provider.Broken("the provider added to the complete arguments of a tool call")
	}
	c.arguments = append(c.arguments, arguments...)
	if !c.started {
		if len(c.arguments) > eventlog.MaxPayload { // no record could hold them
			return provider.NamelessCall()
		}
		return nil
	}
	return emit(model.ToolCallDelta{Call: c.position, Text: arguments})
}

func (c *toolCall) end(emit func(model.Event) error) error {
	if c.ended {
		return nil
	}
	if !c.started {
		return provider.NamelessCall()
	}
	c.ended = true
	return emit(model.ToolCallEnd{Call: c.position})
}
