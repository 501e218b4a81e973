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
		k.checkObjectSchema(a.OutputSchema, path+".outputSchema")
		k.checkObjectSchema(a.InputSchema, path+".inputSchema")
		for _, tool := range slices.Sorted(maps.Keys(a.Tools)) {
			k.checkTool(tool, a.Tools[tool], join(path, "tools", tool))
		}
		k.checkMCP(a.MCP, path+".mcp")
		k.checkAgentMemory(a.Memory, path+".memory")
		k.checkChildren(a, path)
		k.checkApprovals(a.RequireApproval, path+".requireApproval")
		k.checkSpaces(a, path)
	}
}
