package api

import (
	"github.com/helixd/helixd/agentloop/remote"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
)

// Started names a run and its stream. It is the answer of POST /start, /resume and /sessions/{id}/messages.
type Started = remote.Started

// Status is the answer of GET /status.
type Status = remote.Status

// Submitted is the answer of POST /submit-tool-result: what has become of a submission.
type Submitted struct {
	Status             string   `json:"status"`           // accepted or already_completed
	Reason             string   `json:"reason,omitempty"` // client_tool_timeout
	SessionID          string   `json:"sessionId"`
	ToolCallID         string   `json:"toolCallId"`
	PendingToolCallIDs []string `json:"pendingToolCallIds"` // that are still open in the tree
}

// Appended is the answer of the routes that append: the sequences of the
// first and the last record, without gaps between them.
type Appended struct {
	FirstSequence uint64 `json:"firstSequence"`
	LastSequence  uint64 `json:"lastSequence"`
	Count         int    `json:"count"`
}

// Imported is the answer of POST /sessions/{id}/import.
type Imported struct {
	eventlog.Imported
	Durability eventlog.Durability `json:"durability"`
}

// RolledBack is the answer of POST /sessions/{id}/rollback.
type RolledBack struct {
	SessionID string `json:"sessionId"`
	// RolledBack is false if there was nothing to take back.
	RolledBack bool `json:"rolledBack"`
	// AfterSequence is the record that the session went back to, AtSequence
	// the last one that was truncated.
	AfterSequence uint64 `json:"afterSequence,omitempty"`
	AtSequence    uint64 `json:"atSequence,omitempty"`
}

// Forked is the answer of POST /sessions/{id}/fork.
type Forked struct {
	SessionID     string `json:"sessionId"`
	FromSessionID string `json:"fromSessionId"`
	FromSequence  uint64 `json:"fromSequence"`
	// Edits names what was edited; nil: nothing.
	Edits *fact.ForkEdits `json:"edits,omitempty"`
	// RunID is the run that was asked for.
	RunID string `json:"runId,omitempty"`
}

// Erased is the answer of DELETE /sessions/{id}. Pending, with status 202,
// means that bytes may be left: the session is not found any more, and the nodes
// continue by themselves. The same request answers how far they are.
//
// Forks are up to 200 forks of the session, which keep what they copied: those that the
// read models have and the caller may erase as well. It is empty without read models.
type Erased struct {
	SessionID string   `json:"sessionId"`
	Pending   bool     `json:"pending"`
	WaitsFor  string   `json:"waitsFor,omitempty"` // while it is pending, and goes by itself
	Left      string   `json:"left,omitempty"`     // what stays while it is pending, and what an operator must do
	Forks     []string `json:"forks"`
}
