package engine

import (
	"context"
	"encoding/json"

	"github.com/helixd/helixd/agentloop/workspace"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
)

// WorkspaceDescription describes a session's workspace.
type WorkspaceDescription struct {
	Kind WorkspaceSupport `json:"kind"`
	// Snapshot is of the workspace's entry, not of its files. nil, if Kind is
	// ok: the session has none, and what its agent would give it only another
	// node knows.
	Snapshot *EntrySnapshot `json:"snapshot"`
}

// WorkspaceSupport says whether a session can have a workspace.
type WorkspaceSupport string

// Kinds of support.
const (
	WorkspaceOK        WorkspaceSupport = "ok"
	WorkspaceNoRuntime WorkspaceSupport = "no-runtime-support" // this loop has no providers
	WorkspaceNone      WorkspaceSupport = "no-registry"        // the session's agent has none
)

// EntrySnapshot is a workspace as operators see it.
type EntrySnapshot struct {
	Name         string                     `json:"name"`
	ProviderID   string                     `json:"providerId"`
	Status       projector.WorkspaceStatus  `json:"status"`
	Capabilities []fact.WorkspaceCapability `json:"capabilities"`
	OpenedAt     int64                      `json:"openedAt,omitempty"`   // ms since the epoch
	LastUsedAt   int64                      `json:"lastUsedAt,omitempty"` // ms since the epoch
	Error        string                     `json:"error,omitempty"`
	Ref          json.RawMessage            `json:"ref,omitempty"` // opaque
}

// DescribeWorkspace describes the workspace of a root session.
//
// Errors: eventlog.ErrSessionNotFound, and what the log returns.
func (l *Loop) DescribeWorkspace(ctx context.Context, session string) (WorkspaceDescription, error) {
	t, err := l.states.Head(ctx, session)
	if err != nil {
		return WorkspaceDescription{}, err
	}
	def := l.agents.Defs()[t.AgentType]
	switch w := t.Workspace; {
	case w != nil:
		return WorkspaceDescription{Kind: WorkspaceOK, Snapshot: &EntrySnapshot{
			Name: w.Name, ProviderID: w.ProviderID, Status: w.Status, Capabilities: notNil(w.Capabilities),
			OpenedAt: w.OpenedAt, LastUsedAt: w.LastUsedAt, Error: w.Error, Ref: w.Ref,
		}}, nil
	case def != nil && def.Workspace != nil:
		return WorkspaceDescription{Kind: WorkspaceOK, Snapshot: &EntrySnapshot{
			Name: def.Workspace.Name, ProviderID: def.Workspace.Provider, Status: projector.WorkspaceUnopened,
			Capabilities: def.Workspace.Capabilities,
		}}, nil
	case len(l.files.Providers) == 0:
		return WorkspaceDescription{Kind: WorkspaceNoRuntime}, nil
	case def == nil:
		return WorkspaceDescription{Kind: WorkspaceOK}, nil
	}
	return WorkspaceDescription{Kind: WorkspaceNone}, nil
}

// ListFiles returns the content of a folder of a root session's workspace as it is now,
// with that of its folders: at most workspace.MaxEntries. truncated says that there is
// more. The folder is a name that workspace.CheckName accepts; "." is all of the workspace.
//
// Errors: eventlog.ErrSessionNotFound, a *agentloop.WorkspaceWiringError,
// agentloop.ErrWorkspaceTimeout, workspace.ErrElsewhere, fs.ErrNotExist, workspace.ErrNotFolder, and what the log and the
// provider return.
func (l *Loop) ListFiles(ctx context.Context, session, folder string) (entries []workspace.Entry, truncated bool, err error) {
	t, err := l.states.Head(ctx, session)
	if err != nil {
		return nil, false, err
	}
	return l.files.List(ctx, workspace.Session{Root: t.SessionID, ID: t.SessionID}, t.Workspace, folder)
}

// notNil is a list that is shown as one.
func notNil(all []fact.WorkspaceCapability) []fact.WorkspaceCapability {
	if all == nil {
		return []fact.WorkspaceCapability{}
	}
	return all
}
