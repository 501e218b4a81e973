package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/helixd/helixd/agentloop/remote"
)

// maxChildName is what is left of a tool's name behind the prefix of
// sub-agents.
const maxChildName = 64 - len("subagent__")

// checkChildren looks at the agents that an agent may call.
func (k *checker) checkChildren(a Agent, path string) {
	tools := map[string]bool{} // names behind subagent__
	for i, sub := range a.SubAgents {
		at, child := index(path+".subAgents", i), sub.Agent
		if k.needed(child != "", at, "needs an agent"); child == "" {
			continue
		}
		k.checkKnown(child, at)
		k.checkChildName(child, at)
		k.require(!tools[child], at, "is given twice")
		tools[child] = true
		if agent, ok := k.config.Agents[child]; ok {
			k.require(agent.OutputSchema != nil, at, fmt.Sprintf("agent %s needs an outputSchema: it is what the call returns", child))
		}
		k.require(sub.Timeout >= 0, at+".timeout", "must not be negative; 0s is none")
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
	for _, name := range slices.Sorted(maps.Keys(r.HeaderFiles)) {
		at := join(path, "headerFiles", name)
		k.require(headerName.MatchString(name), at, "not an HTTP header's name")
		file := r.HeaderFiles[name]
		k.require(file != "" && !strings.Contains(file, "\n"), at, "must be a file's path, not its content")
		_, both := r.Headers[name]
		k.require(!both, at, "is one of headers, too")
	}
	k.require(r.MaxRetries >= 0, path+".maxRetries", "must not be negative")
	k.require(r.RetryBaseDelay > 0, path+".retryBaseDelay", "must be greater than 0")
	k.require(r.StreamRetries >= 0 && r.StreamRetries <= remote.MaxStreamRetries, path+".streamRetries", fmt.Sprintf("must be from 0 to %d", remote.MaxStreamRetries))
	k.require(r.StreamRetryBase > 0, path+".streamRetryBase", "must be greater than 0")
	k.require(r.IdleTimeout > 0, path+".idleTimeout", "must be greater than 0")
	k.needed(r.AgentType != "", path+".agentType", "must not be empty")
	k.require(r.Timeout > 0, path+".timeout", "must be greater than 0")
	k.checkObjectSchema(r.InputSchema, path+".inputSchema")
	k.checkSchema(r.OutputSchema, path+".outputSchema")
}
