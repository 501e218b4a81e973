package config

import (
	"maps"
	"slices"
)

func (k *checker) checkAgents() {
	agents := k.config.Agents
	for _, name := range slices.Sorted(maps.Keys(agents)) {
		a, path := agents[name], join("agents", name)
		k.require(validName.MatchString(name), path, nameRule)
		k.checkModel(a.Model, path+".model")
		k.require(a.MaxSteps >= 1, path+".maxSteps", "must be at least 1")
		k.require(isObject(a.InitialState), path+".initialState", "must be a mapping")
		k.checkSchema(a.OutputSchema, path+".outputSchema")
		k.checkSchema(a.InputSchema, path+".inputSchema")
		for _, tool := range slices.Sorted(maps.Keys(a.Tools)) {
			k.checkTool(tool, a.Tools[tool], join(path, "tools", tool))
		}
		for i, m := range a.MCP {
			k.checkMCP(m, index(path+".mcp", i))
		}
		k.checkChildren(a, path)
	}
}

// checkSchema looks at the outside of a JSON Schema only.
func (k *checker) checkSchema(schema []byte, path string) {
	k.require(isObject(schema), path, "must be a JSON Schema, a mapping")
}

func (k *checker) checkMCP(m MCPServer, path string) {
	k.require(validName.MatchString(m.Name), path+".name", nameRule)
	k.needed((len(m.Command) > 0) != (m.URL != ""), path, "needs either command or url")
	k.require(m.URL == "" || isHTTPURL(m.URL), path+".url", "must be an absolute http or https URL")
	k.require(len(m.Command) == 0 || m.Command[0] != "", path+".command", "must not be empty")
}

// checkChildren looks at the agents that an agent may call.
func (k *checker) checkChildren(a Agent, path string) {
	known := func(name string) bool { _, ok := k.config.Agents[name]; return ok }
	for i, child := range a.SubAgents {
		k.require(known(child), index(path+".subAgents", i), "must be one of the agents")
	}
	for i, p := range a.PersistentAgents {
		at := index(path+".persistentAgents", i)
		k.require(known(p.Agent), at+".agent", "must be one of the agents")
		k.require(p.Mode == ModeBlocking || p.Mode == ModeNonBlocking, at+".mode", "must be blocking or non-blocking")
	}
	for _, name := range slices.Sorted(maps.Keys(a.RemoteAgents)) {
		r, at := a.RemoteAgents[name], join(path, "remoteAgents", name)
		k.require(validName.MatchString(name), at, nameRule)
		k.require(isHTTPURL(r.URL), at+".url", "must be an absolute http or https URL")
		k.require(r.AgentType != "", at+".agentType", "must not be empty")
		k.require(r.Timeout > 0, at+".timeout", "must be greater than 0")
		k.checkSchema(r.InputSchema, at+".inputSchema")
		k.checkSchema(r.OutputSchema, at+".outputSchema")
	}
}
