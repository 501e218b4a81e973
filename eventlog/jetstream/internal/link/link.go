package link

import (
	"context"
	"fmt"
	"sync"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"
)

// Link is a log's connection: requests, their retries, and the goroutines that end with
// it. It may be used from many goroutines.
type Link struct {
	Conn     *nats.Conn
	JS       natsjs.JetStream
	Opts     Options
	requests *requests
	batches  map[string]chan struct{} // by subject prefix: a slot for each open atomic batch of a stream
	synced   synced
	version  string // the last server version that was accepted
	alone    bool   // the server is in no cluster, so there are no elections
	Closed   chan struct{}
	wg       sync.WaitGroup

	mu   sync.Mutex
	back chan struct{} // closed and replaced when the connection is back
}

// New returns the link on nc. The caller closes it.
func New(ctx context.Context, nc *nats.Conn, o Options) (*Link, error) {
	o.Partitions, o.Replicas = max(o.Partitions, 0), max(o.Replicas, 1)
	if o.Server == nil {
		o.Server = syncingServer(nc)
	}
	o.Tuning, _ = ctx.Value(tuningKey{}).(Tuning)
	l := &Link{Conn: nc, Opts: o, Closed: make(chan struct{}), batches: map[string]chan struct{}{}, back: make(chan struct{})}
	js, err := NewJetStream(nc)
	if err != nil {
		return nil, fmt.Errorf("jetstream: %w", err)
	}
	l.JS = js
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

// WatchConnection notifies the hub of every reconnect: messages that were published
// meanwhile were lost.
func (l *Link) WatchConnection() {
	status := l.Conn.StatusChanged(nats.CONNECTED)
	l.Spawn(func() {
		defer l.Conn.RemoveStatusListener(status)
		for {
			select {
			case _, ok := <-status:
				if !ok {
					return
				}
				l.NoteReconnect()
			case <-l.Closed:
				return
			}
		}
	})
}

// NoteReconnect notifies all that wait for it that the connection is back.
func (l *Link) NoteReconnect() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.back)
	l.back = make(chan struct{})
}

func (l *Link) Reconnected() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.back
}

// Close ends the goroutines of Spawn and waits for them. It is idempotent.
func (l *Link) Close() error {
	l.mu.Lock()
	if !l.isClosing() {
		close(l.Closed)
	}
	l.mu.Unlock()
	l.wg.Wait()
	l.requests.close()
	return nil
}

func (l *Link) IsClosed() bool { return l.isClosing() || l.Conn.IsClosed() }

func (l *Link) isClosing() bool {
	select {
	case <-l.Closed:
		return true
	default:
		return false
	}
}

// Spawn runs f in a goroutine that Close waits for. After Close it does not, and returns
// false.
func (l *Link) Spawn(f func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isClosing() {
		return false
	}
	l.wg.Go(f)
	return true
}
