package agentloop

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
)

// CodePoisoned is the code of a run that is given up since one process after
// the other has died with it.
const CodePoisoned = "agent_run_poisoned"

// How many processes in a row may die with a tree and record nothing that
// brings its run on: before a word of a model's was recorded, and after. Then
// the tree is taken to be what kills them.
const (
	MaxSilentClaims    = 5
	MaxFruitlessClaims = 25
)

const (
	// suspectAfter is from how many silent deaths on a tree is suspected. A
	// node takes up one suspect at a time, so that those which only died with
	// the culprit get by.
	suspectAfter = 2
	// suspectTime is after what time a suspect that has neither spoken nor
	// killed is left alone.
	suspectTime = 5 * time.Second
)

func poisoned(c *projector.Claim) bool {
	return c != nil && (c.Silent >= MaxSilentClaims || c.Fruitless >= MaxFruitlessClaims)
}

func suspected(c *projector.Claim) bool {
	return c != nil && c.Silent >= suspectAfter && !c.Spoke && !c.Progress
}

// awaitTurn waits for a suspected tree's turn, which leave ends.
func (l *Loop) awaitTurn(ctx context.Context) (leave func(), err error) {
	select {
	case l.suspect <- struct{}{}:
		leave = sync.OnceFunc(func() { <-l.suspect })
		time.AfterFunc(suspectTime, leave)
		return leave, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// endPoison has the open runs of a tree end as failed that kills whoever takes
// it up.
func (r *runner) endPoison(ctx context.Context) error {
	r.mu.RLock()
	claim := r.tree.Claim
	var facts []fact
	for _, s := range r.tree.Sessions() {
		if !poisoned(claim) || s.Turn == nil || aborting(s) || s.Child != nil && r.tree.Turn != nil { // the root's end is its children's
			continue
		}
		facts = append(facts, about(s.SessionID, []fact{{run: s.Turn.RunID, f: &eventlog.InterruptRequested{
			RunID: s.Turn.RunID, Kind: eventlog.StopAbort, Code: CodePoisoned, ByParent: s.Child != nil,
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
	r.l.opts.Logger.Error("run is given up", "session", r.root, "code", CodePoisoned, "silent", claim.Silent, "fruitless", claim.Fruitless)
	return r.w.Append(ctx, entries...)
}
