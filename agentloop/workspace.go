package agentloop

import (
	"fmt"
	"strings"

	"github.com/helixd/helixd/eventlog/fact"
)

// Workspace gives an agent files, and maybe commands: each of its sessions
// has its own workspace, which its model uses by the tools
// workspace_{operation}. See package workspace.
type Workspace struct {
	// Name is what it is called, [a-zA-Z0-9_-]{1,64}; empty:
	// DefaultWorkspaceName.
	Name string
	// Provider is the kind, one of Workspaces in the options of package engine.
	Provider string
	// Capabilities are what the model may use of what the provider offers; nil:
	// fs.
	Capabilities []fact.WorkspaceCapability
	// Approve are the operations that a person must approve each time, as
	// delete_file or run.
	Approve []string
	// HostNetwork gives commands the machine's network, as far as the provider
	// can keep it from them; default false.
	HostNetwork bool
}

// DefaultWorkspaceName is how a workspace is called that has no other name.
const DefaultWorkspaceName = "files"

// WorkspaceWiringError says that an agent's workspace is of a kind that the
// loop has no provider of.
type WorkspaceWiringError struct {
	Agent    string
	Provider string
	Known    []string // kinds that there are
}

func (e *WorkspaceWiringError) Error() string {
	there := "there are none"
	if len(e.Known) > 0 {
		there = "there are: " + strings.Join(e.Known, ", ")
	}
	return fmt.Sprintf("agentloop: WORKSPACE_WIRING: agent %s: there is no provider %q of workspaces; %s", e.Agent, e.Provider, there)
}

// WorkspaceFailedError says that an agent wants more of a workspace than its
// provider offers.
type WorkspaceFailedError struct {
	Agent    string
	Provider string
	Missing  []fact.WorkspaceCapability
}

func (e *WorkspaceFailedError) Error() string {
	missing := make([]string, len(e.Missing))
	for i, c := range e.Missing {
		missing[i] = string(c)
	}
	return fmt.Sprintf("agentloop: agent %s: the provider %s of workspaces does not offer %s", e.Agent, e.Provider, strings.Join(missing, ", "))
}
