package agentloop

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
)

// answer collects a streaming answer and writes its chunks.
type answer struct {
	r      *task
	stepID string
	step   int
	begun  bool  // step_start is queued or written
	err    error // of writing
	parts  []*partText
	calls  map[int]*callText // by position in the answer
	ids    map[string]bool   // ids given to calls of this answer
}

// partText is a part of the answer while it grows: text, reasoning or a call.
type partText struct {
	kind projector.PartialKind
	text strings.Builder
	call *callText
}

type callText struct {
	id, name string
	args     strings.Builder
	ended    bool
}

// add writes the chunk of an event.
func (a *answer) add(ctx context.Context, ev model.Event) error {
	base := a.r.base(a.step)
	switch ev := ev.(type) {
	case model.TextDelta:
		return a.text(ctx, projector.PartialText, ev.Text, &eventlog.TextDelta{Delta: ev.Text, Base: base})
	case model.ReasoningDelta:
		return a.text(ctx, projector.PartialReasoning, ev.Text, &eventlog.Thinking{Content: ev.Text, Base: base})
	case model.ToolCallStart:
		if err := a.close(ctx, false); err != nil {
			return err
		}
		c := &callText{id: a.uniqueID(ev.ID, ev.Call), name: toolName(ev.Name)}
		a.calls[ev.Call] = c
		a.parts = append(a.parts, &partText{kind: projector.PartialToolCall, call: c})
		return a.write(ctx, &eventlog.ToolArgStreamStart{ToolCallID: c.id, ToolName: c.name, Base: base})
	case model.ToolCallDelta:
		c := a.calls[ev.Call]
		if c == nil {
			return errNoCall
		}
		c.args.WriteString(ev.Text)
		return a.write(ctx, &eventlog.ToolArgStreamDelta{ToolCallID: c.id, Delta: ev.Text, Base: base})
	case model.ToolCallEnd:
		return a.endCall(ctx, a.calls[ev.Call])
	}
	return nil
}

// text appends to the last part if that is of the same kind, else it begins
// one.
func (a *answer) text(ctx context.Context, kind projector.PartialKind, text string, c eventlog.Chunk) error {
	if len(a.parts) == 0 || a.parts[len(a.parts)-1].kind != kind {
		if err := a.close(ctx, false); err != nil {
			return err
		}
		a.parts = append(a.parts, &partText{kind: kind})
	}
	a.parts[len(a.parts)-1].text.WriteString(text)
	return a.write(ctx, c)
}

// close ends the last part: a reasoning block gets its closing chunk, which
// holds the whole of it. At the end of the answer all calls end.
func (a *answer) close(ctx context.Context, all bool) error {
	if n := len(a.parts); n > 0 && a.parts[n-1].kind == projector.PartialReasoning {
		whole := a.parts[n-1].text.String()
		err := a.write(ctx, &eventlog.Thinking{Content: whole, IsComplete: true, Base: a.r.base(a.step)})
		if err != nil {
			return err
		}
	}
	if !all {
		return nil
	}
	for _, p := range a.parts {
		if err := a.endCall(ctx, p.call); err != nil {
			return err
		}
	}
	return nil
}

func (a *answer) endCall(ctx context.Context, c *callText) error {
	if c == nil || c.ended {
		return nil
	}
	c.ended = true
	return a.write(ctx, &eventlog.ToolArgStreamEnd{ToolCallID: c.id, Base: a.r.base(a.step)})
}

// errNoCall: an adapter sends a piece of a call that it has not begun.
var errNoCall = fmt.Errorf("%w: a piece of a tool call that was not begun", errPanicked)

// write queues a chunk: the log's pace does not hold up the model's.
func (a *answer) write(ctx context.Context, c eventlog.Chunk) error {
	return a.put(ctx, a.r.write, a.r.chunk(c))
}

// commit appends the record that makes the answer final.
func (a *answer) commit(ctx context.Context, f fact) error { return a.put(ctx, a.r.append, f) }

// put begins the step with the first thing that there is to say: a call that
// fails before leaves nothing to be struck.
func (a *answer) put(ctx context.Context, send func(context.Context, ...fact) error, f fact) error {
	if a.begun {
		return send(ctx, f)
	}
	start := a.r.chunk(&eventlog.StepStart{StepID: &a.stepID, Base: a.r.base(a.step)})
	if err := send(ctx, start, f); err != nil {
		return err
	}
	a.begun = true
	return nil
}

// uniqueID makes a provider's call id unique in the tree; some repeat call_0.
func (a *answer) uniqueID(id string, position int) string {
	a.r.mu.RLock()
	defer a.r.mu.RUnlock()
	if id == "" || eventlog.ValidateID(id) != nil {
		id = fmt.Sprintf("call_%d_%d", a.step, position)
	}
	unique := id
	for n := 2; a.ids[unique] || a.r.tree.HasCall(unique); n++ {
		unique = fmt.Sprintf("%s-%d", id, n)
	}
	a.ids[unique] = true
	return unique
}

// toolName replaces a name that no record can hold; there is no such tool.
func toolName(name string) string {
	if eventlog.ValidateID(name) != nil {
		return "unnamed"
	}
	return name
}

func (a *answer) turnParts() []eventlog.TurnPart {
	parts := make([]eventlog.TurnPart, 0, len(a.parts))
	for _, p := range a.parts {
		switch p.kind {
		case projector.PartialText:
			parts = append(parts, eventlog.TurnPart{Text: p.text.String()})
		case projector.PartialReasoning:
			parts = append(parts, eventlog.TurnPart{Reasoning: p.text.String()})
		case projector.PartialToolCall:
			parts = append(parts, eventlog.TurnPart{ToolCall: &eventlog.ToolCall{
				ID: p.call.id, Name: p.call.name, Arguments: arguments(p.call.args.String()),
			}})
		}
	}
	return parts
}

// maxArgumentDepth leaves room for the records that hold arguments.
const maxArgumentDepth = eventlog.MaxDepth - 20

// arguments returns a model's arguments as JSON: as they are, or as a string
// that holds them. None at all are an empty object.
func arguments(text string) json.RawMessage {
	if strings.TrimSpace(text) == "" {
		return json.RawMessage("{}")
	}
	if raw := []byte(text); json.Valid(raw) && eventlog.Depth(raw) <= maxArgumentDepth {
		return raw
	}
	quoted, _ := json.Marshal(text)
	return quoted
}
