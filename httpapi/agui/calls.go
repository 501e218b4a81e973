package agui

import (
	"maps"
	"slices"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/httpapi/internal/web"
)

// callBegins shows a call as the model makes it.
func (f *folder) callBegins(id, name string) {
	if name == agentloop.FinishTool {
		return
	}
	f.closeThought()
	f.closeText()
	f.begins(id, name, f.answer)
}

func (f *folder) begins(id, name, message string) {
	f.calls[id] = &call{name: name, open: true}
	f.send(typeCallStart, object{"toolCallId": id, "toolCallName": name, "parentMessageId": message})
}

func (f *folder) arguments(id, delta string) {
	if c := f.calls[id]; c != nil && c.open && delta != "" {
		f.send(typeCallArgs, object{"toolCallId": id, "delta": delta})
	}
}

func (f *folder) callComplete(id string) {
	if c := f.calls[id]; c != nil && c.open {
		c.open = false
		f.send(typeCallEnd, object{"toolCallId": id})
	}
}

// wholeCall shows a call that was not streamed.
func (f *folder) wholeCall(id, name, message, arguments string) {
	f.begins(id, name, message)
	f.arguments(id, arguments)
	f.callComplete(id)
}

// openCalls returns the calls whose arguments are not complete.
func (f *folder) openCalls() (ids []string) {
	for _, id := range slices.Sorted(maps.Keys(f.calls)) {
		if f.calls[id].open {
			ids = append(ids, id)
		}
	}
	return ids
}

// foreign shows the call of a sub-agent that waits for the client.
func (f *folder) foreign(id, name, arguments string) {
	if f.calls[id] == nil {
		f.wholeCall(id, name, callPrefix+id, arguments)
		f.calls[id].answer = true
	}
}

// result shows the result of a call, unless the client has it from itself.
func (f *folder) result(what *fact.ToolResult, own bool) {
	if own && what.Error != "" {
		f.childFails(what.ToolCallID)
	}
	if what.ToolName == agentloop.FinishTool || f.calls[what.ToolCallID] == nil || f.theirs[what.ToolCallID] {
		return
	}
	f.send(typeCallResult, object{
		"messageId": resultPrefix + what.ToolCallID, "toolCallId": what.ToolCallID, "role": "tool", "content": web.TextOf(what.Result, what.Error),
	})
}
