package agentloop

import (
	"encoding/json"

	"github.com/helixd/helixd/eventlog/fact"
)

// Input is a user's message or, with Added, a message that was said elsewhere.
type Input struct {
	// Added, if set, is a message of the assistant, of a tool, or a system message, from a
	// conversation that was held elsewhere; its FactBase does not count, and neither do the
	// other fields.
	Added *fact.MessageAdded

	Content  string
	Files    []fact.MessageFile
	Metadata json.RawMessage // an object, or nil
	// MessageID is what the client calls the message; empty: nothing. A session
	// takes a message once: see ErrMessageKnown.
	MessageID string
}
