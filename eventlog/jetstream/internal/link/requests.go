package link

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/helixd/helixd/eventlog/jetstream/internal/wire"
)

// requestTick is how often waiting requests are checked, and how late a timeout may be.
const requestTick = 100 * time.Millisecond

// requests passes each answer to its request. All requests of a log share one inbox, and
// one timer that runs while any of them waits: two timers and a context for each would
// cost an append a fifth of its time in this process.
type requests struct {
	log   *Link
	inbox string // ends with a dot
	sub   *nats.Subscription

	mu      sync.Mutex
	last    uint64
	waiting map[uint64]*pendingRequest // bounded by the waiting callers
	closed  bool
	timer   *time.Timer
}

// pendingRequest waits for one answer.
type pendingRequest struct {
	answer  chan *nats.Msg // nil: none will come
	began   time.Time
	timeout time.Duration
	back    <-chan struct{} // closed when the connection was lost and is back
}

func newRequests(l *Link) (*requests, error) {
	r := &requests{log: l, inbox: l.Conn.NewInbox() + ".", waiting: map[uint64]*pendingRequest{}}
	r.timer = time.AfterFunc(time.Hour, r.tick)
	r.timer.Stop()
	var err error
	if r.sub, err = l.Conn.Subscribe(r.inbox+"*", r.take); err != nil {
		return nil, fmt.Errorf("jetstream: %w", err)
	}
	return r, nil
}

// close ends all requests: their answers would not be received any more.
func (r *requests) close() {
	_ = r.sub.Unsubscribe() // fails only on a closed connection
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	r.timer.Stop()
	for _, w := range r.waiting {
		w.answer <- nil
	}
	clear(r.waiting)
}

func (r *requests) isClosed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.closed || r.log.Conn.IsClosed()
}

// take receives an answer. It drops one that no request waits for any more.
func (r *requests) take(m *nats.Msg) {
	id, err := strconv.ParseUint(m.Subject[len(r.inbox):], 36, 64)
	if err != nil {
		return
	}
	r.mu.Lock()
	w := r.waiting[id]
	delete(r.waiting, id)
	r.mu.Unlock()
	if w != nil {
		w.answer <- m
	}
}

// add returns a new request, nil after close.
func (r *requests) add(timeout time.Duration) (id uint64, w *pendingRequest) {
	w = &pendingRequest{answer: make(chan *nats.Msg, 1), began: time.Now(), timeout: timeout, back: r.log.Reconnected()}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return 0, nil
	}
	r.last++
	if len(r.waiting) == 0 {
		r.timer.Reset(requestTick)
	}
	r.waiting[r.last] = w
	return r.last, w
}

func (r *requests) drop(id uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.waiting, id)
}

// tick ends the requests whose answers are late.
func (r *requests) tick() {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, w := range r.waiting {
		if r.log.Conn.IsClosed() || r.log.late(now.Sub(w.began), w.timeout, w.back) {
			delete(r.waiting, id)
			w.answer <- nil
		}
	}
	if len(r.waiting) > 0 {
		r.timer.Reset(requestTick)
	}
}

// late reports whether an answer that has been awaited for so long must count as lost.
// The answer of a server without a cluster can't be lost while the connection holds: its
// disk, or the machine, is stuck, and it has up to LeaderPatience.
func (l *Link) late(waited, timeout time.Duration, back <-chan struct{}) bool {
	if waited < timeout {
		return false
	}
	if !l.alone || waited >= LeaderPatience || !l.Conn.IsConnected() {
		return true
	}
	select {
	case <-back:
		return true
	default:
		return false
	}
}

// Request sends m and returns the answer. Errors: nats.ErrTimeout, nats.ErrNoResponders,
// nats.ErrConnectionClosed, also if the log was closed, those of a publish, and ctx's.
func (l *Link) Request(ctx context.Context, m *nats.Msg, timeout time.Duration) (*nats.Msg, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	id, w := l.requests.add(timeout)
	if w == nil {
		return nil, nats.ErrConnectionClosed
	}
	defer l.requests.drop(id)
	m.Reply = l.requests.inbox + strconv.FormatUint(id, 36)
	err := l.Conn.PublishMsg(m)
	m.Reply = "" // it may be sent again, in a batch
	if err != nil {
		return nil, err
	}
	select {
	case answer := <-w.answer:
		switch {
		case answer != nil && len(answer.Data) == 0 && wire.First(answer.Header, wire.HeaderStatus) == "503":
			return nil, nats.ErrNoResponders
		case answer != nil:
			return answer, nil
		case l.requests.isClosed():
			return nil, nats.ErrConnectionClosed
		}
		return nil, nats.ErrTimeout
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
