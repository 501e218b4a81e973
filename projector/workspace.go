package projector

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/helixd/helixd/eventlog/fact"
)

// WorkspaceStatus is the state of a workspace.
type WorkspaceStatus string

// States of workspaces.
const (
	WorkspaceUnopened WorkspaceStatus = "unopened"
	WorkspaceOpen     WorkspaceStatus = "open"
	WorkspaceBroken   WorkspaceStatus = "failed"
	WorkspaceGone     WorkspaceStatus = "closed"
)

// WorkspaceToolPrefix is the prefix of the names of a workspace's tools.
const WorkspaceToolPrefix = "workspace_"

// Workspace is the workspace of a session, from its first opening on.
type Workspace struct {
	Name         string                     `json:"name"`
	ProviderID   string                     `json:"providerId"`
	Status       WorkspaceStatus            `json:"status"`
	Capabilities []fact.WorkspaceCapability `json:"capabilities"`
	OpenedAt     int64                      `json:"openedAt,omitempty"`   // ms since the epoch
	LastUsedAt   int64                      `json:"lastUsedAt,omitempty"` // ms since the epoch
	Error        string                     `json:"error,omitempty"`
	// Ref is how the provider finds it; nil: it must be opened, as in a fork.
	Ref json.RawMessage `json:"ref,omitempty"`
	// Snapshot is the snapshot of the files at the last checkpoint that changed them;
	// nil: there is none.
	Snapshot json.RawMessage `json:"snapshot,omitempty"`
	// Dirty: a call may have changed files since the last snapshot; while Stale, files
	// that the state had.
	Dirty bool `json:"dirty,omitempty"`
	// Stale: after a rollback or in a fork, the files are not those of the state any
	// more. They must be restored from Snapshot before the next use.
	Stale bool `json:"stale,omitempty"`
}

func (s *Session) workspaceOpened(f *fact.WorkspaceOpened) {
	w := Workspace{}
	if s.Workspace != nil {
		w = *s.Workspace
	}
	w.Name, w.ProviderID, w.Capabilities, w.Ref = f.Name, f.ProviderID, slices.Clone(f.Capabilities), f.Ref
	w.Status, w.Error, w.OpenedAt, w.LastUsedAt = WorkspaceOpen, "", f.Timestamp, f.Timestamp
	s.Workspace = &w
}

func (s *Session) workspaceFailed(f *fact.WorkspaceFailed) {
	w := Workspace{Name: f.Name, ProviderID: f.ProviderID}
	if s.Workspace != nil {
		w = *s.Workspace
	}
	if w.Error = f.Error; w.Status != WorkspaceGone { // clients must still be notified of its removal
		w.Status = WorkspaceBroken
	}
	s.Workspace = &w
}

// changeWorkspace changes the session's workspace, if it has one. It changes a copy,
// since clones share the value.
func (s *Session) changeWorkspace(change func(w *Workspace)) string {
	if s.Workspace == nil {
		return "the session has no workspace"
	}
	w := *s.Workspace
	change(&w)
	s.Workspace = &w
	return ""
}

// workspaceUsed records the end of a call, which may have changed the files if it had
// access to them.
func (s *Session) workspaceUsed(f *fact.ToolResult) {
	op, ok := strings.CutPrefix(f.ToolName, WorkspaceToolPrefix)
	if s.Workspace == nil || !ok {
		return
	}
	s.changeWorkspace(func(w *Workspace) {
		w.LastUsedAt = max(w.LastUsedAt, f.Timestamp)
		w.Dirty = w.Dirty || w.Ref != nil && !w.Stale && op != "read_file" && op != "list_files" && op != "search_files"
	})
}

// workspaceBack returns the present workspace after a rollback to the given snapshot and
// dirty flag. A workspace stays open; its files must be restored.
func (s *Session) workspaceBack(snapshot json.RawMessage, dirty bool) *Workspace {
	if s.Workspace == nil {
		return nil
	}
	w := *s.Workspace
	w.Snapshot, w.Dirty, w.Stale = snapshot, dirty, true
	return &w
}
