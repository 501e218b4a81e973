package engine

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/internal/decide"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
)

const (
	// suspectAfter is from how many silent deaths on, the last claim's included,
	// a tree is suspected. A
	// node takes up one suspect, and then one more for each that turns out not
	// to be the culprit: those which only died beside it get by.
	suspectAfter = 2
	// suspectTime is after what time a suspect that has neither spoken nor
	// killed is left alone.
	suspectTime = 2 * time.Second
	// maxSuspects is how many suspects at most are taken up at once.
	maxSuspects = 64
)

func poisoned(c *projector.Claim) bool {
	return c != nil && (c.Silent >= agentloop.MaxSilentClaims || c.Fruitless >= agentloop.MaxFruitlessClaims)
}

func suspected(c *projector.Claim) bool {
	return c != nil && c.Silent+1 >= suspectAfter && !c.Spoke && !c.Progress
}

// newSuspects returns the places for suspected trees, one of them free.
func newSuspects() chan struct{} {
	places := make(chan struct{}, maxSuspects)
	places <- struct{}{}
	return places
}

// turn is a suspected tree's.
type turn struct {
	innocent func()           // ends it, and lets a further tree have one
	leave    func()           // only ends it
	over     <-chan time.Time // when it has lived for a while
}

// awaitTurn waits for a suspected tree's turn. While it does, the tree is not
// held: whoever asks for it ends the wait, as does the end of the loop, and what
// is to be done is decided anew. Then there is no turn.
func (l *Loop) awaitTurn(run *liveRun) (*turn, error) {
	run.underWay(l)
	l.pauses(run, true)
	defer l.pauses(run, false)
	select {
	case <-l.suspects:
	case <-run.asked:
		return nil, nil
	case <-l.drains:
		return nil, errHandedOver
	case <-l.ctx.Done():
		return nil, context.Cause(l.ctx)
	}
	var once sync.Once
	free := func(places int) {
		once.Do(func() {
			for range places {
				select {
				case l.suspects <- struct{}{}:
				default: // there are enough
				}
			}
		})
	}
	return &turn{innocent: func() { free(2) }, leave: func() { free(1) }, over: time.After(suspectTime)}, nil
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
	r.l.opts.Logger.Error("run is given up", eventlog.LogSession, r.root, eventlog.LogRun, r.run, "code", agentloop.CodePoisoned, "silent", claim.Silent, "fruitless", claim.Fruitless)
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
		r.l.opts.Logger.Debug("can't say that a run was let go", eventlog.LogSession, r.root, eventlog.LogRun, r.run, "error", err)
	}
}
