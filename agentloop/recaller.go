package agentloop

import (
	"context"
	"time"

	"github.com/helixd/helixd/eventlog/fact"
)

// Limits of what an agent is reminded of in one turn.
const (
	// RecallTimeout is how long a recaller may take.
	RecallTimeout = 5 * time.Second
	// MaxRecalled is how many memories are taken of what a recaller returns.
	MaxRecalled = 50
	// MaxRecalledText is how much text they have together, in bytes: what
	// doesn't fit is left out.
	MaxRecalledText = 64 << 10
	// MaxRecallQuery bounds the part of the user's message with which memories are looked
	// up, in bytes.
	MaxRecallQuery = 8 << 10
)

// Recaller reminds an agent of what may matter in a turn that begins. Its method
// may be called at the same time for several sessions.
type Recaller interface {
	// Recall returns the memories that fit, best first. An error is recorded,
	// and the turn continues without. ctx ends after RecallTimeout, and when the
	// loop is stopped, which waits until Recall has returned.
	Recall(ctx context.Context, req RecallRequest) ([]fact.RecalledMemory, error)
}

// RecallRequest is a turn that begins.
type RecallRequest struct {
	SessionInfo
	// Query is the user's message of the turn, or a sub-agent's task; at most
	// MaxRecallQuery bytes, maybe none.
	Query string
	// Known are the ids of memories that the conversation has already.
	Known []string
}

// SessionInfo names the session of a turn or a call, its agent, and the user and the
// tenant of its tree.
type SessionInfo struct {
	RootSessionID string
	SessionID     string
	AgentType     string
	UserID        string // of the root; empty: not known
	Tenant        string // of the root; empty: it belongs to none
}
