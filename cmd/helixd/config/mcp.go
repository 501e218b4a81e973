package config

import (
	"time"

	"github.com/helixd/helixd/agentloop/mcptool"
)

// defaultMCPTimeout is that of a call of an MCP server's tool.
const defaultMCPTimeout = time.Minute

// MCPServer is a server of the Model Context Protocol whose tools an agent
// gets: a command to run or a URL.
type MCPServer struct {
	// Name is unique among the agent's servers, [a-zA-Z0-9_-]{1,64}; the
	// tools are named {name}_{tool}.
	Name string `json:"name"`
	// Command is the program and its arguments. Do not put secrets here: every user of
	// the machine can read them.
	Command []string `json:"command"`
	// Env are the command's variables, in addition to PATH, HOME and LANG.
	Env     map[string]Secret `json:"env"`
	URL     string            `json:"url"`     // the URL of a server over HTTP, absolute, http or https
	Headers map[string]Secret `json:"headers"` // headers of each request to url
	// Timeout is how long a call may take; 0s: no limit. Default 1m.
	Timeout time.Duration `json:"timeout"`
	// ConnectTimeout is how long the server may take to start and to list its tools,
	// greater than 0; default 30s.
	ConnectTimeout time.Duration `json:"connectTimeout"`
	// StopTimeout is how long helixd waits for a command to end before SIGTERM, and
	// again before SIGKILL, greater than 0; default 5s.
	StopTimeout time.Duration `json:"stopTimeout"`
}

func (m *MCPServer) setDefaults() {
	m.Timeout, m.ConnectTimeout, m.StopTimeout = defaultMCPTimeout, mcptool.DefaultConnectTimeout, mcptool.DefaultStopTimeout
}

// At returns what is wrong with a key as Load would, with the file and line.
// The error's text must hold no secret.
func (c *Config) At(path string, err error) error {
	return problem{at: c.originOf(path), path: path, text: err.Error()}
}
