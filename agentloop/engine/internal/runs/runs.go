// Package runs finds out what a run began with, and why the run before it stopped.
package runs

import (
	"slices"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
)

// MessagesOf returns the messages that came with a run: they are right before it.
func MessagesOf(s *projector.Session, run *projector.Run) []projector.Message {
	var input []projector.Message
	seq := run.StartSequence
	for _, m := range slices.Backward(s.Messages) {
		if m.Role != projector.RoleUser || m.Sequence != seq || seq == 0 {
			break
		}
		input = append(input, m)
		seq--
	}
	slices.Reverse(input)
	return input
}

// SuspendedFor says why the run before the session's last one did not end its
// turn.
func SuspendedFor(s *projector.Session) string {
	last := true
	for _, run := range slices.Backward(s.Runs) {
		switch {
		case run.Truncated:
		case last:
			last = false
		default:
			return SuspensionReason(run.Status)
		}
	}
	return ""
}

// SuspensionReason is why a run with the status has not ended its turn; empty: it
// has.
func SuspensionReason(status fact.RunStatus) string {
	switch status {
	case fact.RunClientTool, fact.RunStepPartial:
		return agentloop.ReasonClientTool
	case fact.RunChildren:
		return agentloop.ReasonAwaitingChildren
	case fact.RunStopped:
		return agentloop.ReasonInterrupted
	}
	return ""
}
