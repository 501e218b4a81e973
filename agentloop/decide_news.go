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
		s.Output, s.OutputCut = encoded(cutTo(string(s.Output), n)), true
	}
	return s
}

const (
	statusRunning    = "running"
	statusSuspended  = "suspended"
	statusTerminated = "terminated"
)

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

// childNews returns the message that tells a session of a turn that one of
// its persistent sub-agents has ended, or nil.
func childNews(t *projector.Tree, s *projector.Session) *Tell {
	for _, child := range t.ChildrenOf(s.SessionID) {
		if child.Child.Mode != eventlog.SubSessionPersistent || !child.Over() || child.Delivered >= child.TurnCount {
			continue
		}
		meta := encoded(projector.ChildNotice{
			Hidden: true, Helix: projector.ChildNoticeMark, Session: child.SessionID, Turn: child.TurnCount,
		})
		text := fmt.Sprintf("Your sub-agent %q has finished its turn: %s", child.Child.Name, encoded(statusOf(child).cut(maxToldOutput)))
		return &Tell{Session: s.SessionID, Text: text, Metadata: meta}
	}
	return nil
}

func encoded(v any) json.RawMessage {
	raw, _ := json.Marshal(v)
	return raw
}

// ownMessage reports whether the loop wrote a message.
func ownMessage(metadata json.RawMessage) bool {
	var meta map[string]json.RawMessage
	return json.Unmarshal(metadata, &meta) == nil && meta[projector.OwnMetadata] != nil
}
