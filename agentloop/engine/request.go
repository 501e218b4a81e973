package engine

import (
	"encoding/json"
	"slices"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine/internal/request"
	"github.com/helixd/helixd/eventlog"
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

func started(session, run string) Started {
	return Started{SessionID: session, StreamID: session, RunID: run}
}

// checkInputs refuses what a user's message must not have.
func checkInputs(messages []agentloop.Input) error {
	for _, m := range messages {
		var meta map[string]json.RawMessage
		if m.Metadata == nil || json.Unmarshal(m.Metadata, &meta) != nil {
			continue // it is validated with its record
		}
		if _, ours := meta[projector.OwnMetadata]; ours {
			return &eventlog.ValidationError{Field: "metadata." + projector.OwnMetadata, Reason: "is reserved"}
		}
	}
	return nil
}
