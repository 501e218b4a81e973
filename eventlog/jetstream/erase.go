package jetstream

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/internal/wire"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

// maintenance erases sessions, and removes from the log what segments hold.
type maintenance struct {
	*segments
	done      doneMarks
	forgetFor time.Duration // forgetBudget

	mu     sync.Mutex
	leftAt time.Time // when markLeftBlobs was called
}

func newMaintenance(s *segments) *maintenance {
	return &maintenance{segments: s, forgetFor: forgetBudget}
}

// Erase implements eventlog.Log. A message on helix.erased.<p>.<S> says that the
// session is to be erased, see erasing. A record of type erased then fences it: it
// is not found any more, and no append after another record succeeds. What is left
// to do from then on, FinishErasures does if this call breaks off.
func (l *maintenance) Erase(ctx context.Context, session string) (eventlog.Erasure, error) {
	ctx, err := l.frees(ctx)
	if err != nil {
		return eventlog.Erasure{}, err
	}
	fence, err := l.wantFence(ctx, session)
	if errors.Is(err, eventlog.ErrSessionNotFound) {
		fence, err = l.fenced(ctx, session) // it may have been fenced since it was looked for
	}
	if errors.Is(err, eventlog.ErrSessionNotFound) {
		return l.erased(ctx, session)
	}
	if errors.Is(err, wire.ErrDamaged) {
		return l.eraseUnreadable(ctx, session)
	}
	if err != nil {
		return eventlog.Erasure{}, err
	}
	return l.eraseTo(ctx, session, fence)
}

// eraseUnreadable erases a session whose last segment can't be unpacked, so that nobody knows its
// head: all of it comes before the log's end, and is marked up to there. Errors: errDamaged, if
// there is more of it that can't be read; the session stays wanted.
func (l *maintenance) eraseUnreadable(ctx context.Context, session string) (eventlog.Erasure, error) {
	end, err := l.lastOf(ctx, layout.LogStream(l.partitionOf(session)))
	if err != nil {
		return eventlog.Erasure{}, err
	}
	if err := l.want(ctx, session, end); err != nil {
		return eventlog.Erasure{}, err
	}
	e, err := l.erasingOf(ctx, session)
	if err == nil && e.Head > 0 {
		_, err = l.finishWanted(ctx, session, e)
	}
	if err != nil {
		return eventlog.Erasure{}, err
	}
	return l.erased(ctx, session)
}

// wantFence is fence behind a mark, so that the erasure goes on if this process ends.
func (l *maintenance) wantFence(ctx context.Context, session string) (uint64, error) {
	if at, err := l.fenced(ctx, session); !errors.Is(err, eventlog.ErrSessionNotFound) {
		return at, err
	}
	head, err := l.Head(ctx, session)
	if err != nil {
		return 0, err
	}
	if err := l.want(ctx, session, head); err != nil {
		return 0, err
	}
	return l.fence(ctx, session)
}

// fence returns the sequence of the session's erased record, which it appends if no node
// has, to the session that the mark names: meanwhile that one may have been erased, and the
// id be in use again. Errors: ErrSessionNotFound, if the marked session is not there.
func (l *maintenance) fence(ctx context.Context, session string) (uint64, error) {
	held, release := ctx, func() {}
	defer func() { release() }()
	for {
		if at, err := l.fenced(ctx, session); !errors.Is(err, eventlog.ErrSessionNotFound) {
			return at, err
		}
		head, err := l.Head(ctx, session)
		if err != nil {
			return 0, err
		}
		// In this order: the append fails if the session at head is gone by then.
		if wanted, err := l.wanted(ctx, session, head); err != nil {
			return 0, err
		} else if !wanted {
			return 0, eventlog.ErrSessionNotFound
		}
		erased, err := eventlog.NewFact(session, &eventlog.Erased{FactBase: eventlog.FactBase{
			SessionID: session, Timestamp: time.Now().UnixMilli(),
		}}, eventlog.Labels{})
		if err != nil {
			return 0, err
		}
		_, err = l.Append(held, session, head, []eventlog.Entry{erased})
		_, conflict := errors.AsType[*eventlog.ConflictError](err)
		if err != nil && !conflict && !errors.Is(err, eventlog.ErrOutcomeUnknown) && !errors.Is(err, eventlog.ErrSessionNotFound) {
			return 0, fmt.Errorf("jetstream: erase: %w", err)
		}
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		if conflict {
			var next func()
			held, next = l.Hold(ctx, session)
			release()
			release = next
		}
	}
}

// wanted reports whether a mark says that the session with the given head is to be erased.
func (l *maintenance) wanted(ctx context.Context, session string, head uint64) (bool, error) {
	e, err := l.erasingOf(ctx, session)
	if err != nil || e.Head == 0 || e.Head == head {
		return err == nil && e.Head > 0, err
	}
	return l.lives(ctx, session, e.Head)
}
