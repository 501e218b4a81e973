package tracing

import (
	"encoding/json"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"

	"github.com/helixd/helixd/agentloop/engine/internal/runs"
	"github.com/helixd/helixd/agentloop/internal/shorten"
	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
)

// The parts of prompts and answers that go into spans, if any.
const (
	// maxTracedText is how much of one text, in bytes.
	maxTracedText = 8 << 10
	// maxTracedMessages is how much of a conversation, in bytes: its last
	// messages, but at least one.
	maxTracedMessages = 32 << 10
)

// tracedMessage is a message in the form of the GenAI conventions
// (gen_ai.input.messages, gen_ai.output.messages).
type tracedMessage struct {
	Role         string       `json:"role"`
	Parts        []tracedPart `json:"parts"`
	FinishReason string       `json:"finish_reason,omitempty"` // of an answer
}

type tracedPart struct {
	Type      string `json:"type"` // text, reasoning, tool_call, tool_call_response
	Content   string `json:"content,omitempty"`
	ID        string `json:"id,omitempty"`
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments,omitempty"`
	Response  string `json:"response,omitempty"`
}

func (m tracedMessage) size() (n int) {
	for _, p := range m.Parts {
		n += len(p.Content) + len(p.Arguments) + len(p.Response)
	}
	return n
}

// tracedText is what of a text goes into a span.
func tracedText(s string) string { return strings.ToValidUTF8(shorten.Text(s, maxTracedText), "") }

// requestContent is what a model is asked.
func requestContent(req model.Request) []attribute.KeyValue {
	var last []tracedMessage
	size := 0
	for _, m := range slices.Backward(req.Messages) {
		traced := tracedOf(m)
		if size += traced.size(); size > maxTracedMessages && len(last) > 0 {
			break
		}
		last = append(last, traced)
	}
	slices.Reverse(last)
	attrs := []attribute.KeyValue{messagesAttribute(semconv.GenAIInputMessagesKey, last)}
	if req.System != "" {
		system := []tracedPart{{Type: "text", Content: tracedText(req.System)}}
		raw, _ := json.Marshal(system)
		attrs = append(attrs, semconv.GenAISystemInstructionsKey.String(string(raw)))
	}
	return attrs
}

func tracedOf(m model.Message) tracedMessage {
	switch m.Role {
	case model.RoleAssistant:
		return tracedMessage{Role: "assistant", Parts: tracedParts(m.Parts)}
	case model.RoleTool:
		return tracedMessage{Role: "tool", Parts: []tracedPart{{
			Type: "tool_call_response", ID: m.ToolCallID, Response: tracedText(m.Content),
		}}}
	}
	return tracedMessage{Role: "user", Parts: []tracedPart{{Type: "text", Content: tracedText(m.Content)}}}
}

// tracedParts are the parts of an answer; files and sources are left out.
func tracedParts(parts []fact.TurnPart) []tracedPart {
	traced := []tracedPart{}
	for _, p := range parts {
		if p.Reasoning != "" {
			traced = append(traced, tracedPart{Type: "reasoning", Content: tracedText(p.Reasoning)})
		}
		if p.Text != "" {
			traced = append(traced, tracedPart{Type: "text", Content: tracedText(p.Text)})
		}
		if c := p.ToolCall; c != nil {
			traced = append(traced, tracedPart{Type: "tool_call", ID: c.ID, Name: c.Name, Arguments: tracedText(string(c.Arguments))})
		}
	}
	return traced
}

// answerContent is the content of a model's answer.
func answerContent(done model.Answer, parts []fact.TurnPart) attribute.KeyValue {
	return messagesAttribute(semconv.GenAIOutputMessagesKey, []tracedMessage{{
		Role: "assistant", Parts: tracedParts(parts), FinishReason: string(eventlog.FinishReasonOf(done.StopReason)),
	}})
}

// inputOf returns an agent's input for a run: the messages right
// before it.
func inputOf(s *projector.Session, run *projector.Run) attribute.KeyValue {
	input := []tracedMessage{}
	for _, m := range runs.MessagesOf(s, run) {
		input = append(input, tracedMessage{Role: "user", Parts: []tracedPart{{Type: "text", Content: tracedText(m.Content)}}})
	}
	return messagesAttribute(semconv.GenAIInputMessagesKey, input)
}

// outputOf is what an agent has come to.
func outputOf(output json.RawMessage) attribute.KeyValue {
	text := string(output)
	if json.Unmarshal(output, &text) != nil { // it is structured
		text = string(output)
	}
	return messagesAttribute(semconv.GenAIOutputMessagesKey, []tracedMessage{{
		Role: "assistant", Parts: []tracedPart{{Type: "text", Content: tracedText(text)}}, FinishReason: string(eventlog.FinishStop),
	}})
}

func messagesAttribute(key attribute.Key, messages []tracedMessage) attribute.KeyValue {
	raw, _ := json.Marshal(messages)
	return key.String(string(raw))
}
