package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/helixd/helixd/agentloop/remote"
)

func (k *checker) checkAgents() {
	agents := k.config.Agents
	for _, name := range slices.Sorted(maps.Keys(agents)) {
		a, path := agents[name], join("agents", name)
		k.checkModel(a.Model, path+".model")
		k.require(a.MaxSteps >= 1, path+".maxSteps", "must be at least 1")
		for _, tool := range slices.Sorted(maps.Keys(a.Tools)) {
			k.checkTool(a.Tools[tool], join(path, "tools", tool))
		}
		k.checkMCP(a.MCP, path+".mcp")
		k.checkAgentMemory(a.Memory, path+".memory")
		k.checkChildren(a, path)
		k.checkApprovals(a.RequireApproval, path+".requireApproval")
		k.checkSpaces(a, path)
	}
	k.checkDefinitions()
}

// checkChildren looks at the agents that an agent may call.
func (k *checker) checkChildren(a Agent, path string) {
	for i, sub := range a.SubAgents {
		at := index(path+".subAgents", i)
		k.needed(sub.Agent != "", at, "needs an agent")
		k.require(sub.Timeout >= 0, at+".timeout", "must not be negative; 0s is none")
	}
	for _, name := range slices.Sorted(maps.Keys(a.RemoteAgents)) {
		k.checkRemote(a.RemoteAgents[name], join(path, "remoteAgents", name))
	}
}

func (k *checker) checkRemote(r RemoteAgent, path string) {
	k.needed(isHTTPURL(r.URL), path+".url", "must be an absolute http or https URL")
	k.checkHeaders(r.Headers, path+".headers")
	for _, name := range slices.Sorted(maps.Keys(r.HeaderFiles)) {
		at := join(path, "headerFiles", name)
		k.require(httpguts.ValidHeaderFieldName(name), at, "not an HTTP header's name")
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
}

func (k *checker) checkTool(t Tool, path string) {
	k.require(t.OutputSchema == nil || t.Client, path+".outputSchema", "is for client tools: it is what a client's result must fit")
	k.needed(t.HTTP != nil || t.Client, path, "needs either http or client")
	k.require(t.HTTP == nil || !t.Client, path, "can't have both http and client")
	if t.HTTP != nil {
		k.checkHTTP(*t.HTTP, path+".http")
	}
	k.require(t.Timeout >= 0, path+".timeout", "must not be negative; 0s is none")
	k.checkApproval(t.RequireApproval, path+".requireApproval")
}

func (k *checker) checkHTTP(h HTTP, path string) {
	k.needed(isHTTPURL(h.URL), path+".url", "must be an absolute http or https URL")
	k.checkHeaders(h.Headers, path+".headers")
}

func (k *checker) checkHeaders(headers map[string]Secret, path string) {
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		at := join(path, name)
		k.require(httpguts.ValidHeaderFieldName(name), at, "not an HTTP header's name")
		k.require(httpguts.ValidHeaderFieldValue(headers[name].Reveal()), at, "must not contain control characters")
	}
}

// checkApprovals looks at an agent's requireApproval. Which tools there are is
// known when its MCP servers have been asked.
func (k *checker) checkApprovals(approvals map[string]json.RawMessage, at string) {
	for _, tools := range slices.Sorted(maps.Keys(approvals)) {
		_, err := path.Match(tools, "")
		k.require(tools != "" && err == nil, join(at, tools), "must be a tool's name, or a pattern such as files_*")
		k.require(string(approvals[tools]) != "false", join(at, tools), "must be true or {when: <JSON Schema>}")
		k.checkApproval(approvals[tools], join(at, tools))
	}
}

func (k *checker) checkApproval(raw json.RawMessage, path string) {
	if required, when := Approval(raw); required && string(raw) != "true" {
		k.require(when != nil, path, "must be true, false or {when: <JSON Schema>}")
		k.checkSchema(when, path+".when")
	}
}
