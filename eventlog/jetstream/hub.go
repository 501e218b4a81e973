package jetstream

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/helixd/helixd/eventlog"
)

const (
	// feedBuffer is how many messages of a session may wait for this node to
	// hand them out. More are dropped and read from the log again.
	feedBuffer = 64
	// readerBuffer is how many records a reader may leave unread. More are
	// not kept for it: it reads them from the log.
	readerBuffer = 64
	// A session that is silent is asked for its head, since a lost last
	// message leaves no gap to be seen: first after minIdleCheck, then less
	// and less often, at least every maxIdleCheck.
	minIdleCheck = 1500 * time.Millisecond
	maxIdleCheck = time.Minute
)

// hub hands the live records of sessions to this node's readers: one
// subscription a session, however many follow it.
type hub struct {
	log       *Log
	idleCheck time.Duration // the first one's, minIdleCheck but in tests

	mu    sync.Mutex
	feeds map[string]*feed // by session
}

// feed is the subscription of one session.
type feed struct {
	session string
	ready   chan struct{} // closed when the server knows the subscription, or err is set
	err     error
	stop    chan struct{} // closed when the last reader has left
	sub     *nats.Subscription
	live    chan *nats.Msg
	heads   chan headAnswer // of idle checks

	mu      sync.Mutex
	readers map[*reader]struct{}
}

// reader is a follower's place at a feed. It never holds up the feed: what
// does not fit is left out, and behind says so.
type reader struct {
	records chan *liveRecord
	behind  atomic.Bool   // there is more in the log than came through records
	wake    chan struct{} // tells a waiting reader to look at behind
}

// liveRecord is a record and its predecessor's sequence.
type liveRecord struct {
	eventlog.Record
	previous uint64
}

func newHub(l *Log) *hub { return &hub{log: l, idleCheck: minIdleCheck, feeds: map[string]*feed{}} }

// join returns a reader of everything that the session gets from now on. The
// caller leaves with the returned function.
func (h *hub) join(ctx context.Context, session string) (*reader, func(), error) {
	r := &reader{records: make(chan *liveRecord, readerBuffer), wake: make(chan struct{}, 1)}
	h.mu.Lock()
	f := h.feeds[session]
	if f == nil {
		f = &feed{
			session: session, ready: make(chan struct{}), stop: make(chan struct{}),
			live: make(chan *nats.Msg, feedBuffer), heads: make(chan headAnswer, 1), readers: map[*reader]struct{}{},
		}
		if !h.log.spawn(func() { h.open(f) }) {
			h.mu.Unlock()
			return nil, nil, eventlog.ErrClosed
		}
		h.feeds[session] = f
		h.log.metrics.subscribed(1)
	}
	f.mu.Lock()
	f.readers[r] = struct{}{}
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

func (h *hub) leave(f *feed, r *reader) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.readers, r)
	if len(f.readers) == 0 && h.feeds[f.session] == f {
		h.drop(f)
		close(f.stop)
	}
}

// drop removes a feed that is there. The caller has the lock.
func (h *hub) drop(f *feed) {
	delete(h.feeds, f.session)
	h.log.metrics.subscribed(-1)
}

// open subscribes and has run do the rest, in a goroutine of its own: what
// talks to the server needs a deep stack, and there is one run a session. A
// feed that can't subscribe takes no more readers.
func (h *hub) open(f *feed) {
	err := h.subscribe(f)
	if err == nil && !h.log.spawn(func() { h.run(f) }) {
		err = eventlog.ErrClosed
	}
	if err == nil {
		return
	}
	h.mu.Lock()
	f.err = err
	if h.feeds[f.session] == f {
		h.drop(f)
	}
	h.mu.Unlock()
	close(f.ready)
}

// headAnswer is what an idle check found.
type headAnswer struct {
	head uint64
	err  error
}

// run hands out until the last reader has left.
func (h *hub) run(f *feed) {
	defer f.sub.Unsubscribe() //nolint:errcheck // fails only on a closed connection
	close(f.ready)
	every := h.idleCheck
	idle := time.NewTimer(every)
	defer idle.Stop()
	dropped, last := 0, uint64(0)
	for {
		// The client drops what comes in while the buffer is full. If these
		// were the last messages, no later one shows the gap.
		if len(f.live) == 0 {
			if n, err := f.sub.Dropped(); err == nil && n != dropped {
				dropped = n
				f.allBehind()
			}
		}
		select {
		case m := <-f.live:
			r, err := recordOf(m.Header, m.Data)
			if err != nil {
				f.allBehind() // whatever that was, the log knows better
				continue
			}
			last = r.Sequence
			if r.blob != "" {
				f.allBehind() // each fetches it when it gets there
				continue
			}
			f.handOut(&liveRecord{Record: r.Record, previous: lastSequence(m.Header)})
			every = h.idleCheck
		case <-idle.C:
			h.log.spawn(func() {
				head, err := h.log.Head(context.Background(), f.session)
				select {
				case f.heads <- headAnswer{head, err}:
				default: // nobody has looked at the one before
				}
			})
			every = min(2*every, maxIdleCheck)
		case a := <-f.heads:
			if a.err != nil || a.head > last {
				last = max(last, a.head)
				f.allBehind()
			}
			continue // it says nothing about how idle the session is
		case <-h.log.reconnected():
			f.allBehind()
		case <-f.stop:
			return
		case <-h.log.closed:
			return
		}
		idle.Reset(every)
	}
}

func (h *hub) subscribe(f *feed) error {
	var err error
	if f.sub, err = h.log.nc.ChanSubscribe(LiveSubject(f.session), f.live); err != nil {
		return fmt.Errorf("jetstream: follow: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), leaderPatience)
	defer cancel()
	if err := h.log.nc.FlushWithContext(ctx); err != nil {
		f.sub.Unsubscribe() //nolint:errcheck // the flush's error counts
		return fmt.Errorf("jetstream: follow: %w", err)
	}
	return nil
}

func (f *feed) handOut(r *liveRecord) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for to := range f.readers {
		select {
		case to.records <- r:
		default:
			to.fallBehind()
		}
	}
}

// allBehind sends all readers to the log.
func (f *feed) allBehind() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for r := range f.readers {
		r.fallBehind()
	}
}

func (r *reader) fallBehind() {
	r.behind.Store(true)
	select {
	case r.wake <- struct{}{}:
	default:
	}
}
