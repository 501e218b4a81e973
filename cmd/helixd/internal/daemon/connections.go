package daemon

import (
	"cmp"
	linked "container/list"
	"context"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/helixd/helixd/cmd/helixd/config"
)

// fullEvery is how often the log says that there are too many connections.
const fullEvery = time.Minute

// connections bounds the connections of an HTTP server. If one more comes than
// there may be, the one that has had no request for the longest is closed: idle
// connections keep no client out. If all have a request, the new one is closed.
type connections struct {
	max int
	log *slog.Logger

	mu      sync.Mutex
	open    int
	waiting linked.List // of *connection without a request, the longest first
	warned  time.Time
}

// mostConnections leaves the other half of the files that the process may open to
// the log and everything else.
func mostConnections(l config.Limits) int {
	most := cmp.Or(l.Connections, config.DefaultConnections)
	if files := openFiles(); files > 0 {
		most = min(most, max(files/2, 1))
	}
	return most
}

func newConnections(most int, log *slog.Logger) *connections {
	return &connections{max: most, log: log}
}

// listen returns a listener whose connections are counted.
func (c *connections) listen(l net.Listener) net.Listener { return &boundedListener{l, c} }

type boundedListener struct {
	net.Listener
	all *connections
}

// Accept implements net.Listener.
func (l *boundedListener) Accept() (net.Conn, error) {
	for {
		accepted, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if c := l.all.add(accepted); c != nil {
			return c, nil
		}
		accepted.Close()
	}
}

// add counts a connection. It makes room for it; nil: there is none.
func (c *connections) add(accepted net.Conn) *connection {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open >= c.max {
		if now := time.Now(); now.Sub(c.warned) > fullEvery {
			c.warned = now
			c.log.Warn("too many connections: idle ones are closed, see limits.connections", "connections", c.open)
		}
		longest := c.waiting.Front()
		if longest == nil {
			return nil
		}
		idle := longest.Value.(*connection)
		c.remove(idle)
		idle.Conn.Close()
	}
	added := &connection{Conn: accepted, all: c}
	added.waits = c.waiting.PushBack(added)
	c.open++
	return added
}

// remove forgets a connection; mu is held.
func (c *connections) remove(gone *connection) {
	if gone.removed {
		return
	}
	gone.removed = true
	c.open--
	if gone.waits != nil {
		c.waiting.Remove(gone.waits)
	}
}

// connection is one that is open.
type connection struct {
	net.Conn
	all *connections

	// Guarded by all.mu.
	waits    *linked.Element // nil: it has requests
	requests int
	removed  bool
}

// Close implements net.Conn.
func (c *connection) Close() error {
	c.all.mu.Lock()
	c.all.remove(c)
	c.all.mu.Unlock()
	return c.Conn.Close()
}

// begin notes a request on the connection; end is called when it is answered.
func (c *connection) begin() (end func()) {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	if c.requests++; c.requests == 1 && !c.removed {
		c.all.waiting.Remove(c.waits)
		c.waits = nil
	}
	return func() {
		c.all.mu.Lock()
		defer c.all.mu.Unlock()
		if c.requests--; c.requests == 0 && !c.removed {
			c.waits = c.all.waiting.PushBack(c)
		}
	}
}

type connectionKey struct{}

// withConnection is a server's ConnContext.
func withConnection(ctx context.Context, c net.Conn) context.Context {
	for {
		switch inner := c.(type) {
		case *connection:
			return context.WithValue(ctx, connectionKey{}, inner)
		case interface{ NetConn() net.Conn }: // TLS
			c = inner.NetConn()
		default:
			return ctx
		}
	}
}

// requesting notes that a request is served, until done is called.
func requesting(r *http.Request) (done func()) {
	if c, ok := r.Context().Value(connectionKey{}).(*connection); ok {
		return c.begin()
	}
	return func() {}
}
