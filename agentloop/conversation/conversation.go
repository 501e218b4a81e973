// Package conversation translates messages of a session to those of a model.
package conversation

import (
	"slices"
	"strings"

	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
)

// System returns the system prompt of a model call: the agent's, the instructions of the run,
// and the system messages that clients have added.
func System(prompt, instructions string, messages []projector.Message) string {
	parts := []string{prompt, instructions}
	for _, m := range messages {
		if m.Role == projector.RoleSystem {
			parts = append(parts, m.Content)
		}
	}
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "\n\n")
}

// ForModel translates messages. Each call of an answer has its result
// after it, as providers demand, also where a run has ended before.
func ForModel(messages []projector.Message) []model.Message {
	var out []model.Message
	var open []fact.ToolCall // calls that have no result yet
	for _, m := range messages {
		if m.Role == projector.RoleSystem {
			continue
		}
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
			open = slices.DeleteFunc(open, func(c fact.ToolCall) bool { return c.ID == m.ToolCallID })
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

func unanswered(calls []fact.ToolCall) []model.Message {
	var out []model.Message
	for _, c := range calls {
		out = append(out, model.Message{
			Role: model.RoleTool, Content: "Error: the run ended before the call did",
			ToolCallID: c.ID, ToolName: c.Name, Failed: true,
		})
	}
	return out
}
