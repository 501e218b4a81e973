package httpapi

import (
	"encoding/json"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
)

// CallStatus is how far a tool call has come; empty: there is none yet, or no
// more.
type CallStatus string

// How far tool calls come. A call that waits and has its answer is pending
// until it is gone on with. One whose turn has ended without it has failed.
const (
	CallPending CallStatus = "pending" // the model has asked for it
	CallRunning CallStatus = "running"
	CallWaiting CallStatus = "waiting" // for a client, an approval or a sub-agent that waits
	CallDone    CallStatus = "done"
	CallFailed  CallStatus = "failed"
)

// CallAt is a tool call of a session's tree as it was at a sequence.
type CallAt struct {
	SessionID  string          `json:"sessionId"` // whose model asked for it
	ToolCallID string          `json:"toolCallId"`
	ToolName   string          `json:"toolName"`
	Arguments  json.RawMessage `json:"arguments"`
	Status     CallStatus      `json:"status"`
	Result     json.RawMessage `json:"result,omitempty"`
	Error      string          `json:"error,omitempty"`
}

// CallChange is a tool call that has come further between two sequences.
type CallChange struct {
	SessionID  string     `json:"sessionId"`
	ToolCallID string     `json:"toolCallId"`
	ToolName   string     `json:"toolName"`
	Before     CallStatus `json:"before"`
	After      CallStatus `json:"after"`
	// Result is there if it is done at the second one, Error if it has failed
	// with one.
	Result json.RawMessage `json:"result,omitempty"`
	Error  string          `json:"error,omitempty"`
}

// callsOf returns the tool calls of a tree: the root's first, each session's in
// the order in which its model asked for them.
func callsOf(t *projector.Tree) []CallAt {
	all := []CallAt{}
	for _, s := range t.Sessions() {
		results := map[string]projector.Message{}
		for _, m := range s.Messages {
			if m.Role == projector.RoleTool {
				results[m.ToolCallID] = m
			}
		}
		open := map[string]projector.Call{}
		if s.Turn != nil && s.Turn.Step != nil {
			for _, c := range s.Turn.Step.Calls {
				open[c.ID] = c
			}
		}
		for _, m := range s.Messages {
			for _, p := range m.Parts {
				if p.ToolCall == nil {
					continue
				}
				c := CallAt{
					SessionID: s.SessionID, ToolCallID: p.ToolCall.ID, ToolName: p.ToolCall.Name, Arguments: p.ToolCall.Arguments,
					Status: CallFailed,
				}
				if result, over := results[c.ToolCallID]; over {
					if c.Error = result.Error; c.Error == "" {
						c.Status, c.Result = CallDone, result.Result
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

// statusOf returns how far a call has come that has no result.
func statusOf(t *projector.Tree, c projector.Call) CallStatus {
	switch {
	case c.Pending != nil && c.Pending.Kind == eventlog.PendingChild:
		if child := t.Get(c.Pending.Child); child != nil && (child.Waits() || child.Suspended()) {
			return CallWaiting
		}
		return CallRunning
	case c.Pending != nil && c.Answer == nil:
		return CallWaiting
	case c.Streamed != nil, c.Started && c.Pending == nil:
		return CallRunning
	}
	return CallPending
}

// callChanges returns the calls that have come further, or back, from one state
// to another: those that are still there first.
func callChanges(before, after *projector.Tree) []CallChange {
	type key struct{ session, call string }
	was := map[key]CallAt{}
	earlier := callsOf(before)
	for _, c := range earlier {
		was[key{c.SessionID, c.ToolCallID}] = c
	}
	changes := []CallChange{}
	add := func(c CallAt, before, after CallStatus) {
		if before != after {
			changes = append(changes, CallChange{
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
