// Package remoteids gives a remote agent's tool calls ids that are unique in the
// caller's tree.
package remoteids

import (
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
)

// IDs gives a remote agent's tool calls ids that are unique in this tree:
// its server knows nothing of the other calls here. What the log has of them is
// in the fold, so a process that continues the stream gives them the same ids.
type IDs struct {
	session string // the remote agent's, here
	unique  func(id string) string
	calls   map[callKey]*fact.RemoteCall // the last call that the server calls so
	changed []*fact.RemoteCall           // since the last progress
}

// callKey is a call as the server names it. Two agents of its tree may use
// one id.
type callKey struct{ agent, id string }

// New returns the ids of a remote agent's calls, of which the log knows some. unique
// makes an id unique in the tree.
func New(session string, known []fact.RemoteCall, unique func(id string) string) *IDs {
	ids := &IDs{session: session, unique: unique, calls: map[callKey]*fact.RemoteCall{}}
	for _, c := range known {
		agent := c.AgentID
		if agent == "" {
			agent = session
		}
		ids.calls[callKey{agent, c.RemoteID}] = &c
	}
	return ids
}

// Translate gives the call that a chunk is about its id here. The chunk is
// changed. agent is the session that the chunk is of.
func (ids *IDs) Translate(agent string, c eventlog.Chunk) {
	switch c := c.(type) {
	case *eventlog.ToolArgStreamStart: // also of an answer that is given again
		c.ToolCallID = ids.begin(agent, c.ToolCallID, true)
	case *eventlog.ToolArgStreamDelta:
		c.ToolCallID = ids.of(agent, c.ToolCallID).ID
	case *eventlog.ToolArgStreamEnd:
		c.ToolCallID = ids.of(agent, c.ToolCallID).ID
	case *eventlog.ToolStart:
		c.ToolCallID = ids.begin(agent, c.ToolCallID, false)
	case *eventlog.ToolEnd:
		c.ToolCallID = ids.end(agent, c.ToolCallID)
	case *eventlog.ToolApprovalRequest:
		c.ToolCallID = ids.begin(agent, c.ToolCallID, false)
	case *eventlog.ToolApprovalResponse:
		c.ToolCallID = ids.of(agent, c.ToolCallID).ID
	case *eventlog.ToolInputError:
		ids.begin(agent, c.ToolCallID, false)
		c.ToolCallID = ids.end(agent, c.ToolCallID)
	case *eventlog.ToolOutputError:
		c.ToolCallID = ids.of(agent, c.ToolCallID).ID
	case *eventlog.SubAgentStart:
		c.CallID = ids.of(agent, c.CallID).ID
	case *eventlog.SubAgentEnd:
		c.CallID = ids.of(agent, c.CallID).ID
	case *eventlog.RunPaused:
		if c.PendingToolCallID != nil {
			id := ids.of(agent, *c.PendingToolCallID).ID
			c.PendingToolCallID = &id
		}
	}
}

// of returns the call that the server calls so; a new one if there is none.
func (ids *IDs) of(agent, id string) *fact.RemoteCall {
	if c := ids.calls[callKey{agent, id}]; c != nil {
		return c
	}
	if eventlog.ValidateID(id) != nil { // no record takes it
		return &fact.RemoteCall{ID: id}
	}
	c := &fact.RemoteCall{ID: ids.unique(id), RemoteID: id}
	if agent != ids.session {
		c.AgentID = agent
	}
	ids.calls[callKey{agent, id}] = c
	ids.changed = append(ids.changed, c)
	return c
}

// begin is of for what may begin a call: one that is finished is another call.
func (ids *IDs) begin(agent, id string, again bool) string {
	key := callKey{agent, id}
	if c := ids.calls[key]; c != nil && (again || c.Over) {
		delete(ids.calls, key)
	}
	return ids.of(agent, id).ID
}

// end is of for what ends a call.
func (ids *IDs) end(agent, id string) string {
	c := ids.of(agent, id)
	if !c.Over {
		c.Over = true
		ids.changed = append(ids.changed, c)
	}
	return c.ID
}

// Progress returns what the log does not know yet.
func (ids *IDs) Progress() []fact.RemoteCall {
	var calls []fact.RemoteCall
	said := map[*fact.RemoteCall]bool{}
	for _, c := range ids.changed {
		if !said[c] {
			said[c] = true
			calls = append(calls, *c)
		}
	}
	ids.changed = nil
	return calls
}
