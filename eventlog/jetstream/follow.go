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
	live, leave, err := l.hub.join(ctx, session)
	if err != nil {
		return err
	}
	defer leave()
	l.metrics.followed(1)
	defer l.metrics.followed(-1)
	last := from
	catchUp := func(cause string) error {
		live.behind.Store(false)
		read := 0
		defer func() { l.metrics.catchUp(cause, read) }()
		for r, err := range l.Read(ctx, session, last, 0) {
			if err != nil {
				return err
			}
			if !yield(r, nil) {
				return errStopped
			}
			last = r.Sequence
			read++
		}
		return nil
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
			case r.Sequence <= last:
			case r.previous != last: // a gap
				if err := catchUp(causeGap); err != nil {
					return err
				}
			case r.Kind == eventlog.KindFact && r.Type == erasedType: // as isErased
				return eventlog.ErrSessionNotFound
			default:
				if !yield(r.Record, nil) {
					return nil
				}
				last = r.Sequence
			}
		case <-live.wake:
		case <-l.closed:
			return eventlog.ErrClosed
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
