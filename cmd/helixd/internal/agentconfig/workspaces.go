package agentconfig

import (
	"errors"
	"fmt"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/workspace"
	"github.com/helixd/helixd/agentloop/workspace/local"
	"github.com/helixd/helixd/cmd/helixd/config"
)

// workspaceOf is an agent's workspace, nil if it has none.
func workspaceOf(a config.Agent) *agentloop.AgentWorkspace {
	w := a.Space()
	if w == nil {
		return nil
	}
	return &agentloop.AgentWorkspace{
		Name: w.Name, Provider: w.Provider, Capabilities: w.EventCapabilities(), Approve: w.Approve,
		HostNetwork: w.Network == config.NetworkHost,
	}
}

// atWorkspace says which key of the configuration an agent's workspace has
// failed for.
func atWorkspace(c *config.Config, err error, known []workspace.Provider) error {
	at := func(agent, key string) string {
		a := c.Agents[agent]
		if a.Workspace == nil && a.Space() != nil {
			return fmt.Sprintf("agents.%s.workspaces.%s.%s", agent, a.Space().Name, key)
		}
		return fmt.Sprintf("agents.%s.workspace.%s", agent, key)
	}
	if wiring, is := errors.AsType[*agentloop.WorkspaceWiringError](err); is {
		return c.At(at(wiring.Agent, "provider"), fmt.Errorf("%w: a restart opens it", err))
	}
	failed, is := errors.AsType[*agentloop.WorkspaceFailedError](err)
	if !is {
		return err
	}
	for _, p := range known {
		if l, is := p.(*local.Provider); is && failed.Provider == local.ID && l.ShellProblem() != nil {
			err = fmt.Errorf("%w: %w", err, l.ShellProblem())
		}
	}
	return c.At(at(failed.Agent, "capabilities"), err)
}
