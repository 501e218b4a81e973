package admin

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/helixd/helixd/agentloop/workspace"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
)

// Erase erases a session (see [eventlog.Log]) with its workspaces and with what
// only it remembers, and takes it off the list. Files that another node alone
// can reach that removes, see Tidy; the erasure that has found the session is
// pending then. Within [eventlog.WithHead] it leaves a later session of the id alone, with
// its files and all.
//
// Errors: those of [eventlog.Log]'s Erase; ErrWorkspaceRemains: then nothing is
// erased but files.
func (a *Admin) Erase(ctx context.Context, session string) (eventlog.Erasure, error) {
	one, ctx := ctx, eventlog.WithHead(ctx, session, 0) // reads are of the head as it is by now
	only, known := eventlog.HeadFrom(one, session)
	ours := !known
	if known {
		ours, _ = a.requests.States.Has(ctx, session, only) // if that is not certain, the log decides
	}
	left := a.outOfReach(ctx, session) // the log can't say any more once it is erased
	if why := a.requests.Log.Info().RefusesErasure; why != "" {
		return eventlog.Erasure{}, fmt.Errorf("%w: %s", eventlog.ErrRefused, why)
	}
	// The files and memories first: if this breaks off, the session is still there
	// to be erased again.
	var remembered eventlog.Erasure
	some := false
	if ours {
		_, _, err := a.files.Remove(ctx, session)
		if err != nil {
			return eventlog.Erasure{}, err
		}
		remembered, err = a.eraseMemories(ctx, session)
		if some = err == nil; !some && !errors.Is(err, eventlog.ErrSessionNotFound) {
			return eventlog.Erasure{}, err
		}
	}
	e, err := a.requests.States.Erase(one, session)
	e.Records += remembered.Records
	if err == nil || errors.Is(err, eventlog.ErrSessionNotFound) {
		// The bytes of a session are overwritten while its id is free: a client may have created the
		// next session, whose files, memories and work these are then.
		switch _, herr := a.requests.Log.Head(ctx, session); {
		case herr == nil:
			e.Pending = e.Pending || left && err == nil
			if some {
				err = nil
			}
			return e, err
		case !errors.Is(herr, eventlog.ErrSessionNotFound):
			e.Pending = e.Pending || err == nil // the log's part is done
			return e, herr
		}
		// And what a run has written meanwhile.
		switch _, remains, again := a.files.Remove(ctx, session); {
		case again != nil:
			e.Pending = e.Pending || err == nil // the log's part is done
			return e, again
		case remains != "":
			e.Left = strings.TrimPrefix(e.Left+"; "+remains, "; ")
			e.Pending, err = true, nil
		case left && err == nil:
			e.Pending = true
		}
		switch remembered, again := a.eraseMemories(ctx, session); {
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
	if a.requests.Worklist == nil || err != nil && !errors.Is(err, eventlog.ErrSessionNotFound) {
		return e, err
	}
	if ferr := a.requests.Worklist.Forget(ctx, session); ferr != nil {
		e.Pending = err == nil
		return e, errors.Join(err, ferr)
	}
	return e, err
}

// eraseMemories erases what was remembered in a session. Errors: those of
// [eventlog.Log]'s Erase.
func (a *Admin) eraseMemories(ctx context.Context, session string) (eventlog.Erasure, error) {
	scope := eventlog.MemoryScope{Kind: eventlog.MemoryOfSession, ID: session}
	if scope.Validate() != nil {
		return eventlog.Erasure{}, eventlog.ErrSessionNotFound
	}
	return a.requests.Log.Erase(ctx, scope.LogID())
}

// outOfReach reports whether there may be files in workspaces of a tree that
// this node's providers don't reach.
func (a *Admin) outOfReach(ctx context.Context, root string) bool {
	t, err := a.requests.States.Head(ctx, root)
	if err != nil {
		return !errors.Is(err, eventlog.ErrSessionNotFound)
	}
	for _, s := range t.Sessions() {
		w := s.Workspace
		if w == nil || w.Status == projector.WorkspaceGone || w.Ref == nil && w.Snapshot == nil {
			continue
		}
		if a.files.Providers[w.ProviderID] == nil || a.files.Elsewhere(ctx, a.files.Providers[w.ProviderID], workspace.Session{Root: root, ID: s.SessionID}, w) {
			a.files.Logger.Warn("an erasure leaves files to the node that reaches them",
				eventlog.LogSession, root, "agent", s.SessionID, "provider", w.ProviderID)
			return true
		}
	}
	return false
}
