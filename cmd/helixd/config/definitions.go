package config

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/model/scripted"
)

// Definitions are the agents as the engine takes them, but for their models, by name.
func (c *Config) Definitions() []agentloop.Agent {
	var agents []agentloop.Agent
	for _, name := range slices.Sorted(maps.Keys(c.Agents)) {
		a := c.Agents[name]
		agents = append(agents, agentloop.Agent{
			Name: name, Description: a.Description, SystemPrompt: a.SystemPrompt, Tools: toolsOf(a),
			OutputSchema: a.OutputSchema, InitialState: a.InitialState, MaxSteps: a.MaxSteps, MaxRetries: orNever(a.Model.MaxRetries),
			InputSchema: a.InputSchema, SubAgents: subAgentsOf(a), PersistentAgents: persistentAgentsOf(a),
			RemoteAgents: remoteAgentsOf(a), Workspace: workspaceOf(a), Approvals: approvalsOf(a), StrictOutput: a.Model.StrictOutput,
		})
	}
	return agents
}

// checkDefinitions reports what the engine refuses, except at keys that have a problem.
// The tools that an approval may name are known once the MCP servers are connected.
func (k *checker) checkDefinitions() {
	agents := k.config.Definitions()
	for i := range agents {
		agents[i].Model, agents[i].Approvals = scripted.New([]scripted.Turn{{}}, nil), nil
	}
	known := slices.Clone(k.problems)
	for _, fault := range faultsIn(engine.Check(agents)) {
		path := k.config.keyOf(fault)
		k.require(slices.ContainsFunc(known, func(p problem) bool { return p.path == path }), path, fault.Problem)
	}
}

// AtKeys says which keys of the configuration the engine has refused agents for.
func (c *Config) AtKeys(err error) error {
	faults := faultsIn(err)
	if len(faults) == 0 {
		return err
	}
	problems := make([]problem, len(faults))
	for i, fault := range faults {
		path := c.keyOf(fault)
		problems[i] = problem{at: c.originOf(path), path: path, text: fault.Problem}
	}
	return joined(problems)
}

func faultsIn(err error) (faults []*agentloop.AgentError) {
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		for _, err := range all.Unwrap() {
			faults = append(faults, faultsIn(err)...)
		}
	} else if fault, ok := errors.AsType[*agentloop.AgentError](err); ok {
		faults = append(faults, fault)
	}
	return faults
}

// keyOf is the key that an agent's fault is about.
func (c *Config) keyOf(fault *agentloop.AgentError) string {
	path := fault.Path
	a := c.Agents[fault.Agent]
	if rest, ok := strings.CutPrefix(path, "workspace."); ok && a.Workspace == nil && a.Space() != nil {
		path = join("workspaces", a.Space().Name, rest)
		if rest == "name" {
			path = join("workspaces", a.Space().Name)
		}
	}
	return strings.TrimSuffix(join("agents", fault.Agent, path), ".")
}
