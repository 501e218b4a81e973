package maintenance

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/internal/link"
	"github.com/helixd/helixd/eventlog/jetstream/internal/store"
	"github.com/helixd/helixd/eventlog/jetstream/internal/wire"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

// batchPatience is how long Ends waits for the rest of an atomic batch: a server stores a
// batch at once.
const batchPatience = 10 * time.Second

// Ends implements eventlog.Copier. It asks the streams' leaders.
func (l *Maintenance) Ends(ctx context.Context) ([]uint64, error) {
	ends := make([]uint64, l.Partitions())
	for p := range ends {
		var err error
		if ends[p], err = l.end(ctx, p); err != nil {
			return nil, err
		}
	}
	return ends, nil
}

// end returns a partition's last sequence, which is that of a complete append: a server
// stores the messages of an atomic batch one after the other, and may report its state
// meanwhile.
func (l *Maintenance) end(ctx context.Context, p int) (uint64, error) {
	for began := time.Now(); ; {
		last, err := l.LastOf(ctx, layout.LogStream(p))
		if err != nil || last == 0 {
			return 0, err
		}
		m, err := l.MessageAt(ctx, layout.LogStream(p), last)
		switch {
		case errors.Is(err, link.ErrNoMessage): // erased, or purged
			return last, nil
		case err != nil:
			return 0, err
		case wire.First(m.Header, wire.HeaderBatchID) == "" || wire.First(m.Header, wire.HeaderBatchCommit) != "":
			return last, nil
		case time.Since(began) > batchPatience:
			return 0, fmt.Errorf("%w: stream %s ends with message %d within an append: look for damage", eventlog.ErrIncomplete, layout.LogStream(p), last)
		}
		if !l.Pause(ctx) {
			return 0, context.Cause(ctx)
		}
	}
}

// Copy implements eventlog.Copier.
func (l *Maintenance) Copy(ctx context.Context, session string, upTo uint64) (floor uint64, records iter.Seq2[eventlog.Copied, error], err error) {
	head, err := l.Head(ctx, session)
	if err != nil {
		return 0, nil, err
	}
	if upTo == 0 { // a read would take 0 for the head
		return 0, func(func(eventlog.Copied, error) bool) {}, nil
	}
	// After the head: if retention removes more from now on, the read misses it and
	// fails.
	if floor, err = l.Floor(ctx, session); err != nil {
		return 0, nil, err
	}
	if floor >= upTo && floor > 0 {
		return 0, nil, &eventlog.TrimmedError{Cursor: upTo, Floor: floor}
	}
	return floor, func(yield func(eventlog.Copied, error) bool) {
		last := floor
		for r, err := range l.WithPayloads(ctx, session, l.ReadFrom(ctx, session, store.Cursor{At: floor, Known: floor > 0}, min(head, upTo))) {
			if errors.Is(err, store.ErrRecreated) {
				err = erasedAmid(session)
			}
			if !yield(eventlog.Copied{Record: r.Record, Unlinked: !r.Linked}, err) || err != nil {
				return
			}
			last = r.Sequence
		}
		if err := l.endsWith(ctx, session, last, head, upTo); err != nil {
			yield(eventlog.Copied{}, err)
		}
	}, nil
}

// erasedAmid is the error of a copy whose session was erased meanwhile; the id may be in
// use again.
func erasedAmid(session string) error {
	return fmt.Errorf("%w: the copy of session %q: %w", eventlog.ErrIncomplete, session, store.ErrRecreated)
}

// endsWith proves that last is the session's last record up to upTo. The read alone could
// mistake the first record of a session that was erased and created again meanwhile for
// the next one.
func (l *Maintenance) endsWith(ctx context.Context, session string, last, head, upTo uint64) error {
	if head <= upTo {
		if last != head {
			return l.unlessErased(ctx, session, head,
				fmt.Errorf("%w: the copy ends with %d, the head was %d", eventlog.ErrIncomplete, last, head))
		}
		return nil
	}
	for r, err := range l.ReadStored(ctx, session, last, 0) {
		if err == nil && r.Linked && r.Previous != last {
			err = l.unlessErased(ctx, session, head,
				fmt.Errorf("%w: %d was appended after %d, the copy ends with %d", eventlog.ErrIncomplete, r.Sequence, r.Previous, last))
		}
		return err
	}
	return nil
}

// unlessErased returns what is wrong with a copy, or that the session was erased since its
// head was read.
func (l *Maintenance) unlessErased(ctx context.Context, session string, head uint64, wrong error) error {
	if there, err := l.Lives(ctx, session, head); err == nil && !there {
		return erasedAmid(session)
	}
	return wrong
}
