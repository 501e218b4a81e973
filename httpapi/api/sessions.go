package api

import (
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
	"github.com/helixd/helixd/projector/readmodel"
)

// Page is a part of a listing.
type Page[T any] = readmodel.Page[T]

// Listing is a page of what is asked about many sessions, and how near it is
// to the log's end.
type Listing[T any] struct {
	Page[T]
	readmodel.Fresh
}

// Summary describes a session.
type Summary struct {
	SessionID string `json:"sessionId"`
	StreamID  string `json:"streamId"`
	AgentType string `json:"agentType"`
	// ParentSessionID is that of the session that called this one; empty: a
	// root.
	ParentSessionID string                  `json:"parentSessionId,omitempty"`
	ForkedFrom      string                  `json:"forkedFrom,omitempty"` // the session of which it is a fork
	Status          projector.SessionStatus `json:"status"`
	StreamStatus    eventlog.StreamStatus   `json:"streamStatus"`
	IsExecuting     bool                    `json:"isExecuting"` // by this node
	CurrentRun      *projector.Run          `json:"currentRun,omitempty"`
	UserID          string                  `json:"userId,omitempty"`
	Tags            []string                `json:"tags,omitempty"`
	Metadata        map[string]string       `json:"metadata,omitempty"`
	CreatedAt       int64                   `json:"createdAt"` // ms since the epoch
	UpdatedAt       int64                   `json:"updatedAt"` // ms since the epoch
	Counts          Counts                  `json:"counts"`
	HeadSequence    uint64                  `json:"headSequence"` // of the session's tree
	Durability      eventlog.Durability     `json:"durability"`
}

// Counts of a session.
type Counts = readmodel.Counts

// SessionSummary is the answer of GET /sessions/{id}.
type SessionSummary struct {
	Summary
	// PendingToolCalls are the calls of the session's tree that wait for a
	// person.
	PendingToolCalls []PendingToolCall `json:"pendingToolCalls"`
}

// PendingToolCall is a call that waits for a person (see docs/reference/protocol.md#suspension): what POST
// /submit-tool-result answers, under the root's session id.
type PendingToolCall = projector.PendingCall

// UsagePage is the answer of GET /sessions/{id}/usage: a page of
// what the session's tree has used, oldest first, each entry under the session
// and the run that used it; and the sums of all of it.
//
// Usage of records that a rollback has truncated counts all the same. A fork begins at zero.
type UsagePage struct {
	Page[projector.UsageEntry]
	// Rollup sums the whole tree up to the head: in all, by model, tool and
	// source, for each run, and for each sub-agent alone.
	Rollup projector.Rollup `json:"rollup"`
	// Floor is set if retention has removed the records up to it: there are no
	// entries then. The sums stay.
	Floor uint64 `json:"floor,omitempty"`
	// Budget is the day's budget of the session's tenant, if it has one. Callers that act
	// for one user don't see it: it is of all users together. Only the first page has it, and
	// only if what the tenant has spent can be read.
	Budget *Budget `json:"budget,omitempty"`
}

// Budget is how much the model calls of a tenant's sessions may use on this day of UTC, and
// how much they have used, with what is reserved for the calls that are under way.
type Budget struct {
	TokensPerDay int64   `json:"tokensPerDay,omitempty"` // 0: any number
	USDPerDay    float64 `json:"usdPerDay,omitempty"`    // 0: any amount
	Tokens       int64   `json:"tokens"`
	USD          float64 `json:"usd"`
}

// UsageReport is the answer of GET /usage: sums of what all sessions have
// used, and how near they are to the log's end.
type UsageReport struct {
	readmodel.UsageReport
	readmodel.Fresh
}
