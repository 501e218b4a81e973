package node

import (
	"context"
	"fmt"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine/internal/drive"
	"github.com/helixd/helixd/agentloop/internal/decide"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
)

// hold claims the session's tree and drives it until it is idle. Without a
// work list it takes the tree from any node if there is a request for it,
// with one only from a silent node; and it resumes only a tree that no
// other node has claimed since.
func (n *Node) hold(ctx context.Context, session string, run *drivenTree) (err error) {
	offered := run.taken // it was this node's to drive
	t, err := n.states.Head(ctx, session)
	if err != nil {
		return err
	}
	run.agent = t.AgentType
	var probation *drive.Probation
	for probation == nil && suspected(t.Claim) && !decide.Aborting(&t.Session) {
		if probation, err = n.awaitProbation(run); err != nil {
			return err
		}
		if probation != nil {
			defer probation.Leave()
		}
		if t, err = n.states.Head(ctx, session); err != nil {
			return err
		}
	}
	if c := t.Claim; run.held > 0 && c != nil && c.Sequence > run.held && c.Node != n.host.Node {
		return eventlog.ErrSuperseded
	}
	defs, leave := n.agents.use()
	defer leave()
	id, attempt := openRun(t)
	run.held, run.id = t.Head, id
	r := drive.New(n.host, session, t, id, defs, func(run string) *agentloop.Hooks { return n.requestHooks(session, run) }, probation)
	defer r.Close()
	if effects, err := r.Decide(); err != nil || len(effects) == 0 {
		return err
	}
	if t.Turn != nil && defs[t.AgentType] == nil && !decide.Aborting(&t.Session) {
		return fmt.Errorf("%w: %q", agentloop.ErrUnknownAgent, t.AgentType)
	}
	switch {
	case n.HandsOver(t.AgentType):
		return drive.ErrHandedOver
	case n.heldElsewhere(ctx, t, run):
		return errHeld
	case !offered && probation == nil && drive.MayMove(t) && !decide.Aborting(&t.Session) && n.spread(session, t.AgentType):
		return drive.ErrSpread
	}
	before := t.Claim
	fresh := attempt == 1 && t.Running() && t.CurrentRun().RunID == id
	if err := r.Claim(ctx, attempt); err != nil {
		return err
	}
	run.claimed = true
	n.host.Metrics.Claimed(attempt > 1 && before != nil && before.Node != n.host.Node)
	n.mu.Lock()
	run.agreed = true // this node has seen the announced work: the tree leaves the list when it is idle
	n.mu.Unlock()
	run.underWay(n)
	return r.Drive(ctx, fresh)
}

// openRun returns the run for which a tree is claimed, the root's if its turn
// is open, and how often it will have been claimed.
func openRun(t *projector.Tree) (run string, attempt int) {
	for _, s := range t.Sessions() {
		if last := s.CurrentRun(); s.Turn != nil && last != nil {
			return last.RunID, last.Claims + 1
		}
	}
	return "none", 1
}
