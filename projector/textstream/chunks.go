package textstream

import "github.com/helixd/helixd/eventlog"

// chunk encodes a chunk of an agent. Other kinds than these are not shown.
func (e *Encoder) chunk(a *agent, c eventlog.Chunk) {
	switch c := c.(type) {
	case *eventlog.TextDelta:
		e.close(a, ofKind(kindReasoning))
		e.grow(a, kindText, c.Delta)
	case *eventlog.Thinking:
		e.thinking(a, c)
	case *eventlog.ToolArgStreamStart:
		e.beginInput(a, c)
	case *eventlog.ToolArgStreamDelta:
		e.growInput(a, c)
	case *eventlog.ToolArgStreamEnd:
		e.close(a, inputOf(c.ToolCallID))
	case *eventlog.ToolStart:
		e.toolCall(a, c.ToolCallID, c.ToolName, c.Arguments)
	case *eventlog.ToolApprovalRequest:
		e.toolCall(a, c.ToolCallID, c.ToolName, c.Input)
	case *eventlog.ToolInputError:
		e.toolCall(a, c.ToolCallID, c.ToolName, c.PartialInput)
		e.toolResult(a, c.ToolCallID, c.ToolName, failed(c.Error))
	case *eventlog.ToolOutputError:
		e.toolResult(a, c.ToolCallID, c.ToolName, failed(c.Error))
	case *eventlog.ToolEnd:
		output := c.Result
		if c.Error != nil {
			output = failed(*c.Error)
		}
		e.toolResult(a, c.ToolCallID, c.ToolName, output)
	case *eventlog.SourceURL, *eventlog.SourceDocument, *eventlog.File:
		e.close(a, prose) // they separate blocks
	case *eventlog.SubAgentStart:
		e.parents[c.SubSessionID] = c.CallID
	case *eventlog.StepStart:
		e.endStep(a) // one that broke off
		if a.id == e.root {
			e.step = new(e.at)
			e.send(bare{Type: "start-step"})
		}
	case *eventlog.StepEnd:
		e.endStep(a)
		if a.id == e.root && c.FinishReason != nil {
			e.reason = *c.FinishReason
		}
	case *eventlog.StepDiscarded:
		e.endStep(a)
	case *eventlog.Error:
		if a.id == e.root && !c.Recoverable {
			e.fail(c.Error)
		}
	}
}

// thinking encodes a piece of reasoning. The whole that follows on pieces only
// ends them. A whole without pieces is a block that ends with what comes next.
func (e *Encoder) thinking(a *agent, c *eventlog.Thinking) {
	if c.IsComplete && a.reasoned {
		a.reasoned = false
		e.close(a, ofKind(kindReasoning))
		return
	}
	e.close(a, ofKind(kindText))
	if !a.reasoned {
		e.close(a, ofKind(kindReasoning)) // it was whole
	}
	a.reasoned = !c.IsComplete
	e.grow(a, kindReasoning, c.Content)
}
