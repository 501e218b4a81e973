package main

import (
	"maps"
	"slices"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/remote"
	"github.com/helixd/helixd/cmd/helixd/config"
)

func subAgentsOf(a config.Agent) []agentloop.SubAgent {
	var subs []agentloop.SubAgent
	for _, name := range a.SubAgents {
		subs = append(subs, agentloop.SubAgent{Agent: name})
	}
	return subs
}

func persistentAgentsOf(a config.Agent) []agentloop.PersistentAgent {
	var agents []agentloop.PersistentAgent
	for _, p := range a.PersistentAgents {
		agents = append(agents, agentloop.PersistentAgent{Agent: p.Agent, Mode: agentloop.PersistentMode(p.Mode)})
	}
	return agents
}

func remoteAgentsOf(a config.Agent) []agentloop.RemoteAgent {
	var agents []agentloop.RemoteAgent
	for _, name := range slices.Sorted(maps.Keys(a.RemoteAgents)) {
		r := a.RemoteAgents[name]
		agents = append(agents, agentloop.RemoteAgent{
			Name: name, Description: r.Description, AgentType: r.AgentType, Timeout: r.Timeout,
			InputSchema: r.InputSchema, OutputSchema: r.OutputSchema,
			Transport: remote.NewHTTP(r.URL, &remote.Options{Headers: revealed(r.Headers)}),
		})
	}
	return agents
}
