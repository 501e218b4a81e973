package daemon

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// front serves HTTP, if need be before the daemon can: a node of a cluster may
// wait for others for long, and must not be taken for dead meanwhile.
type front struct {
	server  *http.Server
	bounded *connections
	handler atomic.Pointer[http.Handler] // nil: the daemon is starting
	leaves  atomic.Bool                  // clients shall connect elsewhere
	once    sync.Once
	failed  chan error // gets why it serves no more, once
}

// newFront returns one with so many connections at most, for plain HTTP if there
// are no certificates.
func newFront(most int, c *certificates, log *slog.Logger) *front {
	f := &front{failed: make(chan error, 1), bounded: newConnections(most, log)}
	f.server = &http.Server{
		Handler: f, ReadHeaderTimeout: readHeaderTimeout, IdleTimeout: idleTimeout,
		ConnContext: withConnection,
		ErrorLog:    slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	if c != nil {
		f.server.TLSConfig = c.server()
	}
	return f
}

// serve begins to serve; a second call does nothing.
func (f *front) serve(listener net.Listener) {
	f.once.Do(func() {
		listener = f.bounded.listen(listener)
		go func() {
			if f.server.TLSConfig != nil {
				f.failed <- f.server.ServeTLS(listener, "", "")
				return
			}
			f.failed <- f.server.Serve(listener)
		}()
	})
}

// ServeHTTP implements http.Handler.
func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer requesting(r)()
	if f.leaves.Load() {
		w.Header().Set("Connection", "close")
	}
	if h := f.handler.Load(); h != nil {
		(*h).ServeHTTP(w, r)
		return
	}
	if r.ContentLength != 0 { // it is not waited for
		w.Header().Set("Connection", "close")
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(time.Second))
	}
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Path == "/healthz" {
		_, _ = io.WriteString(w, `{"ok":true}`) // who asked may be gone
		return
	}
	w.Header().Set("Retry-After", "1")
	w.WriteHeader(http.StatusServiceUnavailable)
	_, _ = io.WriteString(w, `{"error":"the server is starting","code":"UNAVAILABLE"}`)
}

// open begins to serve what the daemon is for.
func (f *front) open(h http.Handler) { f.handler.Store(&h) }

// leave has each answer close its connection, before shutdown closes those that
// are idle: a client may just then send a POST on one, and can't know what
// became of it.
func (f *front) leave() { f.leaves.Store(true) }

// shutdown waits for requests that are under way, up to a deadline. Streams end
// when endStreams is called.
func (f *front) shutdown(endStreams func()) {
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
	defer cancel()
	f.server.RegisterOnShutdown(endStreams)
	if f.server.Shutdown(ctx) != nil {
		f.server.Close()
	}
}

// wait returns why it serves no more: nil when it was shut down.
func (f *front) wait() error {
	if err := <-f.failed; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
