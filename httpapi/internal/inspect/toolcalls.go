package inspect

import (
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/projector"
)

// callsOf returns the tool calls of a tree: the root's first, each session's in
// the order in which its model asked for them.
func callsOf(t *projector.Tree) []api.CallAt {
	all := []api.CallAt{}
	for _, s := range t.Sessions() {
		results := map[string]projector.Message{}
		for _, m := range s.Messages {
			if m.Role == projector.RoleTool {
				results[m.ToolCallID] = m
			}
		}
		open := map[string]*projector.Call{}
		for c := range s.OpenCalls() {
			open[c.ID] = c
		}
		for _, m := range s.Messages {
			for _, p := range m.Parts {
				if p.ToolCall == nil {
					continue
				}
				c := api.CallAt{
					SessionID: s.SessionID, ToolCallID: p.ToolCall.ID, ToolName: p.ToolCall.Name, Arguments: p.ToolCall.Arguments,
					Status: api.CallFailed,
				}
				if result, over := results[c.ToolCallID]; over {
					if c.Error = result.Error; c.Error == "" {
						c.Status, c.Result = api.CallDone, result.Result
					}
				} else if call, is := open[c.ToolCallID]; is {
					c.Status = statusOf(t, call)
				}
				all = append(all, c)
			}
		}
	}
	return all
}

// statusOf returns the status of a call without a result.
func statusOf(t *projector.Tree, c *projector.Call) api.CallStatus {
	switch {
	case c.Pending != nil && c.Pending.Kind == fact.PendingChild:
		if child := t.Get(c.Pending.Child); child != nil && (child.Waits() || child.Suspended()) {
			return api.CallWaiting
		}
		return api.CallRunning
	case c.Pending != nil && c.Answer == nil:
		return api.CallWaiting
	case c.Streamed != nil, c.Started && c.Pending == nil:
		return api.CallRunning
	}
	return api.CallPending
}

// callChanges returns the calls whose status differs between two states: first those that
// the later state still has.
func callChanges(before, after *projector.Tree) []api.CallChange {
	type key struct{ session, call string }
	was := map[key]api.CallAt{}
	earlier := callsOf(before)
	for _, c := range earlier {
		was[key{c.SessionID, c.ToolCallID}] = c
	}
	changes := []api.CallChange{}
	add := func(c api.CallAt, before, after api.CallStatus) {
		if before != after {
			changes = append(changes, api.CallChange{
				SessionID: c.SessionID, ToolCallID: c.ToolCallID, ToolName: c.ToolName,
				Before: before, After: after, Result: c.Result, Error: c.Error,
			})
		}
	}
	for _, c := range callsOf(after) {
		k := key{c.SessionID, c.ToolCallID}
		add(c, was[k].Status, c.Status)
		delete(was, k)
	}
	for _, c := range earlier {
		if _, gone := was[key{c.SessionID, c.ToolCallID}]; gone {
			c.Result, c.Error = nil, ""
			add(c, c.Status, "")
		}
	}
	return changes
}
