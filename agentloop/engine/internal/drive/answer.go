package drive

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine/internal/record"
	"github.com/helixd/helixd/agentloop/internal/shorten"
	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
)

// modelAnswer collects a streaming answer and writes its chunks.
type modelAnswer struct {
	r      *task
	stepID string
	step   int
	begun  bool  // step_start is queued or written
	err    error // of writing
	parts  []*partText
	calls  map[int]*callText // by position in the answer
	ids    map[string]bool   // ids given to calls of this answer
	size   int               // of what the parts hold, in bytes
}

// partText is a part of the answer while it grows: text, reasoning, a call, or
// what comes whole.
type partText struct {
	kind   projector.PartialKind // empty of what comes whole
	text   strings.Builder
	call   *callText
	source *fact.Source
	file   *fact.MessageFile
	data   json.RawMessage // the provider's
	ended  bool
}

type callText struct {
	id, name string
	args     strings.Builder
	ended    bool
}

// add writes the chunk of an event. A *model.Error refuses the answer: its stream may have no end.
func (a *modelAnswer) add(ctx context.Context, ev model.Event) error {
	if a.size += sizeOf(ev); a.size+len(a.parts)*leastPart > eventlog.MaxPayload {
		return errTooLong
	}
	base := a.r.base(a.step)
	switch ev := ev.(type) {
	case model.TextDelta:
		return a.text(ctx, projector.PartialText, ev.Text, &eventlog.TextDelta{Delta: ev.Text, Base: base})
	case model.ReasoningDelta:
		return a.text(ctx, projector.PartialReasoning, ev.Text, &eventlog.Thinking{Content: ev.Text, Base: base})
	case model.PartEnd:
		return a.end(ctx, ev.Data)
	case model.Source:
		return a.source(ctx, ev)
	case model.File:
		return a.file(ctx, ev)
	case model.ToolCallStart:
		if len(a.ids) == agentloop.MaxCalls {
			return errExcess
		}
		if err := a.end(ctx, nil); err != nil {
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

// text appends to the part that grows if that is of the same kind, otherwise it
// begins one.
func (a *modelAnswer) text(ctx context.Context, kind projector.PartialKind, text string, c eventlog.Chunk) error {
	p := a.growing()
	if p == nil || p.kind != kind {
		if err := a.end(ctx, nil); err != nil {
			return err
		}
		p = &partText{kind: kind}
		a.parts = append(a.parts, p)
	}
	p.text.WriteString(text)
	return a.write(ctx, c)
}

// growing is the text or the reasoning that more may be appended to, or nil.
func (a *modelAnswer) growing() *partText {
	if n := len(a.parts); n > 0 {
		switch p := a.parts[n-1]; p.kind {
		case projector.PartialText, projector.PartialReasoning:
			if !p.ended {
				return p
			}
		}
	}
	return nil
}

// end ends the part that grows: a reasoning block gets its closing chunk, which
// holds the whole of it. The provider's data goes with the part, or into a separate
// one.
func (a *modelAnswer) end(ctx context.Context, data json.RawMessage) error {
	p := a.growing()
	if p == nil {
		if data != nil {
			a.parts = append(a.parts, &partText{data: data})
		}
		return nil
	}
	p.ended, p.data = true, data
	if p.kind != projector.PartialReasoning {
		return nil
	}
	return a.write(ctx, &eventlog.Thinking{Content: p.text.String(), IsComplete: true, Base: a.r.base(a.step)})
}

// close ends the part that grows, and all calls.
func (a *modelAnswer) close(ctx context.Context) error {
	if err := a.end(ctx, nil); err != nil {
		return err
	}
	for _, p := range a.parts {
		if err := a.endCall(ctx, p.call); err != nil {
			return err
		}
	}
	return nil
}

func (a *modelAnswer) endCall(ctx context.Context, c *callText) error {
	if c == nil || c.ended {
		return nil
	}
	c.ended = true
	return a.write(ctx, &eventlog.ToolArgStreamEnd{ToolCallID: c.id, Base: a.r.base(a.step)})
}

// errNoCall: an adapter sends a piece of a call that it has not begun.
var errNoCall = fmt.Errorf("%w: a piece of a tool call that was not begun", ErrPanicked)

// write queues a chunk: the log's pace does not hold up the model's.
func (a *modelAnswer) write(ctx context.Context, c eventlog.Chunk) error {
	return a.put(ctx, a.r.write, a.r.chunk(c))
}

// commit appends the record that makes the answer final.
func (a *modelAnswer) commit(ctx context.Context, f record.Draft) error {
	return a.put(ctx, a.r.appendOn, f)
}

// put begins the step with the first thing that there is to say: a call that
// fails before leaves nothing to be truncated.
func (a *modelAnswer) put(ctx context.Context, send func(context.Context, ...record.Draft) error, f record.Draft) error {
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
func (a *modelAnswer) uniqueID(id string, position int) string {
	if id == "" || eventlog.ValidateID(id) != nil {
		id = fmt.Sprintf("call_%d_%d", a.step, position)
	}
	unique := a.r.uniqueCallID(id)
	a.ids[unique] = true
	return unique
}

// uniqueCallID makes a call's id unique in the tree. The id stays the task's
// until it ends: agents of a tree answer at the same time, and what they call
// is in the state only when the answers are recorded.
func (t *task) uniqueCallID(id string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	unique := id
	for n := 2; t.ids[unique] != nil || t.tree.HasCall(unique); n++ {
		suffix := fmt.Sprintf("-%d", n)
		unique = shorten.Text(id, eventlog.MaxID-len(suffix)) + suffix
	}
	t.ids[unique] = t
	return unique
}

// toolName replaces a name that no record can hold; there is no such tool.
func toolName(name string) string {
	if eventlog.ValidateID(name) != nil {
		return "unnamed"
	}
	return name
}
