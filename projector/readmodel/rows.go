package readmodel

import (
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
)

// Session is a row about one session.
type Session struct {
	SessionID       string                  `json:"sessionId"`
	RootSessionID   string                  `json:"rootSessionId"`
	ParentSessionID string                  `json:"parentSessionId,omitempty"` // empty: a root
	StreamID        string                  `json:"streamId"`
	AgentType       string                  `json:"agentType"`
	Status          projector.SessionStatus `json:"status"`
	StreamStatus    eventlog.StreamStatus   `json:"streamStatus"`
	// Running: the last run continues, as far as the log knows; Claim is of the
	// tree, so that a caller can ask whether the node lives.
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
	// HeadSequence is up to where the tree is in the rows.
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
	ByUpdated SessionSort = "updated" // the last that changed first
)

// SessionSorts returns all orders.
func SessionSorts() []SessionSort { return []SessionSort{ByID, ByUpdated} }

// SessionFilter chooses sessions; what is empty does not matter.
type SessionFilter struct {
	UserID    string
	Tenant    string // of the tree's root
	AgentType string
	Status    projector.SessionStatus
	Tag       string
	// Metadata are entries that a session's metadata must all have.
	Metadata map[string]string
	// From and To bound when sessions were created, in ms since the epoch:
	// From <= createdAt < To; 0: no bound.
	From, To int64
	// ParentSessionID chooses the sub-agents' sessions right below a session;
	// empty: root sessions.
	ParentSessionID string
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

// RunFilter chooses runs, of sub-agents too; what is empty does not matter.
type RunFilter struct {
	SessionID string
	UserID    string
	Tenant    string // of the tree's root
	AgentType string
	Status    eventlog.RunStatus
	// From and To bound when runs began, in ms since the epoch: From <=
	// startedAt < To; 0: no bound.
	From, To int64
	Visible  Visible
	Paging
}

// Used sums what was used.
type Used struct {
	ModelCalls      int                 `json:"modelCalls"`
	Tokens          eventlog.TokenUsage `json:"tokens"`
	ToolCalls       int                 `json:"toolCalls"`
	FailedToolCalls int                 `json:"failedToolCalls"`
}

// Parked is a record that could not be used. What could, is in the rows.
type Parked struct {
	SessionID string `json:"sessionId"` // of the tree's root, or a memory scope's log
	Sequence  uint64 `json:"sequence"`
	Type      string `json:"type"`
	Reason    string `json:"reason"`
	// Stuck: the session's rows stay as they were before the record, since
	// what follows can't be understood without it.
	Stuck bool `json:"stuck,omitempty"`
}

// ParkedFilter chooses parked records.
type ParkedFilter struct {
	SessionID string // of a tree's root, or a memory scope's log; empty: all
	UserID    string // of the tree's root; empty: all, memory scopes too
	Tenant    string // the same
	Visible   Visible
	Paging
}
