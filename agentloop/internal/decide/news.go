package decide

import (
	"encoding/json"
	"fmt"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/internal/shorten"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
)

// ChildStatus is what a companion tool returns about a persistent sub-agent.
type ChildStatus struct {
	Name   string                   `json:"name"`
	Agent  string                   `json:"agent,omitempty"`
	Mode   agentloop.PersistentMode `json:"mode,omitempty"`
	Status string                   `json:"status"` // running, suspended, completed, failed, interrupted, terminated
	Output json.RawMessage          `json:"output,omitempty"`
	// OutputCut says that Output is a string: the beginning of the output,
	// which is too long for this answer.
	OutputCut bool   `json:"outputCut,omitempty"`
	Error     string `json:"error,omitempty"`
}

// maxToldOutput is how much of a sub-agent's output a list of sub-agents has,
// and the message that its turn has ended, in bytes. getChildStatus returns all.
const maxToldOutput = 32 << 10

// Cut shortens the output to maxToldOutput.
func (s ChildStatus) Cut() ChildStatus {
	if len(s.Output) > maxToldOutput {
		s.Output, s.OutputCut = Encoded(shorten.Text(string(s.Output), maxToldOutput)), true
	}
	return s
}

const (
	StatusRunning    = "running"
	statusSuspended  = "suspended"
	StatusTerminated = "terminated"
)

// StatusOf returns the status of a persistent sub-agent.
func StatusOf(child *projector.Session) ChildStatus {
	s := ChildStatus{Name: child.Child.Name, Agent: child.AgentType, Mode: agentloop.NonBlocking, Status: string(child.Status)}
	if child.Child.Blocking {
		s.Mode = agentloop.Blocking
	}
	switch {
	case child.Terminated:
		s.Status, s.Output = StatusTerminated, child.Output
	case child.Running():
		s.Status = StatusRunning
	case child.Suspended():
		s.Status = statusSuspended
	case child.Error != nil:
		s.Error = child.Error.Message
	default:
		s.Output = child.Output
	}
	return s
}

// childNews returns the message that notifies a session of the end of a persistent
// sub-agent's turn, or nil.
func childNews(t *projector.Tree, s *projector.Session) *Tell {
	for _, child := range t.ChildrenOf(s.SessionID) {
		if child.Child.Mode != fact.SubSessionPersistent || !child.Over() || child.Delivered >= child.TurnCount {
			continue
		}
		meta := Encoded(projector.ChildNotice{
			Hidden: true, Helix: projector.ChildNoticeMark, Session: child.SessionID, Turn: child.TurnCount,
		})
		text := fmt.Sprintf("Your sub-agent %q has finished its turn: %s", child.Child.Name, Encoded(StatusOf(child).Cut()))
		return &Tell{Session: s.SessionID, Text: text, Metadata: meta}
	}
	return nil
}

// Encoded returns a value as JSON.
func Encoded(v any) json.RawMessage {
	raw, _ := json.Marshal(v)
	return raw
}

// OwnMessage reports whether the loop wrote a message.
func OwnMessage(metadata json.RawMessage) bool {
	var meta map[string]json.RawMessage
	return json.Unmarshal(metadata, &meta) == nil && meta[projector.OwnMetadata] != nil
}
