package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/internal/decide"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
)

// errHeld: another node, which lives, drives the tree.
var errHeld = errors.New("agentloop: held by another node")

// errHandedOver: this node drains, and another one goes on with the tree.
var errHandedOver = errors.New("agentloop: handed over to another node")

// put puts a tree on the list, before records that give it work. Until done is
// called, this node answers for the tree: no other one takes it up.
func (l *Loop) put(ctx context.Context, agentType, session string) (ticket uint64, done func(), err error) {
	if why := l.log.Info().Refuses; why != "" {
		return 0, func() {}, fmt.Errorf("%w: %s", eventlog.ErrRefused, why)
	}
	if l.opts.Queue == nil {
		return 0, func() {}, nil
	}
	l.mu.Lock()
	l.asked[session]++
	l.mu.Unlock()
	done = func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.asked[session]--; l.asked[session] == 0 {
			delete(l.asked, session)
		}
	}
	if ticket, err = l.opts.Queue.Put(ctx, agentType, session); err != nil {
		done()
		return 0, func() {}, err
	}
	return ticket, done, nil
}

// Holds reports whether this node drives the session, or is about to. One that
// drives it looks at its log once more before it lets go, and takes over the
// ticket, unless that is 0.
func (l *Loop) Holds(session string, ticket uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch run := l.live[session]; {
	case run == nil || run.pauses:
		return run == nil && ticket == 0 && l.asked[session] > 0
	case ticket > 0:
		run.ask(ticket)
	}
	return true
}

// Driven reports whether a node drives the tree.
func (l *Loop) Driven(ctx context.Context, t *projector.Tree) bool {
	switch {
	case l.Live(t.SessionID):
		return true
	case l.opts.Queue == nil || t.Claim == nil || t.Claim.Node == l.opts.Node:
		return false
	}
	return l.opts.Queue.Holds(ctx, t.Claim.Node, t.SessionID, 0)
}

// drivenElsewhere reports whether another node may be driving the tree. Without
// a queue, it may.
func (l *Loop) drivenElsewhere(ctx context.Context, t *projector.Tree) bool {
	if l.Live(t.SessionID) {
		return false
	}
	return l.opts.Queue == nil || l.Driven(ctx, t)
}

// hosted returns ErrUnknownAgent if no node runs the agent.
func (l *Loop) hosted(ctx context.Context, agentType string) error {
	_, err := l.initialState(ctx, agentType)
	return err
}

// initialState returns the initial state of an agent that some node hosts, or
// ErrUnknownAgent.
func (l *Loop) initialState(ctx context.Context, agentType string) (state json.RawMessage, err error) {
	if def := l.defs()[agentType]; def != nil {
		return def.InitialState, nil
	}
	if l.opts.Queue == nil || agentType == "" {
		return nil, agentloop.ErrUnknownAgent
	}
	state, hosted, err := l.opts.Queue.Agent(ctx, agentType)
	if err == nil && !hosted {
		err = agentloop.ErrUnknownAgent
	}
	return state, err
}

// InitialState returns the initial state of an agent that this node hosts.
func (l *Loop) InitialState(agentType string) (state json.RawMessage, hosted bool) {
	def := l.defs()[agentType]
	if def == nil {
		return nil, false
	}
	return def.InitialState, true
}

// Executing reports whether the root's run goes on: it is open, and a node
// drives it.
func (l *Loop) Executing(ctx context.Context, t *projector.Tree) bool {
	return t.Running() && l.Driven(ctx, t)
}

// dispatchAsked is dispatch for a tree that stands on the list only with a
// ticket: without one it is put there.
func (l *Loop) dispatchAsked(ctx context.Context, t *projector.Tree, ticket uint64) error {
	if ticket == 0 && !l.Driven(ctx, t) {
		var err error
		var done func()
		if ticket, done, err = l.put(ctx, t.AgentType, t.SessionID); err != nil {
			return err
		}
		defer done()
	}
	l.dispatch(t, ticket)
	return nil
}

// dispatch has a tree driven to which something was appended: by the node that
// holds it, by this one, or by another one if its agent is not here.
func (l *Loop) dispatch(t *projector.Tree, ticket uint64) {
	elsewhere := l.leaves(t.AgentType) || l.defs()[t.AgentType] == nil && !decide.Aborting(&t.Session)
	if elsewhere && l.opts.Queue != nil && !l.Live(t.SessionID) {
		l.forgetRequest(t.SessionID)
		if c := t.Claim; c == nil || !l.opts.Queue.Holds(l.ctx, c.Node, t.SessionID, ticket) {
			l.opts.Queue.Wake(t.AgentType, t.SessionID)
		}
		return
	}
	l.drive(t.SessionID, ticket)
}

