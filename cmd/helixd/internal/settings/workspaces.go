package settings

import (
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
