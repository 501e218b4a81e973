package remote

import (
	"encoding/json"

	"github.com/helixd/helixd/eventlog"
)

// Event is an element of a remote session's stream: a [ChunkEvent], an [EndEvent] or an [ErrorEvent]. The
// latter two are last.
type Event interface{ isEvent() }

// ChunkEvent is a chunk of the remote session.
type ChunkEvent struct {
	Sequence uint64 // in the remote log; at least 1
	Chunk    eventlog.Chunk
	Raw      json.RawMessage // the chunk as it came, at most eventlog.MaxPayload bytes of valid UTF-8
}

// EndEvent ends a stream without a failure.
type EndEvent struct {
	Output json.RawMessage // nil: none
	State  json.RawMessage // the custom state; nil: none
	Status string          // paused or interrupted: the session can be resumed; otherwise it has completed
}

// ErrorEvent ends a stream because the session has failed.
type ErrorEvent struct {
	Error       string // fit to be shown
	Recoverable bool
}

func (ChunkEvent) isEvent() {}
func (EndEvent) isEvent()   {}
func (ErrorEvent) isEvent() {}

// IsLast reports whether nothing follows e.
func IsLast(e Event) bool {
	_, more := e.(ChunkEvent)
	return !more
}
