package live

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/internal/link"
	"github.com/helixd/helixd/eventlog/jetstream/internal/store"
	"github.com/helixd/helixd/eventlog/jetstream/internal/wire"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

const (
	// feedBuffer is how many messages of a session may wait in this node. Further ones
	// are dropped, and followers read them from the log.
	feedBuffer = 64
	// readerBuffer is how many records may wait for one follower. It reads further ones
	// from the log.
	readerBuffer = 64
)

// hub passes the live records of a partition's sessions to this node's followers, with
// one subscription per session.
type hub struct {
	log       *store.Store
	partition int

	mu            sync.Mutex
	subscriptions map[string]*subscription // by session
	known         uint64                   // the partition's last sequence, as of the last check
}

// subscription is the subscription to one session.
type subscription struct {
	session string
	ready   chan struct{} // closed when the server knows the subscription, or err is set
	err     error
	stop    chan struct{} // closed when the last follower has left
	sub     *nats.Subscription
	live    chan *nats.Msg
	last    atomic.Uint64 // the last live record
	found   atomic.Uint64 // the last record that a check has found
	check   feedCheck
	// delivered is the last record that deliver has passed on.
	delivered atomic.Uint64

	mu        sync.Mutex
	followers map[*follower]struct{}
}

// follower is one follower of a subscription. It never delays the subscription: a record
// that does not fit its buffer is dropped, and behind is set.
type follower struct {
	of      *subscription
	records chan *liveRecord
	behind  atomic.Bool   // the log has records that were not put into records
	wake    chan struct{} // wakes a waiting follower to check behind

	without string // the writer whose records it does not get, or ""

	// Guarded by of.mu.
	seen uint64 // it has the records up to this one, receives them, or is behind; 0: not known
	left span   // the last records that it did not get
}

// span is a session's records after one and up to another.
type span struct{ after, last uint64 }

// liveRecord is a record and its predecessor's sequence. A follower that has any record
// since has all before this one.
type liveRecord struct {
	eventlog.Record
	since, previous uint64
}

func newHub(l *store.Store, partition int) *hub {
	return &hub{log: l, partition: partition, subscriptions: map[string]*subscription{}}
}

func (l *Live) hubOf(session string) *hub { return l.hubs[l.PartitionOf(session)] }

// join returns a follower that receives everything from now on, but for what
// [eventlog.WithoutWriter] leaves out. The caller leaves with the returned function.
func (h *hub) join(ctx context.Context, session string) (*follower, func(), error) {
	h.mu.Lock()
	f := h.subscriptions[session]
	if f == nil {
		f = &subscription{
			session: session, ready: make(chan struct{}), stop: make(chan struct{}),
			live: make(chan *nats.Msg, feedBuffer), followers: map[*follower]struct{}{},
		}
		if !h.log.Spawn(func() { h.open(f) }) {
			h.mu.Unlock()
			return nil, nil, eventlog.ErrClosed
		}
		h.subscriptions[session] = f
		h.log.Metrics.Subscribed(1)
	}
	r := &follower{
		of: f, records: make(chan *liveRecord, readerBuffer), wake: make(chan struct{}, 1),
		without: eventlog.WriterLeftOut(ctx),
	}
	f.mu.Lock()
	f.followers[r] = struct{}{}
	f.mu.Unlock()
	h.mu.Unlock()

	leave := func() { h.leave(f, r) }
	select {
	case <-f.ready:
		if f.err != nil {
			leave()
			return nil, nil, f.err
		}
		return r, leave, nil
	case <-ctx.Done():
		leave()
		return nil, nil, context.Cause(ctx)
	}
}

func (h *hub) leave(f *subscription, r *follower) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.followers, r)
	if len(f.followers) == 0 && h.subscriptions[f.session] == f {
		h.drop(f)
		close(f.stop)
	}
}

// drop removes a subscription. The caller holds the lock.
func (h *hub) drop(f *subscription) {
	delete(h.subscriptions, f.session)
	h.log.Metrics.Subscribed(-1)
}

// open subscribes, and starts run in a goroutine: requests to the server need a deep
// stack, and there is one run per session. A subscription that fails accepts no more
// followers.
func (h *hub) open(f *subscription) {
	err := h.subscribe(f)
	if err == nil && !h.log.Spawn(func() { h.run(f) }) {
		err = eventlog.ErrClosed
	}
	if err == nil {
		return
	}
	h.mu.Lock()
	f.err = err
	if h.subscriptions[f.session] == f {
		h.drop(f)
	}
	h.mu.Unlock()
	close(f.ready)
}

