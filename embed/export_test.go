package embed

import (
	"net"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// HiddenPort is where a server listens for clients though nobody asked it to.
func (s *Server) HiddenPort() int { return s.instance().srv.Addr().(*net.TCPAddr).Port }

// SyncInterval is how often data reaches the disk; 0 means at every append.
func (s *Server) SyncInterval() time.Duration { return s.opts.SyncInterval }

// DataDir is the server's folder.
func (s *Server) DataDir() string { return s.opts.DataDir }

// FreshConnection is for how long a subscriber's connection keeps its place.
const FreshConnection = freshConnection

// AgeSubscribers makes all subscribers' connections older.
func (s *Server) AgeSubscribers(d time.Duration) {
	g := s.instance().gate
	g.mu.Lock()
	defer g.mu.Unlock()
	for id, c := range g.subscribers {
		c.since = c.since.Add(-d)
		g.subscribers[id] = c
	}
}

// WithMaxUnread returns options with another bound of what clients from outside may
// leave unread together.
func WithMaxUnread(o Options, most int) Options {
	o.maxUnread = most
	return o
}

// WithRemoveAsk returns options with which RemoveServer asks for a server for another time.
func WithRemoveAsk(o Options, d time.Duration) Options {
	o.removeAsk = d
	return o
}

// Unread is what clients from outside leave unread now, in bytes.
func (s *Server) Unread() (unread int) {
	all, _ := s.instance().srv.Connz(&server.ConnzOptions{})
	for _, c := range all.Conns {
		if c.Port != 0 {
			unread += c.Pending
		}
	}
	return unread
}

// StopServer stops the nats-server and nothing else.
func (s *Server) StopServer() { s.instance().end() }

// Remembered is how many scrubs Rescrub knows.
func (s *Server) Remembered() int {
	s.done.mu.Lock()
	defer s.done.mu.Unlock()
	return len(s.done.all)
}

// HoldScrubs has scrubs wait before they overwrite anything, until release is called.
func (s *Server) HoldScrubs() (release func()) {
	s.scrubbing.Lock()
	return s.scrubbing.Unlock
}
