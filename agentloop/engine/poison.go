package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/internal/decide"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
)

func poisoned(c *projector.Claim) bool {
	return c != nil && (c.Silent >= agentloop.MaxSilentClaims || c.Fruitless >= agentloop.MaxFruitlessClaims)
}

// turn is a suspected tree's.
type turn struct {
	innocent func()           // ends it, and lets a further tree have one
	leave    func()           // only ends it
	over     <-chan time.Time // when it has lived for a while
}

// endPoison has the open runs of a tree end as failed that kills whoever takes
// it up.
func (r *runner) endPoison(ctx context.Context) error {
	r.mu.RLock()
	claim := r.tree.Claim
	var facts []fact
	for _, s := range r.tree.Sessions() {
		if !poisoned(claim) || s.Turn == nil || decide.Aborting(s) || s.Child != nil && r.tree.Turn != nil { // the root's end is its children's
			continue
		}
		facts = append(facts, about(s.SessionID, []fact{{run: s.Turn.RunID, f: &eventlog.InterruptRequested{
			RunID: s.Turn.RunID, Kind: eventlog.StopAbort, Code: agentloop.CodePoisoned, ByParent: s.Child != nil,
			Reason:   fmt.Sprintf("%d processes in a row have died with it", claim.Silent+claim.Fruitless),
			FactBase: r.l.factBase(s.SessionID),
		}}})...)
	}
	r.mu.RUnlock()
	if len(facts) == 0 {
		return nil
	}
	entries, err := entriesOf(r.root, facts)
	if err != nil {
		return err
	}
	r.l.logger.Error("run is given up", eventlog.LogSession, r.root, eventlog.LogRun, r.run, "code", agentloop.CodePoisoned, "silent", claim.Silent, "fruitless", claim.Fruitless)
	return r.w.Append(ctx, entries...)
}

// settleClaim says of this node's claim that its end will not be the tree's doing.
func (r *runner) settleClaim(ctx context.Context, how eventlog.ClaimSettling) error {
	r.mu.RLock()
	claim := r.tree.Claim
	r.mu.RUnlock()
	if claim == nil || claim.Writer != r.id {
		return nil
	}
	entries, err := entriesOf(r.root, []fact{{run: claim.RunID, f: &eventlog.ClaimSettled{
		RunID: claim.RunID, Node: claim.Node, How: how, FactBase: r.l.factBase(r.root),
	}}})
	if err != nil {
		return err
	}
	return r.w.Append(ctx, entries...)
}

// letGoTimeout bounds how long a loop that stops tries to say that it let go of
// a tree.
const letGoTimeout = 2 * time.Second

// letGo says that this node lets go of the tree though it is not at rest.
func (r *runner) letGo() {
	ctx, cancel := context.WithTimeout(context.Background(), letGoTimeout)
	defer cancel()
	if err := r.settleClaim(ctx, eventlog.ClaimReleased); err != nil {
		r.l.logger.Debug("can't say that a run was let go", eventlog.LogSession, r.root, eventlog.LogRun, r.run, "error", err)
	}
}
