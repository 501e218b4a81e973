package agentloop

import (
	"encoding/json"

	"github.com/helixd/helixd/eventlog/fact"
)

// Input is a user's message.
type Input struct {
	Content  string
	Files    []fact.MessageFile
	Metadata json.RawMessage // an object, or nil
	// MessageID is what the client calls the message; empty: nothing. A session
	// takes a message once: see ErrMessageKnown.
	MessageID string
}