// TakeUp drives a tree that stands on the list, if it has work that no other
// node does. known tells that what was to be appended when the ticket was
// given is in the log, or never will be.
func (l *Loop) TakeUp(session string, ticket uint64, known bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.live[session] != nil || l.asked[session] > 0 || l.Draining() {
		return
	}
	run := newRun()
	run.agreed, run.tickets, run.taken = known, []uint64{ticket}, true
	l.launch(session, run)
}

// agree has a tree leave the list when it is at rest. Whoever has claimed it has
// seen the work that was announced.
func (l *Loop) agree(run *liveRun) {
	l.mu.Lock()
	defer l.mu.Unlock()
	run.agreed = true
}

// heldElsewhere reports whether another node that lives has claimed the tree. It
// then looks at the log again.
func (l *Loop) heldElsewhere(ctx context.Context, t *projector.Tree, run *liveRun) bool {
	c := t.Claim
	if l.opts.Queue == nil || c == nil || c.Node == l.opts.Node {
		return false
	}
	l.mu.Lock()
	ticket := uint64(0)
	if run.agreed && len(run.tickets) > 0 {
		ticket = run.tickets[len(run.tickets)-1]
	}
	force := run.force
	l.mu.Unlock()
	if force {
		return false
	}
	return l.opts.Queue.Holds(ctx, c.Node, t.SessionID, ticket)
}

// removeTimeout bounds how long a node tries to take a tree off the list. One
// that stays there is found to be at rest later.
const removeTimeout = 10 * time.Second

// remove takes a tree that is at rest off the list.
func (l *Loop) remove(session string, run *liveRun) {
	if l.opts.Queue == nil || len(run.tickets) == 0 || l.log.Info().RefusesErasure != "" {
		return // what stays on the list is found to be at rest later
	}
	ctx, cancel := context.WithTimeout(l.ctx, removeTimeout)
	defer cancel()
	if err := l.opts.Queue.Remove(ctx, run.tickets); err != nil && l.ctx.Err() == nil {
		l.opts.Logger.Warn("a tree at rest stays on the list of work", eventlog.LogSession, session, eventlog.LogRun, run.id, "error", err)
	}
}

// Erase erases a session (see [eventlog.Log]) with its workspaces and with what
// only it remembers, and takes it off the list. Files that another node alone
// can reach that removes, see Tidy; the erasure that has found the session is
// pending then.
//
// Errors: those of [eventlog.Log]'s Erase; ErrWorkspaceRemains: then nothing is
// erased but files.
func (l *Loop) Erase(ctx context.Context, session string) (eventlog.Erasure, error) {
	left := l.outOfReach(ctx, session) // the log can't tell any more when it is erased
	if why := l.log.Info().RefusesErasure; why != "" {
		return eventlog.Erasure{}, fmt.Errorf("%w: %s", eventlog.ErrRefused, why)
	}
	// The files and memories first: if this breaks off, the session is still there
	// to be erased again.
	if _, _, err := l.removeWorkspaces(ctx, session); err != nil {
		return eventlog.Erasure{}, err
	}
	remembered, err := l.eraseMemories(ctx, session)
	some := err == nil
	if !some && !errors.Is(err, eventlog.ErrSessionNotFound) {
		return eventlog.Erasure{}, err
	}
	e, err := l.states.Erase(ctx, session)
	e.Records += remembered.Records
	if err == nil || errors.Is(err, eventlog.ErrSessionNotFound) {
		// And what a run has written meanwhile.
		switch _, pending, again := l.removeWorkspaces(ctx, session); {
		case again != nil:
			e.Pending = e.Pending || err == nil // the log's part is done
			return e, again
		case pending || left && err == nil:
			e.Pending, err = true, nil
		}
		switch remembered, again := l.eraseMemories(ctx, session); {
		case again == nil:
			some = true
			e.Records, e.Pending = e.Records+remembered.Records, e.Pending || remembered.Pending
		case !errors.Is(again, eventlog.ErrSessionNotFound):
			e.Pending = err == nil
			return e, again
		}
		if some { // the memories of a session that was not there any more
			err = nil
		}
	}
	if l.opts.Queue == nil || err != nil && !errors.Is(err, eventlog.ErrSessionNotFound) {
		return e, err
	}
	if ferr := l.opts.Queue.Forget(ctx, session); ferr != nil {
		e.Pending = err == nil
		return e, errors.Join(err, ferr)
	}
	return e, err
}

// eraseMemories erases what was remembered in a session. Errors: those of
// [eventlog.Log]'s Erase.
func (l *Loop) eraseMemories(ctx context.Context, session string) (eventlog.Erasure, error) {
	scope := eventlog.MemoryScope{Kind: eventlog.MemoryOfSession, ID: session}
	if scope.Validate() != nil {
		return eventlog.Erasure{}, eventlog.ErrSessionNotFound
	}
	return l.log.Erase(ctx, scope.LogID())
}
