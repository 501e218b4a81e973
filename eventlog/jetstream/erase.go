package jetstream

import (
	"context"
	"errors"
	"fmt"
	"time"

	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/internal/wire"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

// Erase implements eventlog.Log. A message on helix.erased.<p>.<S> says that the
// session is to be erased, see erasing. A record of type erased then fences it: it
// is not found any more, and no append after another record succeeds. What is left
// to do from then on, FinishErasures does if this call breaks off.
func (l *Log) Erase(ctx context.Context, session string) (eventlog.Erasure, error) {
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
func (l *Log) eraseUnreadable(ctx context.Context, session string) (eventlog.Erasure, error) {
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
func (l *Log) wantFence(ctx context.Context, session string) (uint64, error) {
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

// fenced returns the sequence of the session's fence. Errors: ErrSessionNotFound, if it has
// none.
func (l *Log) fenced(ctx context.Context, session string) (uint64, error) {
	stream, subject, err := l.place(session)
	if err != nil {
		return 0, err
	}
	m, err := l.lastMessage(ctx, stream, subject)
	switch {
	case errors.Is(err, errNoMessage), err == nil && !wire.IsErased(m.Header):
		return 0, eventlog.ErrSessionNotFound
	case err != nil:
		return 0, err
	}
	return m.Sequence, nil
}

// fence returns the sequence of the session's erased record, which it appends if no node
// has, to the session that the mark names: meanwhile that one may have been erased, and the
// id be in use again. Errors: ErrSessionNotFound, if the marked session is not there.
func (l *Log) fence(ctx context.Context, session string) (uint64, error) {
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
func (l *Log) wanted(ctx context.Context, session string, head uint64) (bool, error) {
	e, err := l.erasingOf(ctx, session)
	if err != nil || e.Head == 0 || e.Head == head {
		return err == nil && e.Head > 0, err
	}
	return l.lives(ctx, session, e.Head)
}

// lastOf returns a stream's last sequence.
func (l *Log) lastOf(ctx context.Context, stream string) (uint64, error) {
	var s natsjs.Stream
	err := Settle(ctx, l.nc, func(ctx context.Context) error {
		return l.step(ctx, "end", func(ctx context.Context) (err error) {
			s, err = l.js.Stream(ctx, stream)
			return err
		})
	})
	if err != nil {
		return 0, fmt.Errorf("jetstream: stream %s: %w", stream, err)
	}
	return s.CachedInfo().State.LastSeq, nil
}

// eraseSealed overwrites the segments and floors of a session that hold or name records
// up to its fence, wherever in the stream they are: another node may seal until the
// fence is removed. Records after the fence are of a session that was created again. So may be
// what can't be read: that goes only while the fence stands. Errors: ErrUnavailable, if the
// server that answered may not be the stream's leader, which may have more.
func (l *Log) eraseSealed(ctx context.Context, session string, fence uint64, by func(subject string, at uint64) error) error {
	p := l.partitionOf(session)
	stream := layout.SegmentStream(p)
	for _, subject := range []string{layout.SegmentSubject(session, p), layout.FloorSubject(session, p)} {
		for at := uint64(0); ; {
			m, err := l.leaderGet(ctx, stream, map[string]any{"seq": at + 1, "next_by_subj": subject})
			if errors.Is(err, errNoMessage) {
				break
			}
			if err != nil {
				return err
			}
			at = m.Sequence
			last, readable := wire.Reaches(m)
			if readable && last > fence {
				continue
			}
			if !readable {
				if stands, err := l.stands(ctx, session, fence); err != nil {
					return err
				} else if !stands {
					continue
				}
			}
			if err := by(subject, at); err != nil {
				return err
			}
		}
	}
	if l.opts.Replicas > 1 && !l.leads(ctx, stream) {
		return fmt.Errorf("%w: %w", eventlog.ErrUnavailable, errStaleLeader)
	}
	return nil
}

// stands reports whether a session's fence is there, which no session of the id is then.
func (l *Log) stands(ctx context.Context, session string, fence uint64) (bool, error) {
	at, err := l.fenced(ctx, session)
	if errors.Is(err, eventlog.ErrSessionNotFound) {
		return false, nil
	}
	return err == nil && at == fence, err
}
