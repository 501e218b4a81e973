package uimessage

import (
	"encoding/json"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
)

func (e *Encoder) fact(r eventlog.Record, f fact.Fact) {
	switch f := f.(type) {
	case *fact.ModelTurn:
		if r.Agent == e.o.Root {
			e.modelTurn(f)
		}
	case *fact.CallSuspended: // before the call's tool_start or approval request
		e.suspended(r, f)
	case *fact.ResultSubmitted:
		e.submitted(f)
	case *fact.RunEnded: // also before a further run of the turn
		if r.Agent == e.o.Root {
			e.closeStep()
		}
	case *eventlog.Truncated:
		e.truncated(f, r.Sequence)
	}
}

// modelTurn shows the calls of an answer in the model's order, regardless of the order in which they
// begin. The answer is complete.
func (e *Encoder) modelTurn(f *fact.ModelTurn) {
	for _, p := range f.Parts {
		if p.ToolCall != nil {
			e.closeBlock()
			e.announce(p.ToolCall.ID, p.ToolCall.Name)
		}
	}
}

// truncated ends the root's open block, whose records no longer count, and numbers
// the next blocks from the marker's sequence. Only some clients know the numbers of
// the truncated blocks; the sequence is greater than any of these, since each block
// has a record. A step and calls whose parts were made by truncated records are forgotten: a
// client that comes later has none of them.
func (e *Encoder) truncated(f *eventlog.Truncated, marker uint64) {
	for _, g := range f.Ranges {
		for _, c := range e.calls {
			c.truncated(g)
		}
		if e.step != nil && g.Covers(*e.step) {
			e.closeStep()
		}
		if g.AgentID != e.o.Root || g.CallID != "" {
			continue
		}
		e.closeBlock()
		for _, kind := range []string{"text", "reasoning"} {
			e.blocks[kind] = max(e.blocks[kind], marker)
		}
	}
}

func (e *Encoder) chunk(r eventlog.Record, c eventlog.Chunk) {
	if r.Agent != e.o.Root {
		e.subAgent(r, c)
		return
	}
	switch c := c.(type) {
	case *eventlog.StepStart:
		e.startStep()
		e.asking = false
	case *eventlog.StepEnd:
		if c.FinishReason != nil {
			e.finishReason = string(*c.FinishReason)
		}
		e.closeStep()
	case *eventlog.TextDelta:
		e.delta("text", c.Delta)
	case *eventlog.Thinking:
		e.thinking(c)
	case *eventlog.ToolArgStreamStart:
		e.closeBlock()
		e.announce(c.ToolCallID, c.ToolName)
	case *eventlog.ToolArgStreamDelta:
		e.inputDelta(c)
	case *eventlog.SourceURL:
		e.closeBlock()
		e.emit(SourceURL{Type: "source-url", SourceID: c.SourceID, URL: c.URL, Title: orEmpty(c.Title)})
	case *eventlog.SourceDocument:
		e.closeBlock()
		e.emit(SourceDocument{
			Type: "source-document", SourceID: c.SourceID, MediaType: c.MediaType, Title: c.Title, Filename: orEmpty(c.Filename),
		})
	case *eventlog.File: // clients refuse its name
		e.closeBlock()
		e.emit(File{Type: "file", URL: c.URL, MediaType: c.MediaType})
	case *eventlog.StepDiscarded:
		e.closeStep()
		if e.o.Checkpoints {
			e.data(r, c)
		}
	case *eventlog.CheckpointCreated, *eventlog.StepCommitted:
		if e.o.Checkpoints {
			e.data(r, c)
		}
	case *eventlog.RunInterrupted:
		e.interruption = orEmpty(c.Reason)
		e.data(r, c)
	case *eventlog.Error:
		e.error(r, c)
	default:
		if !e.toolChunk(c) {
			e.data(r, c)
		}
	}
}

func (e *Encoder) data(r eventlog.Record, c eventlog.Chunk) {
	if d := chunkData(c, r.Payload); d != nil {
		e.emit(*d)
	}
}

// thinking is a piece of reasoning. The whole block follows on its pieces, or
// comes alone.
func (e *Encoder) thinking(c *eventlog.Thinking) {
	streamed := e.block != nil && e.block.kind == "reasoning"
	if !c.IsComplete || !streamed {
		e.delta("reasoning", c.Content)
	}
	if c.IsComplete {
		e.closeBlock()
	}
}

// error shows a failure. The end of the message shows an abort.
func (e *Encoder) error(r eventlog.Record, c *eventlog.Error) {
	switch {
	case c.Recoverable:
		e.emit(Data{Type: "data-error", Data: r.Payload, Transient: true})
	case c.Code != nil && *c.Code == codeAborted:
	default:
		e.closeStep()
		e.fail(c.Error)
	}
}

// codeAborted is the code of an aborted run.
const codeAborted = "aborted"

// suspended records who executes or decides about a call. Those of
// sub-agents that the user answers have a step to themselves: clients send
// answers when all calls of the last step have one, and the call that the
// sub-agent works on has none.
func (e *Encoder) suspended(r eventlog.Record, f *fact.CallSuspended) {
	if f.Kind == fact.PendingChild {
		return
	}
	call := e.call(f.ToolCallID, f.ToolName)
	call.client = f.Kind == fact.PendingClient
	if r.Agent == e.o.Root {
		return
	}
	call.asks = true
	if call.announced == nil && !e.asking {
		e.startStep()
		e.asking = true
	}
}

// subAgent shows what a sub-agent does: to clients that are there, and as a
// part like the root's what the user has to answer (see docs/reference/protocol.md#chat-streams).
func (e *Encoder) subAgent(r eventlog.Record, c eventlog.Chunk) {
	if call := e.calls[callOf(c)]; call != nil && call.asks {
		e.toolChunk(c)
		return
	}
	base := eventlog.BaseOf(c)
	e.emit(Data{Type: "data-subagent-chunk", Transient: true, Data: encode(struct {
		Session string          `json:"subSessionId"`
		Agent   string          `json:"agentType"`
		Chunk   json.RawMessage `json:"chunk"`
	}{base.AgentID, base.AgentType, r.Payload})})
}

func orEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
