package drive

import (
	"context"
	"fmt"
	"time"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine/internal/record"
	"github.com/helixd/helixd/agentloop/internal/decide"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
)

func poisoned(c *projector.Claim) bool {
	return c != nil && (c.Silent >= agentloop.MaxSilentClaims || c.Fruitless >= agentloop.MaxFruitlessClaims)
}

// Probation is the trial of a suspected tree.
type Probation struct {
	Clear func()           // ends it: the tree is not the cause, and one more may be on probation
	Leave func()           // only ends it
	Over  <-chan time.Time // when it has lived for a while
}

// endPoison fails the open runs of a session tree that repeatedly ends the process which drives
// it.
func (r *Tree) endPoison(ctx context.Context) error {
	r.mu.RLock()
	claim := r.tree.Claim
	var facts []record.Draft
	for _, s := range r.tree.Sessions() {
		if !poisoned(claim) || s.Turn == nil || decide.Aborting(s) || s.Child != nil && r.tree.Turn != nil { // the root's end is its children's
			continue
		}
		facts = append(facts, record.Draft{Agent: s.SessionID, Run: s.Turn.RunID, Fact: &fact.InterruptRequested{
			RunID: s.Turn.RunID, Kind: fact.StopAbort, Code: agentloop.CodePoisoned, ByParent: s.Child != nil,
			Reason: fmt.Sprintf("%d processes in a row have died with it", claim.Silent+claim.Fruitless),
			Base:   r.host.FactBase(s.SessionID),
		}})
	}
	r.mu.RUnlock()
	if len(facts) == 0 {
		return nil
	}
	r.host.Logger.Error("run is given up", eventlog.LogSession, r.root, eventlog.LogRun, r.run, "code", agentloop.CodePoisoned, "silent", claim.Silent, "fruitless", claim.Fruitless)
	return r.appendForTree(ctx, facts...)
}

// appendForTree appends facts that no task of the tree is behind.
func (r *Tree) appendForTree(ctx context.Context, facts ...record.Draft) error {
	entries, err := record.Entries(r.root, facts)
	if err != nil {
		return err
	}
	return r.w.Append(ctx, entries...)
}

// settleClaim says of this node's claim that its end will not be the tree's doing.
func (r *Tree) settleClaim(ctx context.Context, how fact.ClaimSettling) error {
	r.mu.RLock()
	claim := r.tree.Claim
	r.mu.RUnlock()
	if claim == nil || claim.Writer != r.id {
		return nil
	}
	return r.appendForTree(ctx, record.Draft{Run: claim.RunID, Fact: &fact.ClaimSettled{
		RunID: claim.RunID, Node: claim.Node, How: how, Base: r.host.FactBase(r.root),
	}})
}

// letGoTimeout bounds how long a loop that stops tries to record the release of
// a tree.
const letGoTimeout = 2 * time.Second

// release says that this node releases the tree though it is not idle.
func (r *Tree) release() {
	ctx, cancel := context.WithTimeout(context.Background(), letGoTimeout)
	defer cancel()
	if err := r.settleClaim(ctx, fact.ClaimReleased); err != nil {
		r.host.Logger.Debug("can't say that a run was let go", eventlog.LogSession, r.root, eventlog.LogRun, r.run, "error", err)
	}
}
