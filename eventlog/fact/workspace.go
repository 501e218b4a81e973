package fact

import "encoding/json"

// Facts of a session's workspace. A ref and a snapshot are opaque to everybody
// but the provider that made them.
type (
	// WorkspaceOpened says that the session's workspace is there; it is
	// appended before it is used first.
	WorkspaceOpened struct {
		Name         string                `json:"name" helix:"id"`
		ProviderID   string                `json:"providerId" helix:"id"`
		Capabilities []WorkspaceCapability `json:"capabilities"`
		Ref          json.RawMessage       `json:"ref" helix:"object"` // an object
		Base
	}

	// WorkspaceFailed says that it could not be opened, resolved, saved or
	// restored, or that it was lost. The next use tries again.
	WorkspaceFailed struct {
		Name       string `json:"name" helix:"id"`
		ProviderID string `json:"providerId" helix:"id"`
		Error      string `json:"error"`
		Base
	}

	// WorkspaceSaved is what the files were at a step's end. It is appended with
	// the step's commit, so that the checkpoint has it: a rollback or a fork to
	// there brings the files along.
	WorkspaceSaved struct {
		Snapshot json.RawMessage `json:"snapshot" helix:"object"` // an object
		Base
	}

	// WorkspaceRestored says that the files are those of the last snapshot
	// again, after a rollback or in a fork.
	WorkspaceRestored struct {
		Base
	}

	// WorkspaceClosed says that the workspace and its snapshots were removed.
	WorkspaceClosed struct {
		Reason string `json:"reason"`
		Base
	}
)

// WorkspaceCapability is something that a workspace can do.
type WorkspaceCapability string

// Capabilities of workspaces.
const (
	WorkspaceFS       WorkspaceCapability = "fs"
	WorkspaceShell    WorkspaceCapability = "shell"
	WorkspaceCode     WorkspaceCapability = "code"
	WorkspaceSnapshot WorkspaceCapability = "snapshot"
)

func (*WorkspaceOpened) Type() string   { return "workspace_opened" }
func (*WorkspaceFailed) Type() string   { return "workspace_failed" }
func (*WorkspaceSaved) Type() string    { return "workspace_saved" }
func (*WorkspaceRestored) Type() string { return "workspace_restored" }
func (*WorkspaceClosed) Type() string   { return "workspace_closed" }
