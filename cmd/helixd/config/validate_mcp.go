package config

import (
	"maps"
	"slices"
	"strings"
)

// checkMCP looks at an agent's MCP servers.
func (k *checker) checkMCP(servers []MCPServer, path string) {
	names := map[string]bool{}
	for i, m := range servers {
		at := index(path, i)
		k.require(validName.MatchString(m.Name), at+".name", nameRule)
		for _, prefix := range []string{"__", "subagent__", "companion__"} {
			if strings.HasPrefix(m.Name+"_", prefix) {
				k.require(false, at+".name", "the names of its tools would be reserved")
				break
			}
		}
		k.require(!names[m.Name], at+".name", "another of the agent's servers has the name")
		names[m.Name] = true
		k.checkMCPServer(m, at)
	}
}

func (k *checker) checkMCPServer(m MCPServer, path string) {
	k.needed((len(m.Command) > 0) != (m.URL != ""), path, "needs either command or url")
	k.require(len(m.Command) == 0 || m.Command[0] != "", path+".command", "must not be empty")
	k.require(len(m.Env) == 0 || m.URL == "", path+".env", "is for a command only")
	k.require(len(m.Headers) == 0 || len(m.Command) == 0, path+".headers", "is for a url only")
	for _, name := range slices.Sorted(maps.Keys(m.Env)) {
		at := join(path, "env", name)
		k.require(variableName.MatchString(name), at, "not an environment variable's name")
		k.require(!strings.Contains(m.Env[name].Reveal(), "\x00"), at, "must not contain NUL")
	}
	if m.URL != "" {
		k.checkHTTP(HTTP{URL: m.URL, Headers: m.Headers}, path)
	}
	k.require(m.ConnectTimeout > 0, path+".connectTimeout", "must be greater than 0")
	k.require(m.StopTimeout > 0, path+".stopTimeout", "must be greater than 0")
	k.require(m.Timeout >= 0, path+".timeout", "must not be negative; 0s is none")
}
