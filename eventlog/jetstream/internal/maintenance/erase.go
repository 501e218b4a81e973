package maintenance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/jetstream/internal/link"
	"github.com/helixd/helixd/eventlog/jetstream/internal/store"
	"github.com/helixd/helixd/eventlog/jetstream/internal/streams"
	"github.com/helixd/helixd/eventlog/jetstream/internal/wire"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

// Maintenance seals, purges, trims and erases sessions. It may be used from many
// goroutines.
type Maintenance struct {
	*store.Store
	sealers   [layout.MaxPartitions]*sealer // one for each possible partition
	done      doneMarks
	forgetFor time.Duration // forgetBudget

	mu     sync.Mutex
	leftAt time.Time // when markLeftBlobs was last called
}

// Open opens the log on nc without followers and feeds, see jetstream.Open. It calls
// ready before the log seals anything or grows.
func Open(ctx context.Context, nc *nats.Conn, o link.Options, ready ...func(*Maintenance)) (_ *Maintenance, err error) {
	conn, err := link.New(ctx, nc, o)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			conn.Close()
		}
	}()
	set, err := streams.Open(ctx, conn)
	if err != nil {
		return nil, err
	}
	l := New(store.New(set))
	if !conn.Opts.ReadOnly {
		if err := l.dropAllOrphanSegments(ctx); err != nil {
			return nil, err
		}
	}
	if err := l.Store.Start(ctx); err != nil {
		return nil, err
	}
	for _, f := range ready {
		f(l)
	}
	l.startSealers()
	conn.WatchConnection()
	set.StartGrowth()
	if !conn.Opts.ReadOnly {
		if err := l.WatchHolds(); err != nil {
			return nil, fmt.Errorf("jetstream: %w", err)
		}
	}
	if conn.Opts.Grow && conn.Opts.Partitions > l.Partitions() {
		if err := l.Grow(ctx, conn.Opts.Partitions); err != nil {
			return nil, err
		}
	}
	return l, nil
}

func New(records *store.Store) *Maintenance {
	l := &Maintenance{Store: records, forgetFor: forgetBudget}
	for p := range l.sealers {
		l.sealers[p] = newSealer(records)
	}
	records.Appended = func(session string, expected, last uint64, stored []wire.Stored) {
		l.sealerOf(session).note(session, expected, last, stored)
	}
	return l
}

// Erase implements eventlog.Log. A message on helix.erased.<p>.<S> marks the session as
// to be erased, see store.Erasing. Then its tombstone is appended, a record of type erased:
// the session is not found any more, and no append after another record succeeds. If this call is
// interrupted from then on, FinishErasures does the rest.
func (l *Maintenance) Erase(ctx context.Context, session string) (eventlog.Erasure, error) {
	ctx, err := l.Frees(ctx)
	if err != nil {
		return eventlog.Erasure{}, err
	}
	only, _ := eventlog.HeadFrom(ctx, session)
	ctx = eventlog.WithHead(ctx, session, 0) // the head changes from here on
	tombstone, err := l.wantTombstone(ctx, session, only)
	if errors.Is(err, eventlog.ErrSessionNotFound) {
		tombstone, err = l.TombstoneOf(ctx, session) // it may have got one since the first check
	}
	if errors.Is(err, eventlog.ErrSessionNotFound) {
		if only > 0 { // the id may be another session's by now
			return eventlog.Erasure{}, err
		}
		return l.erased(ctx, session)
	}
	if errors.Is(err, wire.ErrDamaged) {
		return l.eraseUnreadable(ctx, session, only)
	}
	if err != nil {
		return eventlog.Erasure{}, err
	}
	return l.eraseTo(ctx, session, tombstone)
}

// eraseUnreadable erases a session whose last segment can't be unpacked, so that its head
// is unknown: everything of it is before the log's end, and is marked up to there. If only is
// not 0, the last erasure must not be that of the session with this record.
// Errors: ErrDamaged if more of it can't be read; the session stays wanted.
func (l *Maintenance) eraseUnreadable(ctx context.Context, session string, only uint64) (eventlog.Erasure, error) {
	if only > 0 {
		if e, err := l.ErasingOf(ctx, session); err != nil {
			return eventlog.Erasure{}, err
		} else if e.Tombstone > only {
			return eventlog.Erasure{}, eventlog.ErrSessionNotFound
		}
	}
	end, err := l.LastOf(ctx, layout.LogStream(l.PartitionOf(session)))
	if err != nil {
		return eventlog.Erasure{}, err
	}
	if err := l.Want(ctx, session, end); err != nil {
		return eventlog.Erasure{}, err
	}
	e, err := l.ErasingOf(ctx, session)
	if err == nil && e.Head > 0 {
		_, err = l.finishWanted(ctx, session, e)
	}
	if err != nil {
		return eventlog.Erasure{}, err
	}
	return l.erased(ctx, session)
}

// wantTombstone marks the session before it appends its tombstone, so that the erasure continues if this process ends.
// If only is not 0, the session must have this record.
func (l *Maintenance) wantTombstone(ctx context.Context, session string, only uint64) (uint64, error) {
	for {
		if at, err := l.TombstoneOf(ctx, session); !errors.Is(err, eventlog.ErrSessionNotFound) {
			return at, err
		}
		head, err := l.Head(ctx, session)
		if err != nil {
			return 0, err
		}
		// In this order: if the record is there, the head is of its session.
		if only > 0 {
			lives, err := l.Lives(ctx, session, only)
			if err != nil {
				return 0, err
			}
			if !lives {
				return 0, eventlog.ErrSessionNotFound
			}
		}
		if err := l.Want(ctx, session, head); err != nil {
			return 0, err
		}
		at, err := l.tombstone(ctx, session)
		if !errors.Is(err, eventlog.ErrSessionNotFound) {
			return at, err
		}
		// A node that is late may have marked an earlier session of the id since.
		if lives, lerr := l.Lives(ctx, session, head); lerr != nil || !lives {
			return 0, cmp.Or(lerr, err)
		}
	}
}

// tombstone returns the sequence of the session's erased record, which it appends if no node
// has. It is for the session that the mark names: meanwhile that one may have been
// erased, and its id be in use again. Errors: ErrSessionNotFound if the marked session
// does not exist.
func (l *Maintenance) tombstone(ctx context.Context, session string) (uint64, error) {
	held, release := ctx, func() {}
	defer func() { release() }()
	for {
		if at, err := l.TombstoneOf(ctx, session); !errors.Is(err, eventlog.ErrSessionNotFound) {
			return at, err
		}
		head, err := l.Head(ctx, session)
		if err != nil {
			return 0, err
		}
		// In this order: the append fails if the session with this head is gone by then.
		if wanted, err := l.wanted(ctx, session, head); err != nil {
			return 0, err
		} else if !wanted {
			return 0, eventlog.ErrSessionNotFound
		}
		erased, err := eventlog.NewFact(session, &fact.Erased{Base: fact.Base{
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

// wanted reports whether a mark states that the session with the given head must be
// erased.
func (l *Maintenance) wanted(ctx context.Context, session string, head uint64) (bool, error) {
	e, err := l.ErasingOf(ctx, session)
	if err != nil || e.Head == 0 || e.Head == head {
		return err == nil && e.Head > 0, err
	}
	return l.Lives(ctx, session, e.Head)
}