// run passes records on until the last follower has left.
func (h *hub) run(f *subscription) {
	defer f.sub.Unsubscribe() //nolint:errcheck // fails only on a closed connection
	h.mu.Lock()
	f.check = feedCheck{mark: h.known, asked: time.Now()} // followers read earlier records from the log
	h.mu.Unlock()
	back := h.log.Reconnected()
	close(f.ready)
	dropped := 0
	for {
		// The client drops messages that arrive while the buffer is full. If they were
		// the last ones, no later message shows the gap.
		if len(f.live) == 0 {
			if n, err := f.sub.Dropped(); err == nil && n != dropped {
				dropped = n
				f.allBehind()
			}
		}
		select {
		case m := <-f.live:
			if seq, err := wire.SequenceOf(m); err == nil && seq <= f.delivered.Load() {
				continue // this node has appended it
			}
			r, err := wire.RecordOf(m.Header, m.Data)
			if err != nil {
				f.allBehind() // not a log's message; followers read the log
				continue
			}
			link.Raise(&f.last, r.Sequence)
			if r.Blob == "" {
				r.Entry = r.DecodeOnce() // once for all followers
			}
			f.handOut(r, wire.LastSequence(m.Header))
		case <-back:
			back = h.log.Reconnected() // first, since the next reconnect may come meanwhile
			f.allBehind()
		case <-f.stop:
			return
		case <-h.log.Closed:
			return
		}
	}
}

func (h *hub) subscribe(f *subscription) error {
	var err error
	if f.sub, err = h.log.Conn.ChanSubscribe(layout.LiveSubject(f.session), f.live); err != nil {
		return fmt.Errorf("jetstream: follow: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), link.LeaderPatience)
	defer cancel()
	if err := h.log.Conn.FlushWithContext(ctx); err != nil {
		f.sub.Unsubscribe() //nolint:errcheck // the flush's error counts
		return fmt.Errorf("jetstream: follow: %w", err)
	}
	return nil
}

// deliver passes an append of this node to its followers of the session, and returns how
// many subscriptions they share: none or one.
func (h *hub) deliver(a *store.PendingAppend, last uint64, now time.Time) (subscriptions int) {
	h.mu.Lock()
	f := h.subscriptions[a.Session]
	h.mu.Unlock()
	if f == nil {
		return 0
	}
	at, previous := last+1-uint64(len(a.Records)), a.Expected
	for _, r := range a.Records {
		r.Sequence, r.Time = at, now
		link.Raise(&f.last, at)
		f.handOut(r, previous)
		link.Raise(&f.delivered, at) // only now: run leaves out what is handed out, never what will be
		at, previous = at+1, at
	}
	select {
	case <-f.ready:
		return 1
	default:
		return 0
	}
}

func (f *subscription) handOut(r wire.Stored, previous uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all *liveRecord // for those that want every record
	for to := range f.followers {
		missed := to.seen > 0 && previous > to.seen
		to.seen = max(to.seen, r.Sequence)
		if to.without != "" && to.without == r.Writer {
			to.leaveOut(r.Sequence, previous)
			if missed { // it sees the gap in what it receives, and may receive nothing for long
				to.fallBehind()
			}
			continue
		}
		if r.Blob != "" {
			to.fallBehind() // it fetches it when it gets there
			continue
		}
		if all == nil {
			all = &liveRecord{Record: r.Record, since: previous, previous: previous}
		}
		live := all
		if to.left.after > 0 && to.left.last == previous {
			live = &liveRecord{Record: r.Record, since: to.left.after, previous: previous}
		}
		select {
		case to.records <- live:
		default:
			to.fallBehind()
		}
	}
}

// leaveOut notes that the follower does not get a record. The caller holds of.mu.
func (r *follower) leaveOut(sequence, previous uint64) {
	if sequence <= r.left.last { // this node's own, come back from the server
		return
	}
	if r.left.last != previous {
		r.left.after = previous
	}
	r.left.last = sequence
}

// begin notes that the follower has read up to at, and listens from now on.
func (r *follower) begin(at uint64) {
	r.of.mu.Lock()
	defer r.of.mu.Unlock()
	r.seen = max(r.seen, at)
	if r.left.after > at { // what is before may be lost
		r.fallBehind()
	}
}

// past returns the sequence up to which a follower that has read up to at has everything.
func (r *follower) past(at uint64) uint64 {
	r.of.mu.Lock()
	defer r.of.mu.Unlock()
	if r.left.after > 0 && r.left.after <= at && at < r.left.last {
		return r.left.last
	}
	return at
}

// allBehind makes all followers read from the log.
func (f *subscription) allBehind() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for r := range f.followers {
		r.fallBehind()
	}
}

// newest returns the last record of the session of which this node knows.
func (f *subscription) newest() uint64 { return max(f.last.Load(), f.found.Load()) }

func (r *follower) fallBehind() {
	r.behind.Store(true)
	select {
	case r.wake <- struct{}{}:
	default:
	}
}
