package engine

import (
	"context"
	"iter"

	"github.com/helixd/helixd/projector"
)

// Usage returns what a session and its sub-agents have used so far, all runs
// together, also what a rollback has taken back. A fork begins at zero.
//
// Errors: eventlog.ErrSessionNotFound and what the log returns.
func (l *Loop) Usage(ctx context.Context, session string) (projector.Rollup, error) {
	t, err := l.states.Head(ctx, session)
	if err != nil {
		return projector.Rollup{}, err
	}
	return t.RollUp(session), nil
}

// UsageEntries yields what has been used in a session's tree, one by one, in
// the order of the log; an error is last. Errors: as eventlog.Log's Read.
func (l *Loop) UsageEntries(ctx context.Context, session string) iter.Seq2[projector.UsageEntry, error] {
	return projector.UsageEntries(l.log.Read(ctx, session, 0, 0))
}

// UsageRollup returns what the session has used; see [Loop.Usage].
func (h *Handle) UsageRollup(ctx context.Context) (projector.Rollup, error) {
	return h.l.Usage(ctx, h.SessionID)
}
