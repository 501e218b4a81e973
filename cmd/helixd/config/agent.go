package config

import (
	"encoding/json"
	"time"

	"github.com/helixd/helixd/agentloop/remote"
	"github.com/helixd/helixd/agentloop/remote/remotehttp"
)

// Agent is one agent. Build one in code from [NewAgent], which has the
// defaults.
type Agent struct {
	Description  string `json:"description"`  // for models that may call it
	SystemPrompt string `json:"systemPrompt"` // what its model is told first
	Model        Model  `json:"model"`
	// MaxSteps bounds the model turns of a run; at least 1, default 10.
	MaxSteps int `json:"maxSteps"`
	// InitialState is the custom state of a new session, an object; nil: none.
	InitialState json.RawMessage `json:"initialState"`
	// OutputSchema makes the agent finish with an output that matches; nil: text.
	OutputSchema json.RawMessage `json:"outputSchema"`
	Tools        map[string]Tool `json:"tools"` // by name, [a-zA-Z0-9_-]{1,64}
	MCP          []MCPServer     `json:"mcp"`
	// Memory is what the agent remembers; nil: nothing.
	Memory *AgentMemory `json:"memory"`

	// InputSchema is what a caller sends the agent as its sub-agent; nil:
	// an object with a string `message`.
	InputSchema      json.RawMessage        `json:"inputSchema"`
	SubAgents        []SubAgent             `json:"subAgents"`
	PersistentAgents []PersistentAgent      `json:"persistentAgents"`
	RemoteAgents     map[string]RemoteAgent `json:"remoteAgents"`
	// RequireApproval has a person approve calls of the tools that NAME names:
	// true, or {"when": schema} for arguments that match the schema. NAME is a
	// tool as the model calls it, or a pattern such as files_*, subagent__* or *;
	// it may be a tool of an MCP server, a sub-agent (subagent__writer), a remote
	// agent, a companion tool (companion__spawnAgent) or any other.
	RequireApproval map[string]json.RawMessage `json:"requireApproval"`

	// Workspace gives each session files, and maybe commands; nil: none.
	Workspace *Workspace `json:"workspace"`
	// Workspaces is another name of workspace: one, by its name.
	Workspaces map[string]Workspace `json:"workspaces"`
}

// NewAgent returns an agent with the defaults. It still needs a model.
func NewAgent() Agent {
	var a Agent
	a.setDefaults()
	return a
}

func (a *Agent) setDefaults() {
	a.MaxSteps = DefaultMaxSteps
	a.Model.MaxRetries = DefaultMaxRetries
}

// Modes of a persistent agent.
const (
	ModeBlocking    = "blocking"
	ModeNonBlocking = "non-blocking"
)

// SubAgent is an agent of this file that another one's model may call. Its name
// alone stands for one without more.
type SubAgent struct {
	Agent       string        `json:"agent"`       // its name; in place of a mapping, the name alone
	Description string        `json:"description"` // for the model; empty: the agent's own
	Timeout     time.Duration `json:"timeout"`     // of a call, from its start; 0s, the default: none
}

func (SubAgent) shortKey() string { return "agent" }

// PersistentAgent is an agent that another one may spawn and talk to.
type PersistentAgent struct {
	Agent       string `json:"agent"`       // its name
	Mode        string `json:"mode"`        // blocking or non-blocking; default blocking
	Description string `json:"description"` // for the model; empty: the agent's own
}

func (p *PersistentAgent) setDefaults() { p.Mode = ModeBlocking }

// RemoteAgent is a sub-agent that another server runs.
type RemoteAgent struct {
	Description string            `json:"description"` // for the model
	URL         string            `json:"url"`         // of the server's routes, absolute, http or https
	Headers     map[string]Secret `json:"headers"`     // sent along, such as an Authorization
	AgentType   string            `json:"agentType"`   // on that server
	Timeout     time.Duration     `json:"timeout"`     // of a call; default 5m
	// InputSchema is what the agent is sent; nil: an object with a string
	// `message`.
	InputSchema  json.RawMessage `json:"inputSchema"`
	OutputSchema json.RawMessage `json:"outputSchema"` // nil: anything
	// HeaderFiles are headers whose values are the files' contents, read again
	// before each attempt: for tokens that expire. The paths are relative to the
	// working directory.
	HeaderFiles map[string]string `json:"headerFiles"`
	// MaxRetries is how often a request is repeated that the server could not be
	// reached for, or answered with 5xx; default 3.
	MaxRetries int `json:"maxRetries"`
	// RetryBaseDelay is the pause before the first repetition, which doubles each
	// time up to 30s; greater than 0, default 1s.
	RetryBaseDelay time.Duration `json:"retryBaseDelay"`
	// StreamRetries is how often in a row a broken stream is picked up again, at
	// most 50; default 3.
	StreamRetries int `json:"streamRetries"`
	// StreamRetryBase is the pause before the first time, which doubles each
	// time; greater than 0, default 100ms.
	StreamRetryBase time.Duration `json:"streamRetryBase"`
	// IdleTimeout is how long the server may send nothing, greater than 0; default
	// 1m. A helixd sends a heartbeat every 15s.
	IdleTimeout time.Duration `json:"idleTimeout"`
}

func (r *RemoteAgent) setDefaults() {
	r.Timeout = DefaultRemoteTimeout
	r.MaxRetries, r.RetryBaseDelay = remotehttp.DefaultMaxRetries, remotehttp.DefaultRetryBaseDelay
	r.StreamRetries, r.StreamRetryBase = remote.DefaultStreamRetries, remote.DefaultStreamRetryBase
	r.IdleTimeout = remotehttp.DefaultIdle
}
