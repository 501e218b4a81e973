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

// Started names the run that a request began or found.
type Started = request.Started
