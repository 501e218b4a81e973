package config

import (
	"encoding/json"
	"time"

	"github.com/helixd/helixd/agentloop/remote"
	"github.com/helixd/helixd/agentloop/remote/remotehttp"
)

// Agent is one agent.
type Agent struct {
	Description  string `json:"description"`  // its description for models that may call it
	SystemPrompt string `json:"systemPrompt"` // the instructions for its model
	Model        Model  `json:"model"`
	// MaxSteps bounds the model turns of a run; at least 1, default 10.
	MaxSteps int `json:"maxSteps"`
	// InitialState is the custom state of a new session, an object; nil: none.
	InitialState json.RawMessage `json:"initialState"`
	// OutputSchema is the JSON Schema that the agent's output must match; nil: the
	// output is text.
	OutputSchema json.RawMessage `json:"outputSchema"`
	Tools        map[string]Tool `json:"tools"` // by name, [a-zA-Z0-9_-]{1,64}
	MCP          []MCPServer     `json:"mcp"`
	// Memory is what the agent remembers; nil: nothing.
	Memory *AgentMemory `json:"memory"`

	// InputSchema is the JSON Schema of the input if the agent is called as a
	// sub-agent; nil: an object with a string `message`.
	InputSchema      json.RawMessage        `json:"inputSchema"`
	SubAgents        []SubAgent             `json:"subAgents"`
	PersistentAgents []PersistentAgent      `json:"persistentAgents"`
	RemoteAgents     map[string]RemoteAgent `json:"remoteAgents"`
	// RequireApproval is true if calls of the tools that NAME names need approval, or
	// {"when": schema} for calls whose arguments match the schema. NAME is a tool's
	// name as the model uses it, or a pattern such as files_*, subagent__* or *. It
	// covers all tools: also those of MCP servers, sub-agents (subagent__writer),
	// remote agents, and companion tools (companion__spawnAgent).
	RequireApproval map[string]json.RawMessage `json:"requireApproval"`

	// Workspace gives each session files, and maybe commands; nil: none.
	Workspace *Workspace `json:"workspace"`
	// Workspaces is another name of workspace: one, by its name.
	Workspaces map[string]Workspace `json:"workspaces"`
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

// SubAgent is an agent of this file that another one's model may call. In YAML, its name
// alone is enough if it has no other settings.
type SubAgent struct {
	Agent       string        `json:"agent"`       // its name; in place of a mapping, the name alone
	Description string        `json:"description"` // its description for the model; empty: the agent's own
	Timeout     time.Duration `json:"timeout"`     // how long a call may take; 0s, the default: no limit
}

func (SubAgent) shortKey() string { return "agent" }

// PersistentAgent is an agent that another one may spawn and talk to.
type PersistentAgent struct {
	Agent       string `json:"agent"`       // its name
	Mode        string `json:"mode"`        // blocking or non-blocking; default blocking
	Description string `json:"description"` // its description for the model; empty: the agent's own
}

func (p *PersistentAgent) setDefaults() { p.Mode = ModeBlocking }

// RemoteAgent is a sub-agent that another server runs.
type RemoteAgent struct {
	Description string            `json:"description"` // its description for the model
	URL         string            `json:"url"`         // the URL of the server's routes, absolute, http or https
	Headers     map[string]Secret `json:"headers"`     // headers of each request, such as Authorization
	AgentType   string            `json:"agentType"`   // the agent's name on that server
	Timeout     time.Duration     `json:"timeout"`     // how long a call may take; default 5m
	// InputSchema is the JSON Schema of the input; nil: an object with a string
	// `message`.
	InputSchema  json.RawMessage `json:"inputSchema"`
	OutputSchema json.RawMessage `json:"outputSchema"` // the JSON Schema of the output; nil: anything
	// HeaderFiles are headers whose values are the files' contents, read again
	// before each attempt: for tokens that expire. The paths are relative to the
	// working directory.
	HeaderFiles map[string]string `json:"headerFiles"`
	// MaxRetries is how often a request is repeated if the server is unreachable or
	// answers 5xx; default 3.
	MaxRetries int `json:"maxRetries"`
	// RetryBaseDelay is the pause before the first repetition, which doubles each
	// time up to 30s; greater than 0, default 1s.
	RetryBaseDelay time.Duration `json:"retryBaseDelay"`
	// StreamRetries is how often in a row a broken stream is resumed, at most 50;
	// default 3.
	StreamRetries int `json:"streamRetries"`
	// StreamRetryBase is the pause before the first attempt, which doubles each time;
	// greater than 0, default 100ms.
	StreamRetryBase time.Duration `json:"streamRetryBase"`
	// IdleTimeout is how long the server may be silent, greater than 0; default 1m.
	// helixd sends a heartbeat every 15s.
	IdleTimeout time.Duration `json:"idleTimeout"`
}

func (r *RemoteAgent) setDefaults() {
	r.Timeout = defaultRemoteTimeout
	r.MaxRetries, r.RetryBaseDelay = remotehttp.DefaultMaxRetries, remotehttp.DefaultRetryBaseDelay
	r.StreamRetries, r.StreamRetryBase = remote.DefaultStreamRetries, remote.DefaultStreamRetryBase
	r.IdleTimeout = remotehttp.DefaultIdle
}
