package agentloop

import (
	"context"

	"github.com/helixd/helixd/eventlog"
)

// Recaller reminds an agent of what may matter in a turn that begins.
type Recaller interface {
	// Recall returns the memories that fit, best first. An error is recorded,
	// and the turn goes on without.
	Recall(ctx context.Context, req RecallRequest) ([]eventlog.RecalledMemory, error)
}

// RecallRequest is a turn that begins.
type RecallRequest struct {
	Whose
	Query string // what the user has said in the turn
	// Known are the ids of memories that the conversation has already.
	Known []string
}

// Whose tells whose a turn or a call is, for what belongs to one user, one agent
// or one session tree.
type Whose struct {
	RootSessionID string
	SessionID     string
	AgentType     string
	UserID        string // of the root; empty: nobody has said
}
