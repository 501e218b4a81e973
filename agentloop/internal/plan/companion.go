package plan

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/helixd/helixd/agentloop"
)

// The companion tools.
const (
	ToolSpawnAgent     = agentloop.CompanionPrefix + "spawnAgent"
	ToolSendMessage    = agentloop.CompanionPrefix + "sendMessage"
	ToolListChildren   = agentloop.CompanionPrefix + "listChildren"
	toolGetChildStatus = agentloop.CompanionPrefix + "getChildStatus"
	ToolTerminateChild = agentloop.CompanionPrefix + "terminateChild"
	ToolWaitForResult  = agentloop.CompanionPrefix + "waitForResult"
)

// IsCompanion reports whether a tool is one of the companion tools.
func IsCompanion(tool string) bool { return strings.HasPrefix(tool, agentloop.CompanionPrefix) }

// companions are the tools with their arguments' schemas.
var companions = []struct{ name, description, schema string }{
	{ToolSpawnAgent, "Start a sub-agent that keeps its conversation. Agents: %s", `{"type":"object","properties":{
		"agent":{"type":"string","description":"The kind of agent."},
		"name":{"type":"string","description":"What to call it; made up if it is missing.","pattern":"^[a-zA-Z0-9_-]{1,64}$"},
		"initialMessage":{"type":"string"}},"required":["agent","initialMessage"],"additionalProperties":false}`},
	{ToolSendMessage, "Send a message to a sub-agent. One that is working is interrupted by it.", `{"type":"object","properties":{
		"name":{"type":"string"},"message":{"type":"string"}},"required":["name","message"],"additionalProperties":false}`},
	{ToolListChildren, "List the sub-agents that were started.", `{"type":"object","properties":{},"additionalProperties":false}`},
	{toolGetChildStatus, "Tell what a sub-agent is doing, and what it has said last.", `{"type":"object","properties":{
		"name":{"type":"string"}},"required":["name"],"additionalProperties":false}`},
	{ToolTerminateChild, "Stop a sub-agent for good.", `{"type":"object","properties":{
		"name":{"type":"string"},"reason":{"type":"string"}},"required":["name"],"additionalProperties":false}`},
	{ToolWaitForResult, "Wait until a sub-agent has finished what it is doing.", `{"type":"object","properties":{
		"name":{"type":"string"},"timeoutMs":{"type":"integer","minimum":1,"maximum":86400000,"description":"How long at most, in milliseconds."}},
		"required":["name"],"additionalProperties":false}`},
}

// linkPersistent finds the persistent sub-agents and offers the tools to deal
// with them.
func (d *Agent) linkPersistent(agents map[string]*Agent) {
	blocking, list := false, ""
	for i, p := range d.PersistentAgents {
		at := fmt.Sprintf("persistentAgents[%d]", i)
		child := agents[p.Agent]
		if child == nil {
			d.refuseUnknown(at+".agent", agents)
		}
		if d.Persistent[p.Agent].Agent != "" {
			d.refuse(at+".agent", twice)
		}
		if p.Mode != agentloop.Blocking && p.Mode != agentloop.NonBlocking {
			d.refuse(at+".mode", "must be blocking or non-blocking")
		}
		if child == nil {
			continue
		}
		p.Description = cmp.Or(p.Description, child.Description)
		d.Persistent[p.Agent] = p
		blocking = blocking || p.Mode == agentloop.Blocking
		list += fmt.Sprintf("\n- %s (%s): %s", p.Agent, p.Mode, p.Description)
	}
	if len(d.Persistent) == 0 {
		return
	}
	d.Companion = map[string]*jsonschema.Resolved{}
	for _, tool := range companions {
		if tool.name == ToolWaitForResult && !blocking {
			continue
		}
		description := tool.description
		if tool.name == ToolSpawnAgent {
			description = fmt.Sprintf(description, list)
		}
		d.offer(tool.name, description, json.RawMessage(tool.schema))
		d.Companion[tool.name] = d.objectSchema("persistentAgents", json.RawMessage(tool.schema))
	}
}
