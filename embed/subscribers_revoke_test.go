package embed_test

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/embed/embedtest"
	"github.com/helixd/helixd/eventlog/jetstream/subscriber"
)

// revoking opens revocations on a server that was started with them.
func revoking(t *testing.T, srv *embed.Server, r *subscriber.Revocations, replicas int) {
	t.Helper()
	nc, err := srv.Connect()
	require.NoError(t, err)
	require.NoError(t, r.Open(t.Context(), nc, replicas, srv.DropRevoked, nil, slog.New(slog.DiscardHandler)))
	t.Cleanup(func() { r.Close(); nc.Close() })
}

// mintNow makes a right as a daemon does.
func mintNow(t *testing.T, m *subscriber.Minter, r *subscriber.Revocations, session string) subscriber.Right {
	t.Helper()
	generation, err := r.Generation(t.Context(), session)
	require.NoError(t, err)
	right, err := m.Mint(session, generation, 0)
	require.NoError(t, err)
	return right
}

func requireEnded(t *testing.T, nc *nats.Conn) {
	t.Helper()
	require.Eventually(t, nc.IsClosed, patience, 5*time.Millisecond)
}

func TestRevocation(t *testing.T) {
	t.Parallel()
	m, keys := minter(t)
	dir, r := t.TempDir(), subscriber.NewRevocations()
	srv := embedtest.Server(t, embed.Options{DataDir: dir, Listen: "127.0.0.1:0", Subscribers: keys, Revoked: r.Revoked})
	revoking(t, srv, r, 1)
	other := outside(t, srv, as(mintNow(t, m, r, "other")), nats.NoReconnect())
	var right subscriber.Right
	for range 3 { // within a second
		old := right
		right = mintNow(t, m, r, "s")
		one, two := outside(t, srv, as(right), nats.NoReconnect()), outside(t, srv, as(right), nats.NoReconnect())
		if old.JWT != "" {
			requireNotLetIn(t, srv.ClientURL(), "revoked before", as(old))
		}
		require.NoError(t, r.Revoke(t.Context(), "s"))
		requireEnded(t, one.Conn)
		requireEnded(t, two.Conn)
		requireNotLetIn(t, srv.ClientURL(), "revoked", as(right))
	}
	require.NoError(t, other.Flush(), "another session's right")
	next := mintNow(t, m, r, "s")
	outside(t, srv, as(next))

	srv.Stop()
	r = subscriber.NewRevocations()
	srv = embedtest.Server(t, embed.Options{DataDir: dir, Listen: "127.0.0.1:0", Subscribers: keys, Revoked: r.Revoked})
	revoking(t, srv, r, 1)
	requireNotLetIn(t, srv.ClientURL(), "revoked before the restart", as(right))
	outside(t, srv, as(next))
}

// A client that comes before its server knows the revocations waits.
func TestRightsWaitForTheRevocations(t *testing.T) {
	t.Parallel()
	m, keys := minter(t)
	r := subscriber.NewRevocations()
	srv := embedtest.Server(t, embed.Options{Listen: "127.0.0.1:0", Subscribers: keys, Revoked: r.Revoked})
	right, err := m.Mint("s", 0, 0)
	require.NoError(t, err)
	let := make(chan error, 1)
	go func() {
		connected := make(chan struct{})
		nc, err := nats.Connect(srv.ClientURL(), as(right), nats.Timeout(patience), nats.RetryOnFailedConnect(true),
			nats.ConnectHandler(func(*nats.Conn) { close(connected) }))
		if err == nil {
			defer nc.Close()
			select {
			case <-connected:
			case <-time.After(patience):
				err = fmt.Errorf("not connected within %s: %v", patience, nc.LastError())
			}
		}
		let <- err
	}()
	select {
	case err := <-let:
		require.Fail(t, "it did not wait", "%v", err)
	case <-time.After(50 * time.Millisecond):
	}
	revoking(t, srv, r, 1)
	require.NoError(t, <-let)
}

// A revocation on one server of a cluster ends the connections to all.
func TestRevocationInACluster(t *testing.T) {
	t.Parallel()
	m, keys := minter(t)
	nodes := clusterOf(t, 3)
	revocations := make([]*subscriber.Revocations, len(nodes))
	for i := range nodes {
		revocations[i] = subscriber.NewRevocations()
		nodes[i].Listen, nodes[i].Subscribers, nodes[i].Revoked = freeAddress(t), keys, revocations[i].Revoked
	}
	servers := startAll(t, nodes...)
	for i, srv := range servers {
		revoking(t, srv, revocations[i], 3)
	}
	for i := range servers {
		right := mintNow(t, m, revocations[i], "s")
		var connected []*nats.Conn
		for _, srv := range servers {
			connected = append(connected, outside(t, srv, as(right), nats.NoReconnect()).Conn)
		}
		require.NoError(t, revocations[i].Revoke(t.Context(), "s"))
		for j, srv := range servers {
			requireEnded(t, connected[j])
			requireNotLetIn(t, srv.ClientURL(), "revoked", as(right))
		}
	}
	right := mintNow(t, m, revocations[0], "s")
	for _, srv := range servers {
		outside(t, srv, as(right))
	}
}

// Copied revocations are effective in another deployment as they were: rights from before
// are revoked, later ones are not, and a later revocation there revokes both.
func TestCopiedRevocations(t *testing.T) {
	t.Parallel()
	m, keys := minter(t)
	r := subscriber.NewRevocations()
	from := embedtest.Server(t, embed.Options{DataDir: t.TempDir(), Listen: "127.0.0.1:0", Subscribers: keys, Revoked: r.Revoked})
	revoking(t, from, r, 1)
	before, other := mintNow(t, m, r, "s"), mintNow(t, m, r, "other")
	for range 3 {
		require.NoError(t, r.Revoke(t.Context(), "s"))
	}
	after := mintNow(t, m, r, "s")
	nc, err := from.Connect()
	require.NoError(t, err)
	defer nc.Close()

	again := subscriber.NewRevocations()
	to := embedtest.Server(t, embed.Options{DataDir: t.TempDir(), Listen: "127.0.0.1:0", Subscribers: keys, Revoked: again.Revoked})
	target, err := to.Connect()
	require.NoError(t, err)
	defer target.Close()
	for item, err := range subscriber.Copy(t.Context(), nc) {
		require.NoError(t, err)
		require.NoError(t, subscriber.Fill(t.Context(), target, 1, item))
	}
	revoking(t, to, again, 1)
	requireNotLetIn(t, to.ClientURL(), "revoked before the copy", as(before))
	outside(t, to, as(after))
	outside(t, to, as(other))
	require.NoError(t, again.Revoke(t.Context(), "s"))
	requireNotLetIn(t, to.ClientURL(), "revoked after the copy", as(after))
	outside(t, to, as(mintNow(t, m, again, "s")))
}
