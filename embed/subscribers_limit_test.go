package embed_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/embed/embedtest"
	"github.com/helixd/helixd/eventlog/jetstream/subscriber"
	"github.com/helixd/helixd/integration/testkit"
)

// allConnections opens as many as a right may have.
func allConnections(t *testing.T, srv *embed.Server, right subscriber.Right) []*nats.Conn {
	t.Helper()
	var all []*nats.Conn
	for range embed.MaxRightConnections {
		all = append(all, outside(t, srv, as(right), nats.NoReconnect()).Conn)
	}
	return all
}

func letIn(srv *embed.Server, right subscriber.Right) bool {
	nc, err := nats.Connect(srv.ClientURL(), as(right))
	if err != nil {
		return false
	}
	nc.Close()
	return true
}

func TestARightHasAFewConnections(t *testing.T) {
	t.Parallel()
	m, keys := minter(t)
	var logged testkit.Log
	srv := embedtest.Server(t, embed.Options{Listen: "127.0.0.1:0", Subscribers: keys, Logger: slog.New(slog.NewTextHandler(&logged, nil))})
	right := mint(t, m, "s")
	all := allConnections(t, srv, right)
	for range 3 {
		requireNotLetIn(t, srv.ClientURL(), "one too many", as(right))
	}
	require.Equal(t, 1, strings.Count(logged.String(), "subscriber refused"))
	require.Equal(t, 1, strings.Count(logged.String(), "subject=helix.live.s "))
	for _, nc := range all {
		require.NoError(t, nc.Flush(), "those that are there stay")
	}
	outside(t, srv, as(mint(t, m, "s")))
	outside(t, srv, as(mint(t, m, "other")))
	all[3].Close()
	require.Eventually(t, func() bool { return letIn(srv, right) }, patience, 5*time.Millisecond)
}

// Connections whose client has gone without a word are there until the server
// notices. They make room for those with which the client comes back.
func TestDeadConnectionsMakeRoom(t *testing.T) {
	t.Parallel()
	m, keys := minter(t)
	srv := embedtest.Server(t, embed.Options{Listen: "127.0.0.1:0", Subscribers: keys})
	right := mint(t, m, "s")
	all := allConnections(t, srv, right)
	srv.AgeSubscribers(embed.FreshConnection)
	for i := range all {
		outside(t, srv, as(right), nats.NoReconnect())
		requireEnded(t, all[i])
		for _, younger := range all[i+1:] {
			require.NoError(t, younger.Flush(), "the oldest goes first")
		}
	}
	requireNotLetIn(t, srv.ClientURL(), "the others are fresh", as(right))
}

func TestASessionHasSomeSubscribers(t *testing.T) {
	t.Parallel()
	m, keys := minter(t)
	r := subscriber.NewRevocations()
	srv := embedtest.Server(t, embed.Options{Listen: "127.0.0.1:0", Subscribers: keys, Revoked: r.Revoked})
	revoking(t, srv, r, 1)
	for range embed.MaxSessionConnections / embed.MaxRightConnections {
		allConnections(t, srv, mint(t, m, "s"))
	}
	last := mint(t, m, "s")
	requireNotLetIn(t, srv.ClientURL(), "one too many", as(last))
	outside(t, srv, as(mint(t, m, "other")))
	srv.AgeSubscribers(embed.FreshConnection)
	outside(t, srv, as(last))
}

// Clients from outside have a limit together, and the server's own connections
// come first.
func TestConnectionsAreBounded(t *testing.T) {
	var logged testkit.Log
	srv := embedtest.Server(t, embed.Options{Listen: "127.0.0.1:0", MaxConnections: 3, Logger: slog.New(slog.NewTextHandler(&logged, nil))})
	inside, _ := connect(t, srv)
	for range 2 {
		outside(t, srv)
	}
	_, err := nats.Connect(srv.ClientURL())
	require.Error(t, err)
	require.Contains(t, logged.String(), "maximum connections exceeded")
	again, _ := connect(t, srv)
	require.NoError(t, again.Flush())
	require.NoError(t, inside.Flush())
}
