package fact

import "encoding/json"

// What requests of other protocols bring along: options of a run, messages of conversations
// that were held elsewhere, and changes of a session that begin no run.

// Limits of a run's options.
const (
	MaxRunTools     = 128       // tools of a run
	MaxInstructions = 256 << 10 // bytes
)

// RunOptions are what a request asks of its run alone. They hold for the model calls of the
// root's agent, not for sub-agents.
type RunOptions struct {
	// Name is the client's own name of the run, unique in the session: a request with a
	// name that a run has already begins none.
	Name string `json:"name,omitempty" helix:"id"`
	// Instructions follow the agent's system prompt.
	Instructions string `json:"instructions,omitempty"`
	// Tools are the client's: a call of one suspends the run until a client submits the
	// result. A tool with the name of one of the agent's is left out.
	Tools []ClientTool `json:"tools,omitempty"`
	// Ephemeral: the session is erased when the run has ended or waits.
	Ephemeral bool `json:"ephemeral,omitempty"`
	// Client is an object that a protocol's adapter keeps with the run, such as the client's
	// own name of it. Nothing else reads it.
	Client json.RawMessage `json:"client,omitempty" helix:"object"`
}

// ClientTool is a tool that a client executes.
type ClientTool struct {
	Name        string          `json:"name" helix:"id"` // [a-zA-Z0-9_-]{1,64}
	Description string          `json:"description,omitempty"`
	InputSchema json.RawMessage `json:"inputSchema,omitempty" helix:"object"` // JSON Schema of an object; nil: any object
	Strict      bool            `json:"strict,omitempty"`
}

type (
	// MessageAdded is a message that a client brings along from a conversation that was held
	// elsewhere. Role says which fields count. A user's is a [UserMessage].
	MessageAdded struct {
		Role    AddedRole  `json:"role"`
		Content string     `json:"content,omitempty"` // system
		Parts   []TurnPart `json:"parts,omitempty"`   // assistant, at least one
		// Of a tool: the call, and exactly one of its result and its error.
		ToolCallID string          `json:"toolCallId,omitempty" helix:"id"`
		ToolName   string          `json:"toolName,omitempty" helix:"id"`
		Result     json.RawMessage `json:"result,omitempty"`
		Error      string          `json:"error,omitempty"`
		// MessageID is the id that the client gave it, if any.
		MessageID string `json:"messageId,omitempty" helix:"id"`
		Base
	}

	// MetadataReplaced gives the session other metadata.
	MetadataReplaced struct {
		Metadata map[string]string `json:"metadata,omitempty"`
		Base
	}

	// RunDeleted hides a run from clients that name it. Its records, and the messages that
	// came of it, stay.
	RunDeleted struct {
		RunID string `json:"runId" helix:"id"`
		Base
	}
)

// AddedRole is the author of a [MessageAdded].
type AddedRole string

// The roles.
const (
	AddedSystem    AddedRole = "system" // it follows the agent's system prompt
	AddedAssistant AddedRole = "assistant"
	AddedTool      AddedRole = "tool"
)

func (*MessageAdded) Type() string     { return "message_added" }
func (*MetadataReplaced) Type() string { return "metadata_replaced" }
func (*RunDeleted) Type() string       { return "run_deleted" }
