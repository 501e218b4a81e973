package api

import (
	"encoding/json"

	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
)

// WorkspaceAnswer is the answer of GET /workspace.
type WorkspaceAnswer struct {
	Workspace *Workspace `json:"workspace"` // null: the session has none
}

// FilesPage is the answer of GET /sessions/{id}/files.
type FilesPage struct {
	Page[File]
	// Truncated: the folder has more than the listing, which has at most 1000 entries.
	// Ask for its folders one by one.
	Truncated bool `json:"truncated,omitempty"`
}

// File is a file or a folder of a session's workspace.
type File struct {
	Path     string `json:"path"` // relative to the workspace
	Folder   bool   `json:"folder,omitempty"`
	Size     int64  `json:"size"`               // bytes; 0 for a folder
	Modified int64  `json:"modified,omitempty"` // ms since the epoch; 0: not known
}

// Workspace describes a session's workspace.
type Workspace struct {
	Name         string                     `json:"name"`
	ProviderID   string                     `json:"providerId"` // the kind
	Status       projector.WorkspaceStatus  `json:"status"`
	Capabilities []fact.WorkspaceCapability `json:"capabilities"`
	OpenedAt     int64                      `json:"openedAt,omitempty"`   // ms since the epoch
	LastUsedAt   int64                      `json:"lastUsedAt,omitempty"` // ms since the epoch
	Error        string                     `json:"error,omitempty"`
	Ref          json.RawMessage            `json:"ref,omitempty"` // opaque
}
