package fact

// SubSession is how a sub-agent's session belongs to its parent.
type SubSession struct {
	ParentSessionID string         `json:"parentSessionId" helix:"id"`
	CallID          string         `json:"callId" helix:"id"` // the parent's call that made it
	Mode            SubSessionMode `json:"mode"`
	Name            string         `json:"name,omitempty"`     // of a persistent one
	Blocking        bool           `json:"blocking,omitempty"` // of a persistent one
	Remote          bool           `json:"remote,omitempty"`   // runs on another server
	// Deadline is when an ephemeral one is stopped, in milliseconds since the
	// epoch; 0: never.
	Deadline int64 `json:"deadline,omitempty"`
}

// SubSessionMode says how long a sub-agent lives.
type SubSessionMode string

// Sub-session modes.
const (
	SubSessionEphemeral  SubSessionMode = "ephemeral"
	SubSessionPersistent SubSessionMode = "persistent"
)

// RemoteProgress says how far a remote sub-agent's stream has been copied. It is appended with the chunks that it covers.
type RemoteProgress struct {
	ToolCallID string `json:"toolCallId" helix:"id"`
	RunID      string `json:"runId,omitempty"` // of the remote session
	Sequence   uint64 `json:"sequence"`        // in the remote session's stream
	// Calls are the tool calls that have begun or ended since.
	Calls []RemoteCall `json:"calls,omitempty"`
	Base
}

func (*RemoteProgress) Type() string { return "remote_progress" }

// RemoteCall is a tool call of a remote sub-agent. Its server calls it by an id
// that another call of the tree may have.
type RemoteCall struct {
	ID       string `json:"id" helix:"id"`       // in this log
	RemoteID string `json:"remoteId" helix:"id"` // on the server
	AgentID  string `json:"agentId,omitempty"`   // of the session that made the call; empty: the remote sub-agent's
	Over     bool   `json:"over,omitempty"`      // it has ended
}
