package api

import (
	"encoding/json"

	"github.com/helixd/helixd/eventlog"
)

// UIMessage is a message as AI SDK clients have it. The server answers with the same
// members from uimessage.Message, whose parts are typed.
type UIMessage struct {
	ID       string            `json:"id"`
	Role     string            `json:"role"` // user or assistant
	Metadata json.RawMessage   `json:"metadata,omitempty"`
	Parts    []json.RawMessage `json:"parts"` // each an object with a type
}

// Snapshot is the answer of GET /chat/{id}/snapshot, from which a chat client starts. M is
// [UIMessage], or a type that encodes to one.
type Snapshot[M any] struct {
	State    json.RawMessage `json:"state"` // the custom state
	Messages []M             `json:"messages"`
	// StreamSequence is n: everything here is of the records <= n.
	StreamSequence uint64                `json:"streamSequence"`
	Status         eventlog.StreamStatus `json:"status"`    // of the stream now
	Timestamp      int64                 `json:"timestamp"` // ms since the epoch
}

// History is the answer of GET /chat/{id}/messages. M is as in [Snapshot].
type History[M any] struct {
	Messages []M  `json:"messages"` // oldest first
	HasMore  bool `json:"hasMore"`
}
