package admin

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine/internal/record"
	"github.com/helixd/helixd/agentloop/engine/internal/request"
	"github.com/helixd/helixd/agentloop/internal/decide"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
)

// expireTimeout bounds how long a sweep waits for one session's end.
const expireTimeout = 30 * time.Second

// SweepOptions say how a sweep finds expired sessions.
type SweepOptions struct {
	// Expiring yields the root sessions that expire before a time, at least
	// those that have not ended; nil: all sessions are looked at, and those that
	// have changed since the last sweep are folded.
	Expiring func(ctx context.Context, before time.Time) iter.Seq2[string, error]
	// OnlyEphemeral leaves sessions alone that outlive their run.
	OnlyEphemeral bool
	// DryRun changes nothing: it counts.
	DryRun bool
}

// Swept counts what a sweep has done.
type Swept struct {
	Detected         int `json:"detected"`         // sessions that have expired
	Marked           int `json:"marked"`           // that have failed now, with session_expired
	AlreadyTerminal  int `json:"alreadyTerminal"`  // that had ended before
	SnapshotsDeleted int `json:"snapshotsDeleted"` // of workspaces
	Errors           int `json:"errors"`           // sessions that could not be looked at or ended; each is logged
	// Running are those that are left alone because something of them runs.
	Running int `json:"running"`
}

// lookedAt is what a sweep knows of a session, as long as its head is the same.
type lookedAt struct {
	head      uint64
	expiresAt int64
	over      bool
	files     bool // there may be some in workspaces
	ephemeral bool // it is to be erased, since its run has ended or waits
}

// Sweep ends the sessions that have expired and still wait, for a person or to
// be resumed: they fail with the code session_expired. It removes the workspaces of all
// expired sessions, as far as this node can reach them, with their snapshots, and nothing of
// the log. It erases durable streams that have expired, and ephemeral sessions whose run has
// ended or waits. It leaves a session alone that runs, or of which a sub-agent runs. A failure with
// one session is logged and counted, and does not stop the sweep. One sweep at a time.
//
// Errors: those of listing the sessions; eventlog.ErrRefused; ctx's.
func (a *Admin) Sweep(ctx context.Context, o SweepOptions) (Swept, error) {
	select {
	case a.sweeping <- struct{}{}:
		defer func() { <-a.sweeping }()
	case <-ctx.Done():
		return Swept{}, context.Cause(ctx)
	}
	now := a.requests.Clock.Now()
	candidates := o.Expiring
	if candidates == nil {
		candidates = func(ctx context.Context, _ time.Time) iter.Seq2[string, error] { return a.requests.Log.Sessions(ctx) }
	}
	var done Swept
	known := make(map[string]lookedAt, len(a.lookedAt))
	for session, err := range candidates(ctx, now.Add(time.Millisecond)) {
		if err != nil {
			return done, fmt.Errorf("agentloop: sweep: %w", err)
		}
		if eventlog.IsMemoryLog(session) {
			continue
		}
		seen, err := a.lookAt(ctx, session)
		switch {
		case errors.Is(err, eventlog.ErrSessionNotFound): // erased since
			continue
		case ctx.Err() != nil:
			return done, context.Cause(ctx)
		case err == nil:
			known[session] = seen
			if seen.expiresAt == 0 || seen.expiresAt > now.UnixMilli() || o.OnlyEphemeral && !seen.ephemeral {
				continue
			}
			done.Detected++
			if seen.ephemeral {
				done.AlreadyTerminal++
				err = a.eraseEphemeral(ctx, session, seen.head, o.DryRun)
				break
			}
			if eventlog.IsDurableLog(session) {
				if !o.DryRun {
					err = a.streams.Expire(ctx, session)
				}
				break
			}
			if seen.over {
				done.AlreadyTerminal++
			} else {
				err = a.expire(ctx, session, now.UnixMilli(), o.DryRun, &done)
			}
			if err == nil && seen.files && !o.DryRun {
				err = a.closeWorkspaces(ctx, session, now.UnixMilli(), &done)
			}
		}
		if errors.Is(err, eventlog.ErrRefused) || errors.Is(err, agentloop.ErrStopping) {
			return done, err
		}
		if err != nil {
			done.Errors++
			a.files.Logger.Warn("an expired session was not swept", eventlog.LogSession, session, "error", err)
		}
	}
	a.lookedAt = known
	return done, nil
}

// lookAt folds a session, if it has changed.
func (a *Admin) lookAt(ctx context.Context, session string) (lookedAt, error) {
	head, err := a.requests.Log.Head(ctx, session)
	if err != nil {
		return lookedAt{}, err
	}
	if seen, ok := a.lookedAt[session]; ok && seen.head == head {
		return seen, nil
	}
	t, err := a.requests.States.Head(ctx, session)
	if err != nil {
		return lookedAt{}, err
	}
	return lookedAt{head: t.Head, expiresAt: t.ExpiresAt, over: t.Turn == nil, files: hasFiles(t), ephemeral: t.Ephemeral && !runs(t)}, nil
}

// eraseEphemeral erases a session whose run has ended or waits, and that nobody keeps. Another node, or the
// client's request, may erase it first, and a client may then create one with its id.
func (a *Admin) eraseEphemeral(ctx context.Context, session string, head uint64, dry bool) error {
	if dry {
		return nil
	}
	_, err := a.Erase(eventlog.WithHead(ctx, session, head), session)
	if errors.Is(err, eventlog.ErrSessionNotFound) {
		return nil
	}
	return err
}

// expire ends a session unless something of it runs, and counts what became of
// it.
func (a *Admin) expire(ctx context.Context, session string, now int64, dry bool, done *Swept) error {
	ctx, cancel := context.WithTimeout(ctx, expireTimeout)
	defer cancel()
	count := func(*Swept) {}
	t, ticket, err := a.requests.AppendWork(ctx, session, "", request.Always, func(t *projector.Tree) ([]record.Draft, error) {
		count = func(*Swept) {}
		switch {
		case t == nil:
			return nil, eventlog.ErrSessionNotFound
		case t.Turn == nil:
			count = func(s *Swept) { s.AlreadyTerminal++ }
			return nil, nil
		case t.ExpiresAt == 0 || t.ExpiresAt > now: // it was asked for a run meanwhile
			count = func(s *Swept) { s.Detected-- }
			return nil, nil
		case runs(t):
			count = func(s *Swept) { s.Running++ }
			return nil, nil
		case dry:
			return nil, nil
		}
		count = func(s *Swept) { s.Marked++ }
		if decide.Aborting(&t.Session) {
			return nil, nil // its client did not live to see it
		}
		return []record.Draft{{Run: t.Turn.RunID, Fact: &fact.InterruptRequested{
			RunID: t.Turn.RunID, Kind: fact.StopAbort, Code: agentloop.CodeSessionExpired, Base: a.requests.Clock.FactBase(session),
		}}}, nil
	})
	switch {
	case errors.Is(err, eventlog.ErrSessionNotFound):
		done.Detected--
		return nil
	case err != nil:
		return err
	}
	if decide.Aborting(&t.Session) && !dry {
		if err := a.requests.DispatchAsked(ctx, t, ticket); err != nil {
			return err
		}
		if err := a.requests.AwaitStop(ctx, session); err != nil {
			return err
		}
	}
	count(done)
	return nil
}

// runs reports whether any session of the tree runs.
func runs(t *projector.Tree) bool {
	return slices.ContainsFunc(t.Sessions(), (*projector.Session).Running)
}
