package maintenance

import (
	"context"
	"fmt"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/embed/embedtest"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/integrity"
	"github.com/helixd/helixd/eventlog/jetstream/internal/link"
	"github.com/helixd/helixd/eventlog/jetstream/internal/storetest"
	"github.com/helixd/helixd/eventlog/jetstream/internal/verify"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

// growable is a log of a process that restarts.
type growable struct {
	t   *testing.T
	dir string
	srv *embed.Server
	nc  *nats.Conn
	log *Maintenance
}

func (g *growable) connect() {
	g.t.Helper()
	g.srv, g.nc = embedtest.Start(g.t, embed.Options{DataDir: g.dir, GroupSync: true})
}

func (g *growable) stop() {
	if g.log != nil {
		require.NoError(g.t, g.log.Close())
		g.log = nil
	}
	g.nc.Close()
	g.srv.Stop()
}

func (g *growable) open(o link.Options) error { return g.openAs(g.t.Context(), o) }

func (g *growable) openAs(ctx context.Context, o link.Options) error {
	o.Server, o.Durability = g.srv, eventlog.DurabilityFsync
	l, err := Open(ctx, g.nc, o)
	if err == nil {
		g.log = l
		g.t.Cleanup(func() { l.Close() })
	}
	return err
}

// restart opens the log with another number of partitions, 0 for the present one.
func (g *growable) restart(partitions int) {
	g.t.Helper()
	g.stop()
	g.connect()
	require.NoError(g.t, g.open(link.Options{Partitions: partitions, Grow: true}))
}

func newGrowable(t *testing.T, partitions int) *growable {
	t.Helper()
	g := &growable{t: t, dir: t.TempDir()}
	g.connect()
	require.NoError(t, g.open(link.Options{Partitions: partitions}))
	return g
}

func (g *growable) append(session string, n int) uint64 {
	g.t.Helper()
	head, err := g.log.Head(g.t.Context(), session)
	if err != nil {
		require.ErrorIs(g.t, err, eventlog.ErrSessionNotFound)
	}
	return storetest.Appended(g.t, g.log, session, head, storetest.TextEntries(session, n))
}

func (g *growable) records(session string) (all []eventlog.Record) {
	g.t.Helper()
	for r, err := range g.log.Read(g.t.Context(), session, 0, 0) {
		require.NoError(g.t, err)
		all = append(all, r)
	}
	return all
}

// elsewhere returns the id of a session that more partitions would have placed elsewhere.
func elsewhere(prefix string, from, to int) string {
	for i := 0; ; i++ {
		id := fmt.Sprint(prefix, i)
		if layout.Partition(id, from) != layout.Partition(id, to) {
			return id
		}
	}
}

func (g *growable) checks() *verify.Verifier { return verify.New(g.log.Store) }

// verified checks for damage, and returns the sessions.
func (g *growable) verified() []string {
	g.t.Helper()
	found := func(f integrity.Finding) {
		if !f.Code.IsNote() && f.Code != integrity.FoundPayload && f.Code != integrity.FoundOrdinal { // TextEntries' are not like a writer's
			g.t.Errorf("%+v", f)
		}
	}
	sessions, err := g.checks().VerifySubjects(g.t.Context(), found)
	require.NoError(g.t, err)
	for _, session := range sessions {
		_, err := g.checks().Verify(g.t.Context(), session, found)
		require.NoError(g.t, err)
	}
	require.NoError(g.t, g.checks().VerifyStreams(g.t.Context(), found))
	return sessions
}

// erase erases a session to its end.
func (g *growable) erase(session string) {
	g.t.Helper()
	e, err := g.log.Erase(g.t.Context(), session)
	require.NoError(g.t, err)
	require.False(g.t, e.Pending, e.Left)
	_, err = g.log.Head(g.t.Context(), session)
	require.ErrorIs(g.t, err, eventlog.ErrSessionNotFound)
}
