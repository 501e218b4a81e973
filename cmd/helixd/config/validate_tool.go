package config

import (
	"encoding/json"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// headerName is HTTP's token (RFC 9110, 5.6.2).
var headerName = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")

// reservedTools are prefixes of the tools that helixd itself gives agents.
var reservedTools = []string{"__finish__", "subagent__", "companion__"}

func (k *checker) checkTool(name string, t Tool, path string) {
	k.require(validName.MatchString(name), path, nameRule)
	for _, prefix := range reservedTools {
		k.require(!strings.HasPrefix(name, prefix), path, "the name is reserved")
	}
	k.checkObjectSchema(t.InputSchema, path+".inputSchema")
	k.checkSchema(t.OutputSchema, path+".outputSchema")
	k.require(t.OutputSchema == nil || t.Client, path+".outputSchema", "is for client tools: it is what a client's result must fit")
	k.needed(t.HTTP != nil || t.Client, path, "needs either http or client")
	k.require(t.HTTP == nil || !t.Client, path, "can't have both http and client")
	if t.HTTP != nil {
		k.checkHTTP(*t.HTTP, path+".http")
	}
	k.require(t.Timeout >= 0, path+".timeout", "must not be negative; 0s is none")

	approval := k.checkApproval(t.RequireApproval, path+".requireApproval")
	k.require(!t.FinishWith || !t.Client, path+".finishWith", "can't be combined with client")
	k.require(!approval || !t.Client, path+".requireApproval", "can't be combined with client")
	k.require(!approval || !t.FinishWith, path+".requireApproval", "can't be combined with finishWith")
}

func (k *checker) checkHTTP(h HTTP, path string) {
	k.needed(isHTTPURL(h.URL), path+".url", "must be an absolute http or https URL")
	k.checkHeaders(h.Headers, path+".headers")
}

func (k *checker) checkHeaders(headers map[string]Secret, path string) {
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		at := join(path, name)
		k.require(headerName.MatchString(name), at, "not an HTTP header's name")
		k.require(!strings.ContainsFunc(headers[name].Reveal(), isControl), at, "must not contain control characters")
	}
}

func isControl(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }

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

// checkApproval reports whether approval may be required.
func (k *checker) checkApproval(raw json.RawMessage, path string) bool {
	switch string(raw) {
	case "", "false":
		return false
	case "true":
		return true
	}
	when := approvalWhen(raw)
	k.require(when != nil, path, "must be true, false or {when: <JSON Schema>}")
	k.checkSchema(when, path+".when")
	return true
}
