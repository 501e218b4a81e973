package jetstream

import (
	"context"
	"errors"
	"iter"

	"github.com/helixd/helixd/eventlog"
)

// Follow implements eventlog.Log: join the hub, catch up from the log, go on
// by sequence. A record names its predecessor, so a loss is seen and read
// from the log.
func (l *Log) Follow(ctx context.Context, session string, from uint64) iter.Seq2[eventlog.Record, error] {
	return func(yield func(eventlog.Record, error) bool) {
		if err := l.follow(ctx, session, from, yield); err != nil && !errors.Is(err, errStopped) {
			yield(eventlog.Record{}, err)
		}
	}
}

// errStopped tells that the consumer wants no more.
var errStopped = errors.New("jetstream: stopped")

func (l *Log) follow(ctx context.Context, session string, from uint64, yield func(eventlog.Record, error) bool) error {
	if _, _, err := l.place(session); err != nil {
		return err
	}
	live, leave, err := l.hubOf(session).join(ctx, session)
	if err != nil {
		return err
	}
	defer leave()
	l.metrics.followed(1)
	defer l.metrics.followed(-1)
	at := cursor{at: from, resumed: true}
	catchUp := func(cause string) error {
		live.behind.Store(false)
		read, err := l.catchUp(ctx, session, &at, yield)
		l.metrics.catchUp(cause, read)
		return err
	}
	if err := catchUp(causeJoin); err != nil {
		return err
	}
	for {
		// What is buffered comes first: it may be all that is missing.
		if len(live.records) == 0 && live.behind.Load() {
			if err := catchUp(causeBehind); err != nil {
				return err
			}
		}
		select {
		case r := <-live.records:
			switch {
			case r.Sequence <= at.at:
			case r.previous != at.at: // a gap
				if err := catchUp(causeGap); err != nil {
					return err
				}
			case r.Kind == eventlog.KindFact && r.Type == erasedType: // as isErased
				return eventlog.ErrSessionNotFound
			default:
				if !yield(r.Record, nil) {
					return nil
				}
				at = cursor{at: r.Sequence, known: true}
			}
		case <-live.wake:
		case <-l.closed:
			return eventlog.ErrClosed
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// catchUp hands out what the log has after a follower's cursor, which it moves,
// and returns how many records those are.
func (l *Log) catchUp(ctx context.Context, session string, at *cursor, yield func(eventlog.Record, error) bool) (n int, err error) {
	for r, err := range l.withPayloads(ctx, session, l.readFrom(ctx, session, *at, 0)) {
		if err != nil {
			return n, err
		}
		if !yield(r.Record, nil) {
			return n, errStopped
		}
		*at = cursor{at: r.Sequence, known: true}
		n++
	}
	return n, nil
}
