package sqlite

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/embed/embedtest"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/jetstream"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
	"github.com/helixd/helixd/projector/readmodel"
	"github.com/helixd/helixd/snapshot"
	foldsjs "github.com/helixd/helixd/snapshot/jetstream"
)

// node is a log on JetStream and its read models.
type node struct {
	t      testing.TB
	nc     *nats.Conn
	log    *jetstream.Log
	states *snapshot.Store
	models *Models
	path   string
}

func startServer(t testing.TB, dir string) *embed.Server {
	t.Helper()
	return embedtest.Server(t, embed.Options{DataDir: dir, SyncInterval: time.Second})
}

// newNode starts one of several nodes on a server.
func newNode(t testing.TB, srv *embed.Server, path string) *node {
	t.Helper()
	n := &node{t: t, path: path}
	var err error
	n.nc, err = srv.Connect()
	require.NoError(t, err)
	n.log, err = jetstream.Open(t.Context(), n.nc, &jetstream.Options{Durability: "interval=1s", Partitions: 3})
	require.NoError(t, err)
	folds, err := foldsjs.Open(t.Context(), n.nc, layout.Hashed(3), 1)
	require.NoError(t, err)
	n.states = snapshot.New(n.log, &snapshot.StoreOptions{Folds: folds})
	n.open()
	t.Cleanup(n.stop)
	return n
}

func (n *node) open() {
	n.models = Open(n.log, n.states, Options{Path: n.path, Patience: patience})
}

func (n *node) stop() {
	n.models.Close()
	n.log.Close()
	n.nc.Close()
}

func (n *node) append(session string, entries ...eventlog.Entry) {
	n.t.Helper()
	head, err := n.log.Head(n.t.Context(), session)
	if err != nil {
		require.ErrorIs(n.t, err, eventlog.ErrSessionNotFound)
	}
	_, err = n.log.Append(n.t.Context(), session, head, entries)
	require.NoError(n.t, err)
}

// found returns the ids of all sessions.
func (n *node) found() []string {
	n.t.Helper()
	ids := []string{}
	for _, s := range asked(n.t, func(ctx context.Context) (readmodel.Answer[readmodel.Page[readmodel.Session]], error) {
		return n.models.Sessions(ctx, readmodel.SessionFilter{})
	}).Items {
		ids = append(ids, s.SessionID)
	}
	return ids
}

func (n *node) hits(text string) int {
	n.t.Helper()
	return asked(n.t, func(ctx context.Context) (readmodel.Answer[readmodel.Page[readmodel.Hit]], error) {
		return n.models.Search(ctx, readmodel.SearchQuery{Text: text})
	}).Total
}

// consumers counts the feeds' consumers on the server.
func (n *node) consumers() (count int) {
	js, err := natsjs.New(n.nc, natsjs.WithDefaultTimeout(time.Minute))
	require.NoError(n.t, err)
	for p := range 3 {
		s, err := js.Stream(n.t.Context(), fmt.Sprintf("HELIX_LOG_%d", p))
		require.NoError(n.t, err)
		for range s.ConsumerNames(n.t.Context()).Name() {
			count++
		}
	}
	return count
}

// Each node has its own rows, of all sessions, with one consumer per partition.
func TestEveryNodeKnowsAllSessions(t *testing.T) {
	t.Parallel()
	srv := startServer(t, t.TempDir())
	nodes := []*node{}
	for i := range 3 {
		nodes = append(nodes, newNode(t, srv, filepath.Join(t.TempDir(), fmt.Sprint(i))))
	}
	want := []string{}
	for i := range 9 {
		id := fmt.Sprintf("session %d", i)
		want = append(want, id)
		nodes[i%3].append(id, created(id, "a", ""), said(id, "remarkable"))
		for _, n := range nodes {
			require.Equal(t, want, n.found())
		}
	}
	away := nodes[2]
	away.models.Close()
	for i, n := range nodes[:2] {
		require.Equal(t, 9-i, n.hits("remarkable"))
		_, err := n.log.Erase(t.Context(), want[4*i])
		require.NoError(t, err)
	}
	for _, id := range want {
		if id != want[0] && id != want[4] {
			nodes[0].append(id, said(id, "more"))
		}
	}
	away.open() // it has not received the erasures
	for _, n := range nodes {
		require.Equal(t, 7, n.hits("remarkable"))
		require.Equal(t, 7, n.hits("more"))
		require.NotContains(t, n.found(), want[0])
	}
	// The server removes a consumer later if it could not be removed at once.
	require.Eventually(t, func() bool { return nodes[0].consumers() == 9 }, 2*time.Minute, 100*time.Millisecond, "three nodes, three partitions")
	for _, n := range nodes {
		n.models.Close()
	}
	require.Eventually(t, func() bool { return nodes[0].consumers() == 0 }, 2*time.Minute, 100*time.Millisecond)
}

