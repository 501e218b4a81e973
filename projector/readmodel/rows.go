package readmodel

import (
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
)

// Session is a row about one session.
type Session struct {
	SessionID       string                  `json:"sessionId"`
	RootSessionID   string                  `json:"rootSessionId"`
	ParentSessionID string                  `json:"parentSessionId,omitempty"` // empty: a root
	ForkedFrom      string                  `json:"forkedFrom,omitempty"`      // the session of which it is a fork
	StreamID        string                  `json:"streamId"`
	AgentType       string                  `json:"agentType"`
	Status          projector.SessionStatus `json:"status"`
	StreamStatus    eventlog.StreamStatus   `json:"streamStatus"`
	// Running: the last run continues, as far as the log knows. Claim is the tree's
	// claim, with which a caller can check whether the node is alive.
	Running    bool              `json:"running"`
	Claim      *projector.Claim  `json:"claim,omitempty"`
	CurrentRun *projector.Run    `json:"currentRun,omitempty"`
	UserID     string            `json:"userId,omitempty"`
	Tags       []string          `json:"tags,omitempty"`
	Metadata   map[string]string `json:"metadata,omitempty"`
	CreatedAt  int64             `json:"createdAt"`           // ms since the epoch
	UpdatedAt  int64             `json:"updatedAt"`           // ms since the epoch
	ExpiresAt  int64             `json:"expiresAt,omitempty"` // ms since the epoch; 0: never
	Counts     Counts            `json:"counts"`
	// HeadSequence is the sequence up to which the rows include the tree.
	HeadSequence uint64 `json:"headSequence"`
}

// Counts of a session.
type Counts struct {
	Messages    int `json:"messages"`
	Steps       int `json:"steps"` // committed, of all runs
	Runs        int `json:"runs"`
	Checkpoints int `json:"checkpoints"`
	// Parked are the records of a root's tree that could not be used.
	Parked int `json:"parked,omitempty"`
}

// SessionSort is an order of sessions.
type SessionSort string

// Orders of sessions.
const (
	ByID      SessionSort = "id"
	ByUpdated SessionSort = "updated" // last changed first
)

// SessionSorts returns all orders.
func SessionSorts() []SessionSort { return []SessionSort{ByID, ByUpdated} }

// SessionFilter selects sessions; an empty field selects all.
type SessionFilter struct {
	UserID    string
	Tenant    string // of the tree's root
	AgentType string
	Status    projector.SessionStatus
	// StreamStatus is paused for sessions that wait for somebody; their Status is active.
	StreamStatus eventlog.StreamStatus
	Tag          string
	// Metadata are entries that a session's metadata must have, all of them.
	Metadata map[string]string
	// From and To bound when sessions were created, in ms since the epoch:
	// From <= createdAt < To; 0: no bound.
	From, To int64
	// ParentSessionID selects the sessions of sub-agents right below a session; empty:
	// root sessions.
	ParentSessionID string
	ForkedFrom      string      // selects the forks of a session
	Sort            SessionSort // empty: ByID
	Visible         Visible
	Paging
}

// Run is a row about one run.
type Run struct {
	SessionID     string `json:"sessionId"`
	RootSessionID string `json:"rootSessionId"`
	AgentType     string `json:"agentType"`
	UserID        string `json:"userId,omitempty"`
	projector.Run
	Used Used `json:"used"`
}

// RunFilter selects runs, of sub-agents too; an empty field selects all.
type RunFilter struct {
	SessionID string
	UserID    string
	Tenant    string // of the tree's root
	AgentType string
	Status    fact.RunStatus
	// From and To bound when runs began, in ms since the epoch: From <=
	// startedAt < To; 0: no bound.
	From, To int64
	Visible  Visible
	Paging
}

// Used sums usage.
type Used struct {
	ModelCalls      int             `json:"modelCalls"`
	Tokens          fact.TokenUsage `json:"tokens"`
	ToolCalls       int             `json:"toolCalls"`
	FailedToolCalls int             `json:"failedToolCalls"`
}

// Parked is a record that the fold could not use. The records after it are in the rows,
// unless Stuck.
type Parked struct {
	SessionID string `json:"sessionId"` // of the tree's root, or a memory scope's log
	Sequence  uint64 `json:"sequence"`
	Type      string `json:"type"`
	Reason    string `json:"reason"`
	// Stuck: the session's rows stay as they were before the record, since later records
	// can't be understood without it.
	Stuck bool `json:"stuck,omitempty"`
}

// ParkedFilter selects parked records.
type ParkedFilter struct {
	SessionID string // of a tree's root, or a memory scope's log; empty: all
	UserID    string // of the tree's root; empty: all, memory scopes too
	Tenant    string // the same
	Visible   Visible
	Paging
}
