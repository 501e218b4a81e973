package api

import (
	"encoding/json"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
)

// StateAt is the answer of GET /sessions/{id}/state: the fold of the records
// with a sequence <= Sequence.
type StateAt struct {
	Sequence uint64          `json:"sequence"`
	State    *projector.Tree `json:"state"`
}

// MarshalJSON adds to the fold what follows from it: see [projector.State].
func (s StateAt) MarshalJSON() ([]byte, error) {
	return eventlog.Marshal(struct {
		Sequence uint64          `json:"sequence"`
		State    projector.State `json:"state"`
	}{s.Sequence, projector.StateOf(s.State)})
}

// Spent is what a session's tree has used and how long it took.
type Spent struct {
	Usage fact.TokenUsage `json:"usage"`
	// Cost is what the tokens cost by the prices of now, in USD; nil: not all
	// prices are known.
	Cost *float64 `json:"cost,omitempty"`
	// Unpriced are the models that were used and have no price.
	Unpriced   []string `json:"unpriced,omitempty"`
	DurationMs int64    `json:"durationMs"`
}

// DiffSpent is what was used and how long it took between two sequences: by the
// whole tree, what a rollback has truncated included. It is negative on the way
// back.
type DiffSpent struct {
	From uint64 `json:"from"`
	To   uint64 `json:"to"`
	Spent
}

// StateDiff is the answer of GET /sessions/{id}/diff.
type StateDiff struct {
	DiffSpent
	// Patch turns the state at From into the state at To, as GET
	// /sessions/{id}/state shows them (RFC 6902). It is about the whole state:
	// messages, runs and sub-agents are in it too.
	Patch []eventlog.PatchOp `json:"patch"`
	// Messages are those of the session itself that are in the state at To and
	// came after From; none if To is before From.
	Messages []projector.Message `json:"messages"`
	// ToolCalls are those of the tree that have come further, or back.
	ToolCalls []CallChange `json:"toolCalls"`
}

// Comparison is the answer of GET /compare: two sessions, or one, each at a
// sequence.
type Comparison struct {
	A Compared `json:"a"`
	B Compared `json:"b"`
	// Common is how many messages at the beginning have the same content in both states,
	// regardless of their times and ids.
	Common int `json:"common"`
	// Patch turns the custom state of A into that of B (RFC 6902).
	Patch []eventlog.PatchOp `json:"patch"`
	// ForkedFrom names the one of the two that the other was forked from, and
	// where; nil: neither was.
	ForkedFrom *projector.Fork `json:"forkedFrom,omitempty"`
}

// Compared is one side of a comparison: the fold of the session's records with
// a sequence <= Sequence.
type Compared struct {
	SessionID string                  `json:"sessionId"`
	Sequence  uint64                  `json:"sequence"`
	Status    projector.SessionStatus `json:"status"` // empty: before everything
	AgentType string                  `json:"agentType"`
	Messages  []projector.Message     `json:"messages"` // of the session itself
	ToolCalls []CallAt                `json:"toolCalls"`
	// Spent is what the tree has used so far. A fork begins at nothing.
	Spent
	// Steps are those of the session itself, as far as its own log holds them.
	Steps []projector.StepTime `json:"steps"`
}

// CallStatus is how far a tool call has come; empty: there is none yet, or no
// more.
type CallStatus string

// How far tool calls come. A call that waits and has its answer is pending
// until a run continues with it. One whose turn has ended without it has failed.
const (
	CallPending CallStatus = "pending" // the model has asked for it
	CallRunning CallStatus = "running"
	CallWaiting CallStatus = "waiting" // for a client, an approval or a sub-agent that waits
	CallDone    CallStatus = "done"
	CallFailed  CallStatus = "failed"
)

// CallAt is a tool call of a session's tree as it was at a sequence.
type CallAt struct {
	SessionID  string          `json:"sessionId"` // whose model asked for it
	ToolCallID string          `json:"toolCallId"`
	ToolName   string          `json:"toolName"`
	Arguments  json.RawMessage `json:"arguments"`
	Status     CallStatus      `json:"status"`
	Result     json.RawMessage `json:"result,omitempty"`
	Error      string          `json:"error,omitempty"`
}

// CallChange is a tool call that has come further between two sequences.
type CallChange struct {
	SessionID  string     `json:"sessionId"`
	ToolCallID string     `json:"toolCallId"`
	ToolName   string     `json:"toolName"`
	Before     CallStatus `json:"before"`
	After      CallStatus `json:"after"`
	// Result is there if it is done at the second one, Error if it has failed
	// with one.
	Result json.RawMessage `json:"result,omitempty"`
	Error  string          `json:"error,omitempty"`
}
