package jetstream

import (
	"context"
	"errors"
	"iter"
	"sync"
	"time"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/internal/wire"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

// live hands live records to followers.
type live struct {
	*store
	hubs [layout.MaxPartitions]*hub // one for each partition that there can be
}

func newLive(records *store) *live {
	l := &live{store: records}
	for p := range l.hubs {
		l.hubs[p] = newHub(records, p)
	}
	records.deliver = l.deliver
	return l
}

// start has the hubs look for lost records until the log is closed.
func (l *live) start() {
	watch := func(p int, _ uint64) {
		if l.opts.hook == nil {
			l.spawn(l.hubs[p].watch)
		}
	}
	for p := range l.Partitions() {
		watch(p, 0)
	}
	l.onPartition = append(l.onPartition, watch)
}

func (l *live) deliver(a *pendingAppend, last uint64, now time.Time) (subscriptions int) {
	return l.hubOf(a.session).deliver(a, last, now)
}

// Follow implements eventlog.Log: join the hub, catch up from the log, go on
// by sequence. A record names its predecessor, so a loss is seen and read
// from the log.
func (l *live) Follow(ctx context.Context, session string, from uint64) iter.Seq2[eventlog.Record, error] {
	return func(yield func(eventlog.Record, error) bool) {
		if err := l.follow(ctx, session, from, yield); err != nil && !errors.Is(err, errStopped) {
			yield(eventlog.Record{}, err)
		}
	}
}

func (l *live) follow(ctx context.Context, session string, from uint64, yield func(eventlog.Record, error) bool) error {
	if _, _, err := l.place(session); err != nil {
		return err
	}
	live, leave, err := l.join(ctx, session)
	if err != nil {
		return err
	}
	defer leave()
	at := cursor{at: from, resumed: true}
	if err := l.catchUpLive(ctx, session, live, causeJoin, &at, yield); err != nil {
		return err
	}
	return l.listen(ctx, session, live, at, yield)
}

// join has a reader get what is live of a session until it leaves.
func (l *live) join(ctx context.Context, session string) (*reader, func(), error) {
	live, leave, err := l.hubOf(session).join(ctx, session)
	if err != nil {
		return nil, nil, err
	}
	l.metrics.followed(1)
	return live, sync.OnceFunc(func() {
		leave()
		l.metrics.followed(-1)
	}), nil
}

// Attach implements eventlog.Attacher. The reader joins before the head is read, so
// that what is stored after that comes live, and nothing needs to be caught up.
func (l *live) Attach(ctx context.Context, session string) (eventlog.Attachment, error) {
	if _, _, err := l.place(session); err != nil {
		return eventlog.Attachment{}, err
	}
	live, leave, err := l.join(ctx, session)
	if err != nil {
		return eventlog.Attachment{}, err
	}
	head, err := l.Head(ctx, session)
	if err != nil {
		leave()
		return eventlog.Attachment{}, err
	}
	return eventlog.Attachment{Head: head, Leave: leave, Follow: func(ctx context.Context) iter.Seq2[eventlog.Record, error] {
		return func(yield func(eventlog.Record, error) bool) {
			err := l.listen(ctx, session, live, cursor{at: head, known: true}, yield)
			if err != nil && !errors.Is(err, errStopped) {
				yield(eventlog.Record{}, err)
			}
		}
	}}, nil
}

// listen hands out what comes live after at, and reads from the log what is lost on
// the way.
func (l *live) listen(ctx context.Context, session string, live *reader, at cursor, yield func(eventlog.Record, error) bool) error {
	catchUp := func(cause string) error { return l.catchUpLive(ctx, session, live, cause, &at, yield) }
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
			case r.Kind == eventlog.KindFact && r.Type == wire.ErasedType: // as isErased
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

// catchUpLive is catchUp for a reader of what is live.
func (l *live) catchUpLive(ctx context.Context, session string, live *reader, cause string, at *cursor, yield func(eventlog.Record, error) bool) error {
	live.behind.Store(false)
	read, err := l.catchUp(ctx, session, at, yield)
	l.metrics.catchUp(cause, read)
	return err
}

// catchUp hands out what the log has after a follower's cursor, which it moves,
// and returns how many records those are.
func (l *live) catchUp(ctx context.Context, session string, at *cursor, yield func(eventlog.Record, error) bool) (n int, err error) {
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
