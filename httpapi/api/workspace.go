package api

import (
	"encoding/json"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
)

// WorkspaceAnswer is the answer of GET /workspace.
type WorkspaceAnswer struct {
	Workspace *Workspace `json:"workspace"` // null: the session has none
}

// Workspace describes a session's workspace.
type Workspace struct {
	Name         string                         `json:"name"`
	ProviderID   string                         `json:"providerId"` // the kind
	Status       projector.WorkspaceStatus      `json:"status"`
	Capabilities []eventlog.WorkspaceCapability `json:"capabilities"`
	OpenedAt     int64                          `json:"openedAt,omitempty"`   // ms since the epoch
	LastUsedAt   int64                          `json:"lastUsedAt,omitempty"` // ms since the epoch
	Error        string                         `json:"error,omitempty"`
	Ref          json.RawMessage                `json:"ref,omitempty"` // opaque
}
