package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/internal/decide"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
)

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

// Executing reports whether the root's run continues: it is open, and a node
// drives it.
func (l *Loop) Executing(ctx context.Context, t *projector.Tree) bool {
	return t.Running() && l.Driven(ctx, t)
}

// dispatchAsked is dispatch for a tree that is on the work list only if it has a
// ticket: without one it is put there.
func (l *Loop) dispatchAsked(ctx context.Context, t *projector.Tree, ticket uint64) error {
	if ticket == 0 && !l.Driven(ctx, t) {
		var err error
		var done func()
		if ticket, done, err = l.node.Announce(ctx, t.AgentType, t.SessionID); err != nil {
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
	elsewhere := l.node.HandsOver(t.AgentType) || l.defs()[t.AgentType] == nil && !decide.Aborting(&t.Session)
	if elsewhere && l.opts.Queue != nil && !l.Live(t.SessionID) {
		l.node.ForgetRequest(t.SessionID)
		if c := t.Claim; c == nil || !l.opts.Queue.Holds(l.ctx, c.Node, t.SessionID, ticket) {
			l.opts.Queue.Wake(t.AgentType, t.SessionID)
		}
		return
	}
	l.node.Start(t.SessionID, ticket)
}

// Erase erases a session (see [eventlog.Log]) with its workspaces and with what
// only it remembers, and takes it off the list. Files that another node alone
// can reach that removes, see Tidy; the erasure that has found the session is
// pending then.
//
// Errors: those of [eventlog.Log]'s Erase; ErrWorkspaceRemains: then nothing is
// erased but files.
func (l *Loop) Erase(ctx context.Context, session string) (eventlog.Erasure, error) {
	left := l.outOfReach(ctx, session) // the log can't say any more once it is erased
	if why := l.log.Info().RefusesErasure; why != "" {
		return eventlog.Erasure{}, fmt.Errorf("%w: %s", eventlog.ErrRefused, why)
	}
	// The files and memories first: if this breaks off, the session is still there
	// to be erased again.
	if _, _, err := l.files.Remove(ctx, session); err != nil {
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
		switch _, pending, again := l.files.Remove(ctx, session); {
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
