package anthropic

import (
	"encoding/json"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"

	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/provider"
	"github.com/helixd/helixd/eventlog"
)

// block is a content block while it streams. Blocks may interleave.
type block struct {
	kind      string
	signature strings.Builder // of thinking
	redacted  string
	call      int    // position of a tool call
	input     string // that came whole, at the start of a tool call
}

func (a *answer) startBlock(index int64, c sdk.ContentBlockStartEventContentBlockUnion) error {
	b := &block{kind: c.Type, redacted: c.Data}
	b.signature.WriteString(c.Signature)
	if a.blocks == nil {
		a.blocks = make(map[int64]*block)
	}
	a.blocks[index] = b
	if b.kind != "text" {
		// Text that was cut in blocks to cite from is one text; what it cites
		// stands after it.
		if err := a.endText(); err != nil {
			return err
		}
	}
	switch b.kind {
	case "text":
		return a.text(c.Text)
	case "thinking":
		return a.thinking(c.Thinking)
	case "tool_use":
		if c.Name == "" {
			return provider.NamelessCall()
		}
		b.call, b.input = a.calls, c.JSON.Input.Raw()
		a.calls++
		return a.emit(model.ToolCallStart{Call: b.call, ID: c.ID, Name: c.Name})
	}
	return nil
}

func (a *answer) delta(index int64, d sdk.MessageStreamEventUnionDelta) error {
	b := a.blocks[index]
	if b == nil {
		return nil
	}
	switch d.Type {
	case "text_delta":
		return a.text(d.Text)
	case "thinking_delta":
		return a.thinking(d.Thinking)
	case "signature_delta":
		if b.signature.Len()+len(d.Signature) > eventlog.MaxPayload { // no record could hold it
			return provider.Broken("the provider sent a signature without an end")
		}
		b.signature.WriteString(d.Signature)
	case "citations_delta":
		a.sources.Add(citation(d.Citation))
	case "input_json_delta":
		if b.kind != "tool_use" || d.PartialJSON == "" {
			return nil
		}
		b.input = "" // the deltas are all of it
		return a.emit(model.ToolCallDelta{Call: b.call, Text: d.PartialJSON})
	}
	return nil
}

func (a *answer) stopBlock(index int64) error {
	b := a.blocks[index]
	if b == nil {
		return nil
	}
	delete(a.blocks, index)
	switch b.kind {
	case "thinking":
		var data json.RawMessage
		if b.signature.Len() > 0 {
			data = partData{Signature: b.signature.String()}.encode()
		}
		return a.emit(model.PartEnd{Data: data})
	case "redacted_thinking":
		return a.emit(model.PartEnd{Data: partData{Redacted: b.redacted}.encode()})
	case "tool_use":
		if b.input != "" && b.input != "{}" {
			if err := a.emit(model.ToolCallDelta{Call: b.call, Text: b.input}); err != nil {
				return err
			}
		}
		return a.emit(model.ToolCallEnd{Call: b.call})
	}
	return nil
}

func (a *answer) text(s string) error {
	if s == "" {
		return nil
	}
	a.inText = true
	return a.emit(model.TextDelta{Text: s})
}

func (a *answer) thinking(s string) error {
	if s == "" {
		return nil
	}
	return a.emit(model.ReasoningDelta{Text: s})
}

// endText ends the text that grows, if one does: the data of a block without
// text must not become that text's.
func (a *answer) endText() error {
	if a.inText {
		a.inText = false
		if err := a.emit(model.PartEnd{}); err != nil {
			return err
		}
	}
	return a.sources.Flush(a.emit)
}
