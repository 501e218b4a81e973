package config

import (
	"fmt"
	"maps"
	"slices"
)

// maxChildName is what is left of a tool's name behind the prefix of
// sub-agents.
const maxChildName = 64 - len("subagent__")

// checkChildren looks at the agents that an agent may call.
func (k *checker) checkChildren(a Agent, path string) {
	tools := map[string]bool{} // names behind subagent__
	for i, child := range a.SubAgents {
		at := index(path+".subAgents", i)
		k.checkKnown(child, at)
		k.checkChildName(child, at)
		k.require(!tools[child], at, "is given twice")
		tools[child] = true
		if agent, ok := k.config.Agents[child]; ok {
			k.require(agent.OutputSchema != nil, at, fmt.Sprintf("agent %s needs an outputSchema: it is what the call returns", child))
		}
	}
	persistent := map[string]bool{}
	for i, p := range a.PersistentAgents {
		at := index(path+".persistentAgents", i)
		k.checkKnown(p.Agent, at+".agent")
		k.require(p.Agent == "" || !persistent[p.Agent], at+".agent", "is given twice")
		persistent[p.Agent] = true
		k.require(p.Mode == ModeBlocking || p.Mode == ModeNonBlocking, at+".mode", "must be blocking or non-blocking")
	}
	for _, name := range slices.Sorted(maps.Keys(a.RemoteAgents)) {
		at := join(path, "remoteAgents", name)
		k.checkChildName(name, at)
		k.require(!tools[name], at, "is one of subAgents, too")
		k.checkRemote(a.RemoteAgents[name], at)
	}
}

func (k *checker) checkKnown(agent, path string) {
	_, ok := k.config.Agents[agent]
	k.require(ok, path, "must be one of the agents")
}

func (k *checker) checkChildName(name, path string) {
	k.require(validName.MatchString(name), path, nameRule)
	k.require(len(name) <= maxChildName, path, fmt.Sprintf("the name of a sub-agent has at most %d characters", maxChildName))
}

func (k *checker) checkRemote(r RemoteAgent, path string) {
	k.needed(isHTTPURL(r.URL), path+".url", "must be an absolute http or https URL")
	k.checkHeaders(r.Headers, path+".headers")
	k.needed(r.AgentType != "", path+".agentType", "must not be empty")
	k.require(r.Timeout > 0, path+".timeout", "must be greater than 0")
	k.checkObjectSchema(r.InputSchema, path+".inputSchema")
	k.checkSchema(r.OutputSchema, path+".outputSchema")
}
