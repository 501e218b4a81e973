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

// starter serves HTTP, if need be before the daemon can: a node of a cluster may
// wait for others for long, and must not be taken for dead meanwhile.
type starter struct {
	server  *http.Server
	bounded *connections
	handler atomic.Pointer[http.Handler] // nil: the daemon is starting
	leaves  atomic.Bool                  // clients are to connect to another node
	once    sync.Once
	failed  chan error // gets why it serves no more, once
}

// newStarter returns one with so many connections at most, for plain HTTP if there
// are no certificates.
func newStarter(most int, c *certificates, log *slog.Logger) *starter {
	s := &starter{failed: make(chan error, 1), bounded: newConnections(most, log)}
	s.server = &http.Server{
		Handler: s, ReadHeaderTimeout: readHeaderTimeout, IdleTimeout: idleTimeout,
		ConnContext: withConnection,
		ErrorLog:    slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	if c != nil {
		s.server.TLSConfig = c.server()
	}
	return s
}

// serve begins to serve; a second call does nothing.
func (s *starter) serve(listener net.Listener) {
	s.once.Do(func() {
		listener = s.bounded.listen(listener)
		go func() {
			if s.server.TLSConfig != nil {
				s.failed <- s.server.ServeTLS(listener, "", "")
				return
			}
			s.failed <- s.server.Serve(listener)
		}()
	})
}

// ServeHTTP implements http.Handler.
func (s *starter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer requesting(r)()
	if s.leaves.Load() {
		w.Header().Set("Connection", "close")
	}
	if h := s.handler.Load(); h != nil {
		(*h).ServeHTTP(w, r)
		return
	}
	dropBody(w, r)
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Path == "/healthz" {
		_, _ = io.WriteString(w, `{"ok":true}`) // who asked may be gone
		return
	}
	w.Header().Set("Retry-After", "1")
	w.WriteHeader(http.StatusServiceUnavailable)
	_, _ = io.WriteString(w, `{"error":"the server is starting","code":"UNAVAILABLE"}`)
}

// dropBody has an answer not wait for the request's body.
func dropBody(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength != 0 {
		w.Header().Set("Connection", "close")
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(time.Second))
	}
}

// open begins to serve what the daemon is for.
func (s *starter) open(h http.Handler) { s.handler.Store(&h) }

// leave has each answer close its connection, before shutdown closes those that
// are idle: a client may just then send a POST on one, and can't know what
// became of it.
func (s *starter) leave() { s.leaves.Store(true) }

// shutdown waits for requests that are under way, up to a deadline. Streams end
// when endStreams is called.
func (s *starter) shutdown(endStreams func()) {
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
	defer cancel()
	s.server.RegisterOnShutdown(endStreams)
	if s.server.Shutdown(ctx) != nil {
		s.server.Close()
	}
}

// wait returns why it serves no more: nil when it was shut down.
func (s *starter) wait() error {
	if err := <-s.failed; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
