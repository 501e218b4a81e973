package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
)

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
	return l.node.Executing(ctx, t)
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
