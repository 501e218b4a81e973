package agui

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/httpapi/internal/web"
	"github.com/helixd/helixd/projector"
)

// The answer of a model in one step is one message of the assistant and, before it, one of its
// reasoning. Their ids come from the step, which both the records of the stream and the
// messages of a state have.
func stepID(turn, step int) string { return fmt.Sprintf("turn-%d-step-%d", turn, step) }

const (
	reasoningSuffix = "-reasoning"
	resultPrefix    = "result-"
	callPrefix      = "call-" // of the message with a sub-agent's call that waits for the client
)

// messagesOf returns the conversation in a state as clients have it.
func messagesOf(t *projector.Tree) []object {
	all := []object{}
	for i := range t.Messages {
		m := &t.Messages[i]
		switch m.Role {
		case projector.RoleUser:
			if !m.Hidden() {
				all = append(all, userMessage(m))
			}
		case projector.RoleSystem:
			all = append(all, object{"id": messageID(m, "system"), "role": "system", "content": m.Content})
		case projector.RoleAssistant:
			all = append(all, answer(answerID(m), m.Parts)...)
		case projector.RoleTool:
			if m.ToolName != agentloop.FinishTool {
				all = append(all, toolMessage(m.ToolCallID, m.MessageID, web.TextOf(m.Result, m.Error)))
			}
		}
		all = append(all, failedAnswers(t, i)...)
	}
	for _, a := range t.AwaitedCalls() {
		if a.Session != &t.Session {
			all = append(all, foreignCall(a.Call))
		}
	}
	return all
}

func messageID(m *projector.Message, prefix string) string {
	if m.MessageID != "" {
		return m.MessageID
	}
	return fmt.Sprintf("%s-%d", prefix, m.Sequence)
}

func answerID(m *projector.Message) string {
	if m.Step == 0 { // it was brought along
		return messageID(m, "assistant")
	}
	return stepID(m.Turn, m.Step)
}

func userMessage(m *projector.Message) object {
	o := object{"id": messageID(m, "user"), "role": "user", "content": m.Content}
	if len(m.Files) == 0 {
		return o
	}
	parts := []any{}
	if m.Content != "" {
		parts = append(parts, object{"type": "text", "text": m.Content})
	}
	for _, f := range m.Files {
		_, data, _ := strings.Cut(f.Data, ",")
		kind, _, _ := strings.Cut(f.MediaType, "/")
		if !slices.Contains([]string{"image", "audio", "video"}, kind) {
			kind = "document"
		}
		parts = append(parts, object{"type": kind, "source": object{"type": "data", "value": data, "mimeType": f.MediaType}})
	}
	o["content"] = parts
	return o
}

// answer returns the messages that a model's answer makes, in the order in which they begin.
func answer(id string, parts []fact.TurnPart) (all []object) {
	var text, reasoning strings.Builder
	var calls []any
	reasonsFirst := true
	for _, p := range parts {
		switch {
		case p.ToolCall != nil && p.ToolCall.Name != agentloop.FinishTool:
			calls = append(calls, callShown(p.ToolCall.ID, p.ToolCall.Name, argumentsText(p.ToolCall.Arguments)))
		case p.Reasoning != "":
			reasonsFirst = reasonsFirst && text.Len() == 0 && calls == nil
			reasoning.WriteString(p.Reasoning)
		default:
			text.WriteString(p.Text)
		}
	}
	if text.Len() > 0 || calls != nil {
		all = append(all, assistantMessage(id, text.String(), calls))
	}
	if reasoning.Len() > 0 {
		m := reasoningMessage(id, reasoning.String())
		if reasonsFirst {
			return append([]object{m}, all...)
		}
		all = append(all, m)
	}
	return all
}

func assistantMessage(id, text string, calls []any) object {
	o := object{"id": id, "role": "assistant"}
	if text != "" {
		o["content"] = text
	}
	if calls != nil {
		o["toolCalls"] = calls
	}
	return o
}

func reasoningMessage(id, text string) object {
	return object{"id": id + reasoningSuffix, "role": "reasoning", "content": text}
}

func callShown(id, name, arguments string) object {
	return object{"id": id, "type": "function", "function": object{"name": name, "arguments": arguments}}
}

func toolMessage(call, id, content string) object {
	if id == "" {
		id = resultPrefix + call
	}
	return object{"id": id, "role": "tool", "toolCallId": call, "content": content}
}

// foreignCall returns the message with the call of a sub-agent that waits for the client.
func foreignCall(c *projector.Call) object {
	return assistantMessage(callPrefix+c.ID, "", []any{callShown(c.ID, c.Name, argumentsText(c.Arguments))})
}

// failedAnswers returns what a model has streamed whose run then failed: clients have it.
func failedAnswers(t *projector.Tree, message int) (all []object) {
	for _, a := range t.Asides {
		if a.After == message && a.Partial != nil {
			step := 1
			for _, m := range t.Messages {
				if m.Turn == a.Turn {
					step = max(step, m.Step+1)
				}
			}
			all = append(all, answer(stepID(a.Turn, step), partsOf(a.Partial))...)
		}
	}
	return all
}

// partsOf returns the parts of an answer that is not complete.
func partsOf(partial []projector.PartialPart) (parts []fact.TurnPart) {
	for _, p := range partial {
		switch p.Kind {
		case projector.PartialText:
			parts = append(parts, fact.TurnPart{Text: string(p.Text)})
		case projector.PartialReasoning:
			parts = append(parts, fact.TurnPart{Reasoning: string(p.Text)})
		case projector.PartialToolCall:
			args, _ := json.Marshal(string(p.Text)) // what has come of them is no JSON
			parts = append(parts, fact.TurnPart{ToolCall: &fact.ToolCall{ID: p.CallID, Name: p.ToolName, Arguments: args}})
		}
	}
	return parts
}

// argumentsText returns the text of a call's arguments, as the model gave them.
func argumentsText(raw json.RawMessage) string {
	if len(raw) == 0 {
		return "{}"
	}
	return web.TextOf(raw, "")
}

// broughtBy returns the messages with which a run began, in the state at its request: the
// user's, and the results of calls that the client has executed.
func broughtBy(t *projector.Tree) []object {
	all := []object{}
	for _, c := range t.OpenCalls() {
		if clientHas(c) {
			all = append(all, toolMessage(c.ID, c.Answer.MessageID, web.TextOf(c.Answer.Result, c.Answer.Error)))
		}
	}
	from := len(t.Messages)
	for from > 0 && (t.Messages[from-1].Role == projector.RoleUser || t.Messages[from-1].Role == projector.RoleSystem) {
		from--
	}
	for i := from; i < len(t.Messages); i++ {
		if m := &t.Messages[i]; m.Role == projector.RoleUser && !m.Hidden() {
			all = append(all, userMessage(m))
		}
	}
	return all
}

// clientHas reports whether a client has submitted the result of a call that is not taken up
// yet.
func clientHas(c *projector.Call) bool {
	return !c.Done && c.Answer != nil && c.Answer.Kind == fact.SubmitClientResult
}
