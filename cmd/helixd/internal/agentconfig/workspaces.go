package agentconfig

import (
	"errors"
	"fmt"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/workspace"
	"github.com/helixd/helixd/agentloop/workspace/local"
	"github.com/helixd/helixd/cmd/helixd/config"
)

// AtKey says which key of the configuration the loop has refused an agent for.
func AtKey(c *config.Config, err error, known []workspace.Provider) error {
	at := func(agent, path string, err error) error {
		return c.AtKeys(&agentloop.AgentError{Agent: agent, Path: path, Problem: err.Error()})
	}
	if wiring, is := errors.AsType[*agentloop.WorkspaceWiringError](err); is {
		return at(wiring.Agent, "workspace.provider", fmt.Errorf("%w: a restart opens it", err))
	}
	failed, is := errors.AsType[*agentloop.WorkspaceFailedError](err)
	if !is {
		return c.AtKeys(err)
	}
	for _, p := range known {
		if l, is := p.(*local.Provider); is && failed.Provider == local.ID && l.ShellProblem() != nil {
			err = fmt.Errorf("%w: %w", err, l.ShellProblem())
		}
	}
	return at(failed.Agent, "workspace.capabilities", err)
}
