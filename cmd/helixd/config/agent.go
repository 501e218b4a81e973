package config

import (
	"encoding/json"
	"time"
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
	SubAgents        []string               `json:"subAgents"` // agents of this file that its model may call
	PersistentAgents []PersistentAgent      `json:"persistentAgents"`
	RemoteAgents     map[string]RemoteAgent `json:"remoteAgents"`

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

// PersistentAgent is an agent that another one may spawn and talk to.
type PersistentAgent struct {
	Agent string `json:"agent"` // its name
	Mode  string `json:"mode"`  // default blocking
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
}

func (r *RemoteAgent) setDefaults() { r.Timeout = DefaultRemoteTimeout }
