package api

import (
	"encoding/json"

	"github.com/helixd/helixd/eventlog"
)

// EndEvent is the data of an end event.
type EndEvent struct {
	Type   string          `json:"type"`
	Output json.RawMessage `json:"output,omitempty"`
	State  json.RawMessage `json:"state,omitempty"`
	Status string          `json:"status,omitempty"` // paused or interrupted
}

// ErrorEvent is the data of an error event. Recoverable is the flag of the failure's error
// chunk: a retry may succeed.
type ErrorEvent struct {
	Type        string `json:"type"`
	Error       string `json:"error"`
	Recoverable bool   `json:"recoverable"`
}

// Data of the events of GET /sessions/{id}/stream.
type (
	StoreEndEvent struct {
		Type        string          `json:"type"`
		FinalOutput json.RawMessage `json:"finalOutput,omitempty"`
	}
	StoreFailEvent struct {
		Type  string `json:"type"`
		Error string `json:"error"`
	}
	StatusEvent struct {
		Type   string                `json:"type"`
		Status eventlog.StreamStatus `json:"status"` // paused or active
	}
	TruncatedEvent struct {
		Type            string `json:"type"`
		TruncatedAtStep int    `json:"truncatedAtStep"`
		AtSequence      uint64 `json:"atSequence,omitempty"`
	}
)
