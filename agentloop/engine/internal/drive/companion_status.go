package drive

import (
	"encoding/json"
	"fmt"

	"github.com/helixd/helixd/agentloop/internal/decide"
	"github.com/helixd/helixd/agentloop/internal/shorten"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
)

// childNamed returns the id of a persistent sub-agent.
func (t *task) childNamed(name string) (id, problem string) {
	t.look(func(*projector.Session) {
		child := t.tree.Get(projector.ChildID(t.session, "-agent-", name))
		if child == nil || child.TurnCount == 0 || !t.persistent(child) || child.Child.Name != name {
			problem = fmt.Sprintf("there is no sub-agent %q", shorten.Text(name, 100))
		}
	})
	return projector.ChildID(t.session, "-agent-", name), problem
}

// persistent reports whether a session of the tree is a persistent sub-agent of
// this one. Ids alone don't show that: they are made of names, and so are those of
// sub-agents' own sub-agents.
func (t *task) persistent(s *projector.Session) bool {
	return s.Child != nil && s.Child.ParentSessionID == t.session && s.Child.Mode == fact.SubSessionPersistent
}

func (t *task) childInterrupted(id string) (interrupted bool) {
	t.look(func(*projector.Session) {
		child := t.tree.Get(id)
		interrupted = child != nil && child.Status == projector.SessionInterrupted
	})
	return interrupted
}

// childStatus returns the status of a sub-agent, with its whole output unless that is more
// than a record can contain.
func (t *task) childStatus(id string) (result json.RawMessage) {
	t.look(func(*projector.Session) {
		if child := t.tree.Get(id); child != nil && child.Child != nil {
			status := decide.StatusOf(child)
			if result = decide.Encoded(status); len(result) > t.host.Log.Info().MaxRecordBytes-resultRoom {
				result = decide.Encoded(status.Cut())
			}
		}
	})
	return result
}

func (t *task) listChildren() (result json.RawMessage) {
	list := []decide.ChildStatus{}
	t.look(func(*projector.Session) {
		for _, child := range t.tree.ChildrenOf(t.session) {
			if t.persistent(child) {
				list = append(list, decide.StatusOf(child).Cut())
			}
		}
	})
	return decide.Encoded(map[string]any{"children": list})
}
