package responses

import (
	"cmp"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
)

// idPrefix is how the ids of a fork's items begin, by the items' types.
var idPrefix = map[any]string{"message": "msg", kindMessage: "msg", kindReasoning: "rs", kindFunction: "fc", kindOutput: "fco", kindMCP: "mcp"}

// forkedItems returns the items that a fork has from the session that it was copied from. Calls
// without a result are left out: the fork's own records tell what becomes of them.
func forkedItems(session string, r eventlog.Record) (all []object) {
	t := projector.Fold(r)
	results := map[string]*projector.Message{}
	for i := range t.Messages {
		if m := &t.Messages[i]; m.Role == projector.RoleTool {
			results[m.ToolCallID] = m
		}
	}
	for _, m := range t.Messages {
		var items []object
		switch {
		case m.Role == projector.RoleUser && !m.Hidden():
			items = []object{userItem(session, r.Sequence, &fact.UserMessage{Content: m.Content, Files: m.Files})}
		case m.Role == projector.RoleAssistant:
			for _, p := range m.Parts {
				if p.ToolCall == nil {
					items = append(items, addedItems(session, r.Sequence, &fact.MessageAdded{Parts: []fact.TurnPart{p}})...)
				} else if result := results[p.ToolCall.ID]; result != nil {
					items = append(items, forkedCall(p.ToolCall, result)...)
				}
			}
		}
		for _, o := range items {
			o["id"] = inputID(idPrefix[o["type"]], session, r.Sequence, len(all))
			all = append(all, o)
		}
	}
	return all
}

// forkedCall returns the items of a call with a result, as those of a run are.
func forkedCall(call *fact.ToolCall, result *projector.Message) []object {
	it := item{kind: kindMCP, status: statusCompleted, call: call.ID, name: call.Name, args: call.Arguments, result: resultText(result.Result)}
	if result.Error != "" {
		it.status, it.failure = statusFailed, result.Error
	}
	if result.AnsweredAs != fact.PendingClient {
		return []object{it.show()}
	}
	it.kind, it.status = kindFunction, statusCompleted
	return []object{it.show(), outputItem("", call.ID, cmp.Or(result.Error, it.result))}
}
