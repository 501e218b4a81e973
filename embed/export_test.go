package embed

import (
	"net"
	"time"
)

// HiddenPort is where a server listens for clients though nobody asked it to.
func (s *Server) HiddenPort() int { return s.instance().srv.Addr().(*net.TCPAddr).Port }

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
