package settings

import (
	"path/filepath"

	"github.com/helixd/helixd/agentloop/workspace/local"
	"github.com/helixd/helixd/cmd/helixd/config"
)

// LocalOptions are those of local workspaces.
func LocalOptions(l config.LocalWorkspaces) *local.Options {
	return &local.Options{
		Timeout: l.Timeout, MaxProcesses: l.MaxProcesses, MaxBytes: int64(l.MaxBytes), MaxMemory: int64(l.MaxMemory), RunAs: l.RunAs,
		Unconfined: l.Unconfined,
	}
}

// WorkspacesFolder is where local workspaces are in the data folder.
const WorkspacesFolder = "workspaces"

// LocalWorkspaces is the folder of a node's local workspaces.
func LocalWorkspaces(c *config.Config) string {
	if dir := c.Workspaces.Local.Dir; dir != "" {
		return dir
	}
	return filepath.Join(c.DataDir, WorkspacesFolder)
}
