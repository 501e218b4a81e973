package agentloop

import (
	"encoding/json"
	"fmt"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
)

// childStatus is what a companion tool tells of a persistent sub-agent.
type childStatus struct {
	Name   string          `json:"name"`
	Agent  string          `json:"agent,omitempty"`
	Mode   PersistentMode  `json:"mode,omitempty"`
	Status string          `json:"status"` // running, suspended, completed, failed, interrupted, terminated
	Output json.RawMessage `json:"output,omitempty"`
	// OutputCut says that Output is a string: the beginning of the output,
	// which is too long to be told here.
	OutputCut bool   `json:"outputCut,omitempty"`
	Error     string `json:"error,omitempty"`
}

// maxToldOutput is how much of a sub-agent's output a list of sub-agents has,
// and the message that its turn has ended, in bytes. getChildStatus tells all.
const maxToldOutput = 32 << 10

// cut shortens the output to n bytes.
func (s childStatus) cut(n int) childStatus {
	if len(s.Output) > n {
		s.Output, s.OutputCut = statusJSON(cutTo(string(s.Output), n)), true
	}
	return s
}

const (
	statusRunning    = "running"
	statusSuspended  = "suspended"
	statusTerminated = "terminated"
)

func statusJSON(v any) json.RawMessage {
	raw, _ := json.Marshal(v)
	return raw
}

func statusOf(child *projector.Session) childStatus {
	s := childStatus{Name: child.Child.Name, Agent: child.AgentType, Mode: NonBlocking, Status: string(child.Status)}
	if child.Child.Blocking {
		s.Mode = Blocking
	}
	switch {
	case child.Terminated:
		s.Status, s.Output = statusTerminated, child.Output
	case child.Running():
		s.Status = statusRunning
	case child.Suspended():
		s.Status = statusSuspended
	case child.Error != nil:
		s.Error = child.Error.Message
	default:
		s.Output = child.Output
	}
	return s
}

// childNamed returns the id of a persistent sub-agent.
func (t *task) childNamed(name string) (id, problem string) {
	t.look(func(*projector.Session) {
		child := t.tree.Get(childID(t.session, "-agent-", name))
		if child == nil || child.TurnCount == 0 || !t.persistent(child) || child.Child.Name != name {
			problem = fmt.Sprintf("there is no sub-agent %q", cutTo(name, 100))
		}
	})
	return childID(t.session, "-agent-", name), problem
}

// persistent reports whether a session of the tree is a persistent sub-agent of
// this one. Ids alone don't tell: they are made of names, and so are those of
// sub-agents' own sub-agents.
func (t *task) persistent(s *projector.Session) bool {
	return s.Child != nil && s.Child.ParentSessionID == t.session && s.Child.Mode == eventlog.SubSessionPersistent
}

func (t *task) childInterrupted(id string) (interrupted bool) {
	t.look(func(*projector.Session) {
		child := t.tree.Get(id)
		interrupted = child != nil && child.Status == projector.SessionInterrupted
	})
	return interrupted
}

// childStatus tells of a sub-agent, with its whole output unless that is more
// than a record holds.
func (t *task) childStatus(id string) (result json.RawMessage) {
	t.look(func(*projector.Session) {
		if child := t.tree.Get(id); child != nil && child.Child != nil {
			status := statusOf(child)
			if result = statusJSON(status); len(result) > t.l.log.Info().MaxRecordBytes-resultRoom {
				result = statusJSON(status.cut(maxToldOutput))
			}
		}
	})
	return result
}

func (t *task) listChildren() (result json.RawMessage) {
	list := []childStatus{}
	t.look(func(*projector.Session) {
		for _, child := range t.tree.ChildrenOf(t.session) {
			if t.persistent(child) {
				list = append(list, statusOf(child).cut(maxToldOutput))
			}
		}
	})
	return statusJSON(map[string]any{"children": list})
}

// childNews returns the message that tells a session of a turn that one of
// its persistent sub-agents has ended, or nil.
func childNews(t *projector.Tree, s *projector.Session) *Tell {
	for _, child := range t.ChildrenOf(s.SessionID) {
		if child.Child.Mode != eventlog.SubSessionPersistent || !child.Over() || child.Delivered >= child.TurnCount {
			continue
		}
		meta := statusJSON(projector.ChildNotice{
			Hidden: true, Helix: projector.ChildNoticeMark, Session: child.SessionID, Turn: child.TurnCount,
		})
		text := fmt.Sprintf("Your sub-agent %q has finished its turn: %s", child.Child.Name, statusJSON(statusOf(child).cut(maxToldOutput)))
		return &Tell{Session: s.SessionID, Text: text, Metadata: meta}
	}
	return nil
}

// cutTo shortens a text to n bytes.
func cutTo(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return validPrefix(s, n)
}
