package engine

import (
	"slices"

	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
)

// request is the conversation so far, as a model takes it.
func (t *task) request() model.Request {
	t.mu.RLock()
	defer t.mu.RUnlock()
	s := t.tree.Get(t.session)
	system := t.def.SystemPrompt
	if s.SystemPrompt != nil {
		system = *s.SystemPrompt
	}
	return model.Request{System: system, Tools: t.def.Specs, Messages: conversation(s.Messages)}
}

// conversation translates messages. Each call of an answer has its result
// behind it, as providers demand, also where a run has ended before.
func conversation(messages []projector.Message) []model.Message {
	var out []model.Message
	var open []eventlog.ToolCall // calls that have no result yet
	for _, m := range messages {
		if m.Role != projector.RoleTool {
			out, open = append(out, unanswered(open)...), nil
		}
		switch m.Role {
		case projector.RoleUser:
			out = append(out, model.Message{Role: model.RoleUser, Content: m.Content, Files: m.Files})
		case projector.RoleAssistant:
			out = append(out, model.Message{Role: model.RoleAssistant, Parts: m.Parts})
			for _, p := range m.Parts {
				if p.ToolCall != nil {
					open = append(open, *p.ToolCall)
				}
			}
		case projector.RoleTool:
			open = slices.DeleteFunc(open, func(c eventlog.ToolCall) bool { return c.ID == m.ToolCallID })
			content := string(m.Result)
			if m.Error != "" {
				content = "Error: " + m.Error
			}
			out = append(out, model.Message{
				Role: model.RoleTool, Content: content, ToolCallID: m.ToolCallID, ToolName: m.ToolName, Failed: m.Error != "",
			})
		}
	}
	return append(out, unanswered(open)...)
}

func unanswered(calls []eventlog.ToolCall) []model.Message {
	var out []model.Message
	for _, c := range calls {
		out = append(out, model.Message{
			Role: model.RoleTool, Content: "Error: the run ended before the call did",
			ToolCallID: c.ID, ToolName: c.Name, Failed: true,
		})
	}
	return out
}
