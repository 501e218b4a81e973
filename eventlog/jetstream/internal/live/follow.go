package live

import (
	"context"
	"errors"
	"iter"
	"sync"
	"time"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/internal/link"
	"github.com/helixd/helixd/eventlog/jetstream/internal/metrics"
	"github.com/helixd/helixd/eventlog/jetstream/internal/store"
	"github.com/helixd/helixd/eventlog/jetstream/internal/wire"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

// Live passes live records to followers.
type Live struct {
	*store.Store
	hubs [layout.MaxPartitions]*hub // one for each possible partition
}

func New(records *store.Store) *Live {
	l := &Live{Store: records}
	for p := range l.hubs {
		l.hubs[p] = newHub(records, p)
	}
	records.Deliver = l.deliver
	return l
}

// Start makes the hubs check for lost records until the log is closed.
func (l *Live) Start() {
	watch := func(p int, _ uint64) {
		if l.Opts.Hook == nil {
			l.Spawn(l.hubs[p].watch)
		}
	}
	for p := range l.Partitions() {
		watch(p, 0)
	}
	l.OnPartition = append(l.OnPartition, watch)
}

func (l *Live) deliver(a *store.PendingAppend, last uint64, now time.Time) (subscriptions int) {
	return l.hubOf(a.Session).deliver(a, last, now)
}

// Follow implements [jetstream.Log.Follow]: it joins the hub, catches up from the log, and
// continues by sequence.
func (l *Live) Follow(ctx context.Context, session string, from uint64) iter.Seq2[eventlog.Record, error] {
	return func(yield func(eventlog.Record, error) bool) {
		if err := l.follow(ctx, session, from, yield); err != nil && !errors.Is(err, link.ErrStopped) {
			yield(eventlog.Record{}, err)
		}
	}
}

func (l *Live) follow(ctx context.Context, session string, from uint64, yield func(eventlog.Record, error) bool) error {
	if _, _, err := l.Place(session); err != nil {
		return err
	}
	live, leave, err := l.join(ctx, session)
	if err != nil {
		return err
	}
	defer leave()
	at := store.Cursor{At: from, Resumed: true}
	if err := l.catchUpLive(ctx, session, live, metrics.CauseJoin, &at, yield); err != nil {
		return err
	}
	return l.listen(ctx, session, live, at, yield)
}

// join makes a follower receive a session's live records until it leaves.
func (l *Live) join(ctx context.Context, session string) (*follower, func(), error) {
	live, leave, err := l.hubOf(session).join(ctx, session)
	if err != nil {
		return nil, nil, err
	}
	l.Metrics.Followed(1)
	return live, sync.OnceFunc(func() {
		leave()
		l.Metrics.Followed(-1)
	}), nil
}

// Attach implements eventlog.Attacher. The follower joins before the head is read, so
// that later records arrive live and none has to be caught up.
func (l *Live) Attach(ctx context.Context, session string) (eventlog.Attachment, error) {
	if _, _, err := l.Place(session); err != nil {
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
			err := l.listen(ctx, session, live, store.Cursor{At: head, Known: true}, yield)
			if err != nil && !errors.Is(err, link.ErrStopped) {
				yield(eventlog.Record{}, err)
			}
		}
	}}, nil
}

// listen yields the live records after at, and reads lost ones from the log. A server
// that does not lead the stream any more may answer without the newest ones, and no later
// one may come: it reads again until it has them, or the answer certainly was the
// leader's. Then they do not exist any more.
func (l *Live) listen(ctx context.Context, session string, live *follower, at store.Cursor, yield func(eventlog.Record, error) bool) error {
	stream, _, err := l.Place(session)
	if err != nil {
		return err
	}
	var again <-chan time.Time // read again then
	waited := false            // this is then
	catchUp := func(cause string) error {
		newest := live.of.newest()
		if err := l.catchUpLive(ctx, session, live, cause, &at, yield); err != nil {
			return err
		}
		again = nil
		if l.Opts.Replicas > 1 && at.At < newest && !(waited && l.Leads(ctx, stream)) {
			again = time.After(link.NewsTime)
		}
		waited = false
		return nil
	}
	live.begin(at.At)
	for {
		// Buffered records come first: they may be all that is missing.
		if len(live.records) == 0 && live.behind.Load() {
			if err := catchUp(metrics.CauseBehind); err != nil {
				return err
			}
		}
		select {
		case r := <-live.records:
			switch {
			case r.Sequence <= at.At:
			case at.At < r.since || at.At > r.previous: // a gap
				if err := catchUp(metrics.CauseGap); err != nil {
					return err
				}
			case r.Kind == eventlog.KindFact && r.Type == wire.ErasedType: // a tombstone, see wire.IsErased
				return eventlog.ErrSessionNotFound
			default:
				if !yield(r.Record, nil) {
					return nil
				}
				at = store.Cursor{At: r.Sequence, Known: true}
			}
		case <-live.wake:
		case <-again:
			waited = true
			live.behind.Store(true)
		case <-l.Closed:
			return eventlog.ErrClosed
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// catchUpLive is CatchUp for a follower of live records.
func (l *Live) catchUpLive(ctx context.Context, session string, live *follower, cause string, at *store.Cursor, yield func(eventlog.Record, error) bool) error {
	live.behind.Store(false)
	if at.Known {
		at.At = live.past(at.At)
	}
	read, err := l.CatchUp(ctx, session, at, func(r eventlog.Record, err error) bool {
		return live.without != "" && live.without == r.Writer || yield(r, err)
	})
	l.Metrics.CatchUp(cause, read)
	return err
}

// CatchUp yields the log's records after a follower's cursor, which it moves, and returns
// how many there were.
func (l *Live) CatchUp(ctx context.Context, session string, at *store.Cursor, yield func(eventlog.Record, error) bool) (n int, err error) {
	for r, err := range l.WithPayloads(ctx, session, l.ReadFrom(ctx, session, *at, 0)) {
		if err != nil {
			return n, err
		}
		if !yield(r.Record, nil) {
			return n, link.ErrStopped
		}
		*at = store.Cursor{At: r.Sequence, Known: true}
		n++
	}
	return n, nil
}
