package agentloop

import (
	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/projector"
)

// request is the conversation so far, as a model takes it.
func (t *task) request() model.Request {
	t.mu.RLock()
	defer t.mu.RUnlock()
	req := model.Request{System: t.def.SystemPrompt, Tools: t.def.specs}
	for _, m := range t.tree.Get(t.session).Messages {
		switch m.Role {
		case projector.RoleUser:
			req.Messages = append(req.Messages, model.Message{Role: model.RoleUser, Content: m.Content, Files: m.Files})
		case projector.RoleAssistant:
			out := model.Message{Role: model.RoleAssistant, Content: m.Content}
			for _, p := range m.Parts {
				out.Reasoning += p.Reasoning
				if p.ToolCall != nil {
					out.ToolCalls = append(out.ToolCalls, *p.ToolCall)
				}
			}
			req.Messages = append(req.Messages, out)
		case projector.RoleTool:
			content := string(m.Result)
			if m.Error != "" {
				content = "Error: " + m.Error
			}
			req.Messages = append(req.Messages, model.Message{
				Role: model.RoleTool, Content: content, ToolCallID: m.ToolCallID, ToolName: m.ToolName,
			})
		}
	}
	return req
}
