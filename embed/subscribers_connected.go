package embed

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"time"
)

// Limits of the connections from outside. Each may leave maxPending unread.
const (
	// DefaultMaxConnections bounds all connections of a server.
	DefaultMaxConnections = 4096
	// MaxRightConnections bounds those with the same right.
	MaxRightConnections = 8
	// MaxSessionConnections bounds those with a right to the same session.
	MaxSessionConnections = 64
)

const (
	// freshConnection is for how long a connection keeps its place when another
	// one comes: longer than a connection that is ended may take to write what
	// waits (10 s), so that few of these exist at a time.
	freshConnection = 30 * time.Second
	// leastTidy is the least number of subscribers at which tidying is worth it.
	leastTidy = 64
	// maxRefused bounds the subjects that the gatekeeper remembers as logged.
	maxRefused = 1024
)

// right is the right of a connected subscriber: user is its own public key.
type right struct{ subject, name, user string }

// connection is a subscriber's.
type connection struct {
	right
	since time.Time
}

// register remembers the client of a right, unless the right is revoked or has
// all its connections.
func (g *gatekeeper) register(id uint64, r right) bool {
	if g.revoked != nil && g.revoked(r.subject, r.name) { // may wait: not with the lock held
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.revoked != nil && g.revoked(r.subject, r.name) { // dropRevoked would not have found the client
		return false
	}
	if len(g.subscribers) >= g.tidyAt {
		maps.DeleteFunc(g.subscribers, func(id uint64, _ connection) bool { return g.srv.GetClient(id) == nil })
		g.tidyAt = max(leastTidy, 2*len(g.subscribers))
	}
	now := time.Now()
	ofRight := func(c connection) bool { return c.user == r.user }
	ofSession := func(c connection) bool { return c.subject == r.subject }
	if !g.room(r, MaxRightConnections, "its right", now, ofRight) || !g.room(r, MaxSessionConnections, "its session", now, ofSession) {
		return false
	}
	g.subscribers[id] = connection{r, now}
	return true
}

// room reports whether there are fewer than most connections of a kind. If there
// are not, it ends the oldest one, which may be dead, unless all are fresh: the
// clients of dead connections would be refused until the server notices that
// these are dead.
func (g *gatekeeper) room(r right, most int, whose string, now time.Time, kind func(connection) bool) bool {
	n, oldest, since := 0, uint64(0), now
	for id, c := range g.subscribers {
		if !kind(c) || g.srv.GetClient(id) == nil {
			continue
		}
		n++
		if c.since.Before(since) {
			oldest, since = id, c.since
		}
	}
	if n < most {
		return true
	}
	if now.Sub(since) < freshConnection {
		g.logRefused(r.subject, fmt.Sprintf("%s has %d connections, none of them older than %s", whose, n, freshConnection))
		return false
	}
	delete(g.subscribers, oldest)
	_ = g.srv.DisconnectClientByID(oldest) // an error: it has left
	return true
}

// logRefused logs once for each subject why a client is refused.
func (g *gatekeeper) logRefused(subject, why string) {
	if g.refused[subject] {
		return
	}
	if len(g.refused) >= maxRefused {
		clear(g.refused)
	}
	g.refused[subject] = true
	g.log.LogAttrs(context.Background(), slog.LevelWarn, "NATS subscriber refused", slog.String("subject", subject), slog.String("reason", why))
}

// dropRevoked disconnects the clients whose rights are revoked.
func (g *gatekeeper) dropRevoked() {
	var ids []uint64
	g.mu.Lock()
	for id, r := range g.subscribers {
		if g.revoked != nil && g.revoked(r.subject, r.name) {
			ids = append(ids, id)
			delete(g.subscribers, id)
		}
	}
	g.mu.Unlock()
	for _, id := range ids {
		_ = g.srv.DisconnectClientByID(id) // an error: it has left
	}
}

// DropRevoked disconnects the subscribers whose rights Options.Revoked reports
// as revoked by now.
func (s *Server) DropRevoked() {
	if g := s.instance().gate; g != nil {
		g.dropRevoked()
	}
}
