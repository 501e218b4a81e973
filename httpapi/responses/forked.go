package responses

import (
	"encoding/json"
	"slices"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/httpapi/internal/web"
	"github.com/helixd/helixd/projector"
)

// forkedItems returns the items that a fork has from the session that it was copied from. seq is
// the record that has them.
func forkedItems(session string, seq uint64, state json.RawMessage) (all []object) {
	var s projector.Session
	if json.Unmarshal(state, &s) != nil {
		return nil // the fold of the session has said so
	}
	id := func(prefix string) string { return inputID(prefix, session, seq, len(all)) }
	for i, m := range s.Messages {
		switch {
		case m.Hidden():
		case m.Role == projector.RoleUser:
			shown := userItem(session, seq, &fact.UserMessage{Content: m.Content, Files: m.Files})
			shown["id"] = id("msg")
			all = append(all, shown)
		case m.Role == projector.RoleSystem:
			all = append(all, systemItem(id("msg"), m.Content))
		case m.Role == projector.RoleTool && m.AnsweredAs == fact.PendingClient:
			all = append(all, outputItem(id("fco"), m.ToolCallID, web.TextOf(m.Result, m.Error)))
		case m.Role == projector.RoleAssistant:
			for _, p := range m.Parts {
				it := partItem(p)
				if p.ToolCall != nil {
					it = forkedCall(&s, i, p.ToolCall)
				}
				if it == nil {
					continue
				}
				if it.id == "" {
					it.id = id(it.prefix())
				}
				all = append(all, it.show())
			}
		}
	}
	return all
}

// forkedCall returns the item of a call in a message: a function_call if the client executes
// it, nil if it has not been executed yet.
func forkedCall(s *projector.Session, message int, c *fact.ToolCall) *item {
	it := &item{kind: kindMCP, name: c.Name, call: c.ID, args: c.Arguments, status: statusCompleted, done: true}
	isResult := func(m projector.Message) bool { return m.Role == projector.RoleTool && m.ToolCallID == c.ID }
	i := slices.IndexFunc(s.Messages[message:], isResult)
	if c.Name == agentloop.FinishTool { // its arguments are the output, unless they were refused
		if i >= 0 && s.Messages[message+i].Error != "" {
			return nil
		}
		it.kind, it.text = kindMessage, c.Arguments
		return it
	}
	if i >= 0 {
		switch m := s.Messages[message+i]; {
		case m.AnsweredAs == fact.PendingClient:
			it.kind = kindFunction
		case m.Error != "":
			it.status, it.failure = statusFailed, m.Error
		default:
			it.result = web.TextOf(m.Result, "")
		}
		return it
	}
	for open := range s.OpenCalls() {
		if open.ID != c.ID || open.Pending == nil {
			continue
		}
		switch open.Pending.Kind {
		case fact.PendingClient:
			it.kind = kindFunction
			return it
		case fact.PendingApproval:
			it.kind, it.id = kindApproval, approvalItemID(open.Pending.ApprovalID)
			return it
		}
	}
	return nil
}
