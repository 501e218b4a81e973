package agui

import (
	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
)

func (f *folder) takeChunk(r eventlog.Record, c eventlog.Chunk) {
	own := r.Agent == f.session
	switch c := c.(type) {
	case *eventlog.ToolApprovalRequest:
		if !own {
			f.foreign(c.ToolCallID, c.ToolName, argumentsText(c.Input))
		}
	case *eventlog.ToolStart: // of a client's tool it comes when the call waits
		if f.waits[c.ToolCallID] {
			f.foreign(c.ToolCallID, c.ToolName, argumentsText(c.Arguments))
		}
	case *eventlog.SubAgentStart:
		f.childBegins(r.Agent, c)
	case *eventlog.SubAgentEnd:
		f.childEnds(r.Agent, c)
	case *eventlog.CustomEvent:
		if len(c.Data) > 0 {
			f.send(typeCustom, object{"name": c.EventName, "value": c.Data})
		}
	default:
		if own {
			f.ownChunk(r, c)
		}
	}
}

func (f *folder) ownChunk(r eventlog.Record, c eventlog.Chunk) {
	switch c := c.(type) {
	case *eventlog.StepStart:
		f.closeStep()
		f.begun, f.thinks = 0, false
		f.answer, f.step = stepOf(c), stepOf(c)
		f.send(typeStepStarted, object{"stepName": f.step})
	case *eventlog.StepEnd, *eventlog.StepDiscarded:
		f.closeStep()
	case *eventlog.TextDelta:
		f.say(r, c.Delta)
	case *eventlog.Thinking:
		if c.IsComplete { // the pieces have come before
			f.closeThought()
		} else {
			f.think(r, c.Content)
		}
	case *eventlog.ToolArgStreamStart:
		f.shown(r)
		f.callBegins(c.ToolCallID, c.ToolName)
	case *eventlog.ToolArgStreamDelta:
		f.arguments(c.ToolCallID, c.Delta)
	case *eventlog.ToolArgStreamEnd:
		f.callComplete(c.ToolCallID)
	case *eventlog.StatePatch:
		if len(c.Patches) > 0 {
			f.patched = append(f.patched, r.Sequence)
			f.send(typeStateDelta, object{"delta": c.Patches})
		}
	}
}

// stepOf returns the name of a step: its id, which is that of its message, too.
func stepOf(c *eventlog.StepStart) string {
	if c.StepID != nil {
		return *c.StepID
	}
	return stepID(0, c.Step)
}

// shown notes that a client sees a part of an answer that is not recorded.
func (f *folder) shown(r eventlog.Record) {
	if f.begun == 0 {
		f.begun = r.Sequence
	}
}

// say adds to the message of the step.
func (f *folder) say(r eventlog.Record, delta string) {
	if delta == "" {
		return
	}
	f.shown(r)
	f.closeThought()
	if !f.text {
		f.text = true
		f.send(typeTextStart, object{"messageId": f.answer, "role": "assistant"})
	}
	f.send(typeTextContent, object{"messageId": f.answer, "delta": delta})
}

// think adds to the reasoning of the step.
func (f *folder) think(r eventlog.Record, delta string) {
	if delta == "" {
		return
	}
	f.shown(r)
	f.thinks = true
	f.closeText()
	id := f.answer + reasoningSuffix
	if !f.thought {
		f.thought = true
		f.openThought()
	}
	f.send(typeReasoningContent, object{"messageId": id, "delta": delta})
}

func (f *folder) openThought() {
	id := f.answer + reasoningSuffix
	f.send(typeReasoningStart, object{"messageId": id})
	f.send(typeReasoningBegins, object{"messageId": id, "role": "reasoning"})
}

func (f *folder) closeText() {
	if f.text {
		f.text = false
		f.send(typeTextEnd, object{"messageId": f.answer})
	}
}

func (f *folder) closeThought() {
	if f.thought {
		f.thought = false
		id := f.answer + reasoningSuffix
		f.send(typeReasoningEnds, object{"messageId": id})
		f.send(typeReasoningEnd, object{"messageId": id})
	}
}

// close ends the messages and calls that are open.
func (f *folder) close() {
	f.closeThought()
	f.closeText()
	for _, id := range f.openCalls() {
		f.callComplete(id)
	}
}

// closeStep ends all that is open.
func (f *folder) closeStep() {
	f.close()
	if f.step != "" {
		f.send(typeStepFinished, object{"stepName": f.step})
		f.step = ""
	}
}

// commit shows what the model's answer has that was not streamed.
func (f *folder) commit(what *fact.ModelTurn) {
	f.close()
	f.begun, f.thinks = 0, false
	for _, p := range what.Parts {
		if p.ToolCall == nil || p.ToolCall.Name == agentloop.FinishTool {
			continue
		}
		if f.calls[p.ToolCall.ID] == nil {
			f.wholeCall(p.ToolCall.ID, p.ToolCall.Name, what.StepID, argumentsText(p.ToolCall.Arguments))
		}
		f.calls[p.ToolCall.ID].answer = true
	}
}
