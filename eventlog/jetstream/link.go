package jetstream

import (
	"fmt"
	"sync"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"
)

// link is a log's connection: requests, their retries, and the goroutines that end with it.
type link struct {
	nc       *nats.Conn
	js       natsjs.JetStream
	opts     options
	requests *requests
	batches  map[string]chan struct{} // by what its subjects begin with, a place for each atomic batch that a stream has open
	synced   synced
	version  string // of a server that is known to be good
	alone    bool   // no other server is there, nor elections
	closed   chan struct{}
	wg       sync.WaitGroup

	mu   sync.Mutex
	back chan struct{} // closed and replaced when the connection is back
}

// newLink returns the link on nc. The caller closes it.
func newLink(nc *nats.Conn, o options) (*link, error) {
	l := &link{nc: nc, opts: o, closed: make(chan struct{}), batches: map[string]chan struct{}{}, back: make(chan struct{})}
	js, err := newJetStream(nc)
	if err != nil {
		return nil, fmt.Errorf("jetstream: %w", err)
	}
	l.js = js
	if l.requests, err = newRequests(l); err != nil {
		return nil, err
	}
	if err := l.checkConnected(); err != nil {
		l.requests.close()
		return nil, err
	}
	l.alone = isAlone(nc)
	return l, nil
}

// watchConnection tells the hub of every reconnect: what was published
// meanwhile has not come.
func (l *link) watchConnection() {
	status := l.nc.StatusChanged(nats.CONNECTED)
	l.spawn(func() {
		defer l.nc.RemoveStatusListener(status)
		for {
			select {
			case _, ok := <-status:
				if !ok {
					return
				}
				l.mu.Lock()
				close(l.back)
				l.back = make(chan struct{})
				l.mu.Unlock()
			case <-l.closed:
				return
			}
		}
	})
}

func (l *link) reconnected() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.back
}

// Close ends what the log does, and waits for it. It is idempotent.
func (l *link) Close() error {
	l.mu.Lock()
	if !l.isClosing() {
		close(l.closed)
	}
	l.mu.Unlock()
	l.wg.Wait()
	l.requests.close()
	return nil
}

func (l *link) isClosed() bool { return l.isClosing() || l.nc.IsClosed() }

func (l *link) isClosing() bool {
	select {
	case <-l.closed:
		return true
	default:
		return false
	}
}

// spawn runs f in a goroutine that Close waits for; not once it is closed.
func (l *link) spawn(f func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isClosing() {
		return false
	}
	l.wg.Go(f)
	return true
}
