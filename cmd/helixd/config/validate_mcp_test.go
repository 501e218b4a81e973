package config

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// mcp is an agent whose MCP servers begin on line 5.
func mcp(servers string) string { return agent("    mcp:\n" + servers) }

func TestMCP(t *testing.T) {
	c, err := loadText(t, mcp(`      - {name: files, command: [mcp-files, "env:DIR"], env: {TOKEN: env:TOKEN, PLAIN: x}}
      - name: web
        url: http://127.0.0.1:9001/mcp
        headers: {Authorization: env:TOKEN}
        timeout: 5m
        connectTimeout: 2m
`), env{"DIR": "/data", "TOKEN": "hunter2"})
	require.NoError(t, err)
	assert.Equal(t, []MCPServer{
		{
			Name: "files", Command: []string{"mcp-files", "/data"}, Timeout: time.Minute, ConnectTimeout: 30 * time.Second, StopTimeout: 5 * time.Second,
			Env: map[string]Secret{"TOKEN": NewSecret("hunter2"), "PLAIN": NewSecret("x")},
		},
		{
			Name: "web", URL: "http://127.0.0.1:9001/mcp", Timeout: 5 * time.Minute, ConnectTimeout: 2 * time.Minute, StopTimeout: 5 * time.Second,
			Headers: map[string]Secret{"Authorization": NewSecret("hunter2")},
		},
	}, c.Agents["a"].MCP)
	assert.NotContains(t, c.String(), "hunter2")
	assert.NotContains(t, fmt.Sprintf("%+v", c.Agents["a"].MCP), "hunter2")
	assert.EqualError(t, c.At("agents.a.mcp[1]", fmt.Errorf("it is away")), "helix.yaml:6: agents.a.mcp[1]: it is away")
}

func TestBadMCP(t *testing.T) {
	for name, tt := range map[string]struct{ servers, want string }{
		"no name":       {"      - {command: [x]}\n", "helix.yaml:5: agents.a.mcp[0].name: the name must match [a-zA-Z0-9_-]{1,64}"},
		"bad name":      {"      - {name: a b, command: [x]}\n", "helix.yaml:5: agents.a.mcp[0].name: the name must match [a-zA-Z0-9_-]{1,64}"},
		"internal name": {"      - {name: __a, command: [x]}\n", "helix.yaml:5: agents.a.mcp[0].name: the names of its tools would be reserved"},
		"reserved name": {"      - {name: subagent_, command: [x]}\n", "helix.yaml:5: agents.a.mcp[0].name: the names of its tools would be reserved"},
		"same name":     {"      - {name: a, command: [x]}\n      - {name: a, url: 'http://h'}\n", "helix.yaml:6: agents.a.mcp[1].name: another of the agent's servers has the name"},
		"neither":       {"      - {name: a}\n", "helix.yaml:5: agents.a.mcp[0]: needs either command or url"},
		"both":          {"      - {name: a, command: [x], url: 'http://h'}\n", "helix.yaml:5: agents.a.mcp[0]: needs either command or url"},
		"misspelt":      {"      - {name: a, comand: [x]}\n", "helix.yaml:5: agents.a.mcp[0].comand: " + unknown[MCPServer]()},
		"no program":    {"      - {name: a, command: ['']}\n", "helix.yaml:5: agents.a.mcp[0].command: must not be empty"},
		"url":           {"      - {name: a, url: /mcp}\n", "helix.yaml:5: agents.a.mcp[0].url: must be an absolute http or https URL"},
		"env of a url":  {"      - {name: a, url: 'http://h', env: {A: x}}\n", "helix.yaml:5: agents.a.mcp[0].env: is for a command only"},
		"env name":      {"      - {name: a, command: [x], env: {A-B: x}}\n", "helix.yaml:5: agents.a.mcp[0].env.A-B: not an environment variable's name"},
		"env value":     {"      - {name: a, command: [x], env: {A: \"x\\0\"}}\n", "helix.yaml:5: agents.a.mcp[0].env.A: must not contain NUL"},
		"no variable":   {"      - {name: a, command: [x], env: {A: env:NOPE}}\n", "helix.yaml:5: agents.a.mcp[0].env.A: environment variable NOPE is not set"},
		"headers":       {"      - {name: a, command: [x], headers: {A: x}}\n", "helix.yaml:5: agents.a.mcp[0].headers: is for a url only"},
		"header name":   {"      - {name: a, url: 'http://h', headers: {'a b': x}}\n", "helix.yaml:5: agents.a.mcp[0].headers.a b: not an HTTP header's name"},
		"header value":  {"      - {name: a, url: 'http://h', headers: {A: \"x\\ny\"}}\n", "helix.yaml:5: agents.a.mcp[0].headers.A: must not contain control characters"},
		"connect":       {"      - {name: a, command: [x], connectTimeout: 0s, stopTimeout: 0s}\n", "helix.yaml:5: agents.a.mcp[0].connectTimeout: must be greater than 0\nhelix.yaml:5: agents.a.mcp[0].stopTimeout: must be greater than 0"},
		"timeout":       {"      - {name: a, command: [x], timeout: -1s}\n", "helix.yaml:5: agents.a.mcp[0].timeout: must not be negative; 0s is none"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := loadText(t, mcp(tt.servers), nil)
			assert.EqualError(t, err, tt.want)
		})
	}
}