// After a purge, which leaves records only in segments, and after retention, which leaves
// states only in saved folds, a file that is built again has all of them.
func TestAFileIsBuiltAgainAfterAPurge(t *testing.T) {
	t.Parallel()
	srv := startServer(t, t.TempDir())
	n := newNode(t, srv, filepath.Join(t.TempDir(), "rows"))
	for i := range 5 {
		id := fmt.Sprint("s", i)
		n.append(id, created(id, "a", ""))
		for range 30 {
			n.append(id, said(id, "remarkable"))
		}
	}
	require.Equal(t, 150, n.hits("remarkable"))
	behind := filepath.Join(t.TempDir(), "behind")
	n.models.Close()
	require.NoError(t, copyFile(n.path, behind))
	n.open()
	for i := range 5 {
		id := fmt.Sprint("s", i)
		n.append(id, said(id, "remarkable"))
	}
	_, err := n.log.Erase(t.Context(), "s0")
	require.NoError(t, err)
	purged, err := n.log.Purge(t.Context(), eventlog.PurgeOptions{SealedFor: time.Nanosecond})
	require.NoError(t, err)
	require.NotEmpty(t, purged)
	_, err = n.states.Retain(t.Context(), snapshot.Retention{Drop: true})
	require.NoError(t, err)
	n.append("s1", said("s1", "remarkable"))
	n.append("new", created("new", "a", ""), said("new", "remarkable"))

	want := []string{"new", "s1", "s2", "s3", "s4"}
	require.Equal(t, want, n.found())
	require.Equal(t, 4*31+2, n.hits("remarkable"))
	n.models.Close()
	for name, path := range map[string]string{
		"from nothing": filepath.Join(t.TempDir(), "nothing"), "from before the purge": behind,
	} {
		n.path = path
		n.open()
		require.Equal(t, want, n.found(), name)
		require.Equal(t, 4*31+2, n.hits("remarkable"), name)
		n.models.Close()
	}
}

// The rows of a session that was erased while the file was closed, and whose id another tenant's
// session has since, are the other tenant's, also if retention has removed the records between.
func TestAnErasedSessionsIDIsAnotherTenantsAfterAPurge(t *testing.T) {
	t.Parallel()
	n := newNode(t, startServer(t, t.TempDir()), filepath.Join(t.TempDir(), "rows"))
	of := func(tenant string) eventlog.Entry {
		return factOf("s", "", &fact.SessionCreated{AgentType: "a", Tenant: tenant, Base: factAt("s", 1)})
	}
	n.append("s", of("red"), said("s", "red words"))
	require.Equal(t, []string{"s"}, n.found())
	n.models.Close()
	_, err := n.log.Erase(t.Context(), "s")
	require.NoError(t, err)
	n.append("s", of("blue"), said("s", "blue words"))
	purged, err := n.log.Purge(t.Context(), eventlog.PurgeOptions{SealedFor: time.Nanosecond})
	require.NoError(t, err)
	require.NotEmpty(t, purged)
	n.open()
	for tenant, want := range map[string]int{"red": 0, "blue": 1} {
		listed := asked(t, func(ctx context.Context) (readmodel.Answer[readmodel.Page[readmodel.Session]], error) {
			return n.models.Sessions(ctx, readmodel.SessionFilter{Tenant: tenant})
		})
		require.Equal(t, want, listed.Total, tenant)
		found := asked(t, func(ctx context.Context) (readmodel.Answer[readmodel.Page[readmodel.Hit]], error) {
			return n.models.Search(ctx, readmodel.SearchQuery{Text: "words", Tenant: tenant})
		})
		require.Equal(t, want, found.Total, tenant)
		use, err := n.models.TenantUse(t.Context(), tenant, nil)
		require.NoError(t, err)
		require.Equal(t, want, use.Sessions, tenant)
	}
}

// A message that helixd has not written is listed, and a large payload is read from its
// blob.
func TestForeignMessagesAndLargePayloads(t *testing.T) {
	t.Parallel()
	srv := startServer(t, t.TempDir())
	n := newNode(t, srv, filepath.Join(t.TempDir(), "rows"))
	n.append("s", created("s", "a", ""))
	place := fmt.Sprintf("helix.log.%d.", layout.Partition("s", 3))
	for _, subject := range []string{place + "s", place + "not%a%session", place + "s"} {
		_, err := n.nc.Request(subject, []byte("what is this?"), time.Minute)
		require.NoError(t, err)
	}
	n.append("s", said("s", "remarkable "+strings.Repeat("x", 1<<20)))
	require.Equal(t, 1, n.hits("remarkable"))
	parked := asked(t, func(ctx context.Context) (readmodel.Answer[readmodel.Page[readmodel.Parked]], error) {
		return n.models.Parked(ctx, readmodel.ParkedFilter{})
	})
	require.Equal(t, 2, parked.Total)
	require.Equal(t, "s", parked.Items[0].SessionID)
}

// A server that restarts has lost nothing. A log that was created from scratch is
// distinguished from the old one.
func TestAServerRestarts(t *testing.T) {
	t.Parallel()
	dir, path := t.TempDir(), filepath.Join(t.TempDir(), "rows")
	for round, want := range [][]string{{"s0"}, {"s0", "s1"}, {"s2"}} {
		if round == 2 {
			dir = t.TempDir()
		}
		srv := startServer(t, dir)
		n := newNode(t, srv, path)
		id := fmt.Sprint("s", round)
		n.append(id, created(id, "a", ""))
		require.Equal(t, want, n.found())
		n.stop()
		srv.Stop()
	}
}
