package agui

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
)

// activityType is the type of the activities that sub-agents are.
const activityType = "subagent"

// activity is a turn of a sub-agent.
type activity struct {
	id      string
	session string
	call    string
	content object
}

func (f *folder) childBegins(parent string, c *eventlog.SubAgentStart) {
	f.showChild(parent, c.SubAgentType, c.SubSessionID, c.CallID)
}

func (f *folder) showChild(parent, agent, session, callID string) *activity {
	a := &activity{id: activityType + "-" + session + "-" + callID, session: session, call: callID, content: object{
		"agent": agent, "sessionId": session, "parentSessionId": parent, "toolCallId": callID, "status": "running",
	}}
	f.children[callID] = a
	f.close()
	f.sendChild(a)
	return a
}

func (f *folder) sendChild(a *activity) {
	content := object{}
	for k, v := range a.content {
		content[k] = v
	}
	f.send(typeActivitySnapshot, object{"messageId": a.id, "activityType": activityType, "content": content, "replace": true})
}

// childSays shows the last text of a sub-agent.
func (f *folder) childSays(session string, what *fact.ModelTurn) {
	text := ""
	for _, p := range what.Parts {
		text += p.Text
	}
	for _, call := range slices.Sorted(maps.Keys(f.children)) {
		a := f.children[call]
		if text != "" && a.session == session && a.content["status"] == "running" {
			f.change(a, "text", text)
		}
	}
}

func (f *folder) childEnds(parent string, c *eventlog.SubAgentEnd) {
	a := f.children[c.CallID]
	if a == nil { // it began in an earlier run
		a = f.showChild(parent, c.SubAgentType, c.SubSessionID, c.CallID)
	}
	f.change(a, "status", "completed")
	if len(c.Result) > 0 && string(c.Result) != "null" {
		f.change(a, "result", json.RawMessage(c.Result))
	}
}

func (f *folder) childFails(callID string) {
	if a := f.children[callID]; a != nil && a.content["status"] == "running" {
		f.change(a, "status", "failed")
	}
}

func (f *folder) change(a *activity, member string, value any) {
	a.content[member] = value
	f.send(typeActivityDelta, object{"messageId": a.id, "activityType": activityType, "patch": []any{
		object{"op": "add", "path": "/" + member, "value": value},
	}})
}
