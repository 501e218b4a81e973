package engine

import (
	"slices"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine/internal/request"
	"github.com/helixd/helixd/projector"
)

// knows reports whether the session has one of the messages already: a client that repeats
// it has missed the answer.
func knows(t *projector.Tree, messages []agentloop.Input) bool {
	return slices.ContainsFunc(messages, func(in agentloop.Input) bool {
		return in.MessageID != "" && slices.ContainsFunc(t.Messages, func(m projector.Message) bool {
			return m.MessageID == in.MessageID && m.Content == in.Content
		})
	})
}

// isLast returns ErrNotLast unless run, if it is not empty, is the session's last one.
func isLast(t *projector.Tree, run string) error {
	if last := t.CurrentRun(); run != "" && (last == nil || last.RunID != run) {
		return agentloop.ErrNotLast
	}
	return nil
}

// Started names the run that a request began or found.
type Started = request.Started
