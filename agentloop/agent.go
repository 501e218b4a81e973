package agentloop

import (
	"encoding/json"
	"time"

	"github.com/helixd/helixd/agentloop/model"
)

// Agent defines an agent.
type Agent struct {
	Name         string // the agent type, [a-zA-Z0-9_-]{1,64}
	Description  string
	SystemPrompt string
	Model        model.Model
	Tools        []Tool
	// OutputSchema, if set, is the JSON Schema (of an object) of the output.
	// The model then gets the tool __finish__ and must call it, or a tool with
	// FinishWith, to end.
	OutputSchema json.RawMessage
	// StrictOutput asks the provider to give only outputs that fit OutputSchema,
	// of which it may then take fewer forms. The output is checked anyway.
	StrictOutput bool
	// InitialState is the custom state of a new session, an object; nil: {}.
	InitialState json.RawMessage
	// MaxSteps is how many steps a turn may have; 0: DefaultMaxSteps.
	MaxSteps int
	// MaxRetries is how often a failed model call is repeated; 0:
	// DefaultMaxRetries, negative: never.
	MaxRetries int

	// InputSchema is the JSON Schema (of an object) of what the agent takes
	// as a sub-agent; nil: {"message": string}. Its first user message is the
	// member message if there is no other member, otherwise the JSON.
	InputSchema json.RawMessage
	// SubAgents are agents of the same loop that the model may hand a task
	// to, as tools subagent__{name}. Each must have an OutputSchema.
	SubAgents []SubAgent
	// PersistentAgents are agents of the same loop that the model may start,
	// talk to and stop with companion tools.
	PersistentAgents []PersistentAgent
	// RemoteAgents are agents of other servers, as tools subagent__{name}.
	RemoteAgents []RemoteAgent
	// Recall, if set, reminds the agent at the beginning of each turn, once.
	Recall Recaller
	// Hooks, if set, are notified of what sessions of the agent do, and those of
	// its sub-agents.
	Hooks *Hooks
	// Workspace, if set, gives each session files, and maybe commands.
	Workspace *Workspace
	// Approvals are the calls that a person must approve, beside those that the
	// tools themselves name.
	Approvals []Approval
}

// Defaults of an agent.
const (
	DefaultMaxSteps   = 10
	DefaultMaxRetries = 3
	// DefaultRetryDelay is of RetryDelay in the options of package engine.
	DefaultRetryDelay = time.Second
)

// FinishTool is the tool by which a model gives structured output.
const FinishTool = "__finish__"
