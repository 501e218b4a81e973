package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
)

// errHeld: another node, which lives, drives the tree.
var errHeld = errors.New("agentloop: held by another node")

// Announce puts a tree on the list, before records that give it work. Until done is
// called, this node answers for the tree: no other one takes it up.
func (n *Node) Announce(ctx context.Context, agentType, session string) (ticket uint64, done func(), err error) {
	if why := n.host.Log.Info().Refuses; why != "" {
		return 0, func() {}, fmt.Errorf("%w: %s", eventlog.ErrRefused, why)
	}
	if n.worklist == nil {
		return 0, func() {}, nil
	}
	n.mu.Lock()
	n.asked[session]++
	n.mu.Unlock()
	done = func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		if n.asked[session]--; n.asked[session] == 0 {
			delete(n.asked, session)
		}
	}
	if ticket, err = n.worklist.Announce(ctx, agentType, session); err != nil {
		done()
		return 0, func() {}, err
	}
	return ticket, done, nil
}

// Holds reports whether this node drives the session, or is about to. One that
// drives it looks at its log once more before it releases the tree, and takes over the
// ticket, unless that is 0.
func (n *Node) Holds(session string, ticket uint64) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch run := n.live[session]; {
	case run == nil || run.pauses:
		return run == nil && ticket == 0 && n.asked[session] > 0
	case ticket > 0:
		run.ask(ticket)
	}
	return true
}

// IsDriven reports whether a node drives the tree.
func (n *Node) IsDriven(ctx context.Context, t *projector.Tree) bool {
	switch {
	case n.Live(t.SessionID):
		return true
	case n.worklist == nil || t.Claim == nil || t.Claim.Node == n.host.Node:
		return false
	}
	return n.worklist.Holds(ctx, t.Claim.Node, t.SessionID, 0)
}

// Executing reports whether the root's run continues: it is open, and a node
// drives it.
func (n *Node) Executing(ctx context.Context, t *projector.Tree) bool {
	return t.Running() && n.IsDriven(ctx, t)
}

// DrivenElsewhere reports whether another node may be driving the tree. Without
// a work list, it may.
func (n *Node) DrivenElsewhere(ctx context.Context, t *projector.Tree) bool {
	if n.Live(t.SessionID) {
		return false
	}
	return n.worklist == nil || n.IsDriven(ctx, t)
}

// Offer drives a tree that is on the list, if it has work that no other
// node does. known says that what was to be appended when the ticket was
// given is in the log, or never will be.
func (n *Node) Offer(session string, ticket uint64, known bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.live[session] != nil || n.asked[session] > 0 || n.Draining() {
		return
	}
	run := newDriven()
	run.agreed, run.tickets, run.taken = known, []uint64{ticket}, true
	n.launch(session, run)
}

// heldElsewhere reports whether another node that lives has claimed the tree. It
// then looks at the log again.
func (n *Node) heldElsewhere(ctx context.Context, t *projector.Tree, run *drivenTree) bool {
	c := t.Claim
	if n.worklist == nil || c == nil || c.Node == n.host.Node {
		return false
	}
	n.mu.Lock()
	ticket := uint64(0)
	if run.agreed && len(run.tickets) > 0 {
		ticket = run.tickets[len(run.tickets)-1]
	}
	force := run.force
	n.mu.Unlock()
	if force {
		return false
	}
	return n.worklist.Holds(ctx, c.Node, t.SessionID, ticket)
}

// removeTimeout bounds how long a node tries to take a tree off the list. One
// that stays there is found to be idle later.
const removeTimeout = 10 * time.Second

// remove takes a tree that is idle off the list.
func (n *Node) remove(session string, run *drivenTree) {
	if n.worklist == nil || len(run.tickets) == 0 || n.host.Log.Info().RefusesErasure != "" {
		return // what stays on the list is found to be idle later
	}
	ctx, cancel := context.WithTimeout(n.Ctx, removeTimeout)
	defer cancel()
	if err := n.worklist.Remove(ctx, run.tickets); err != nil && n.Ctx.Err() == nil {
		n.host.Logger.Warn("an idle session tree stays on the work list", eventlog.LogSession, session, eventlog.LogRun, run.id, "error", err)
	}
}
