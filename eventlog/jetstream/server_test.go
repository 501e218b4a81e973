package jetstream

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/integration/deployment"
)

func TestServerVersions(t *testing.T) {
	for _, good := range []string{
		"2.15.2", "v2.15.2", "2.15.2+build.7", "2.15.3", "2.15.3-beta.1", "2.15.10", "2.16.0", "2.16.0-dev", "3.0.0", "10.0.0",
	} {
		require.NoError(t, checkServer(good), good)
	}
	for _, old := range []string{
		"2.15.1", "2.15.2-RC.1", "2.15.2-beta+x", "2.15.0", "2.14.99", "2.9.25", "1.99.99", "0.0.0", "2.15.2-2.16.0",
	} {
		require.EqualError(t, checkServer(old), "jetstream: server version "+old+" is too old: nats-server 2.15.2 or later is needed "+
			"(before it, compaction of blocks ignored sync_interval: always; before 2.12 there are no atomic batches)")
	}
	for _, garbage := range []string{
		"", "2", "2.15", "2.15.2.1", "2.15.x", "latest", "2.15.-2", "-2.15.2", "2.15.2-", "2..2", "02.15.2", "2.15.2 ", " 2.15.2",
		"2.+15.2", "99999999999.0.0", "2.15.99999999999999999999", "\x00", "٢.١٥.٢",
	} {
		require.ErrorContains(t, checkServer(garbage), fmt.Sprintf("server version %q is not understood: nats-server 2.15.2 or later", garbage))
	}
}

// oldServer speaks as much of the protocol as a connection needs, and says
// that it is of a version.
func oldServer(t *testing.T, version string) (url string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var all sync.WaitGroup
	t.Cleanup(func() {
		l.Close()
		all.Wait()
	})
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer c.Close()
				fmt.Fprintf(c, "INFO {\"server_id\":\"old\",\"server_name\":\"old\",\"version\":%q,\"proto\":1,"+
					"\"headers\":true,\"jetstream\":true,\"max_payload\":1048576}\r\n", version)
				for in := bufio.NewScanner(c); in.Scan(); {
					if strings.HasPrefix(in.Text(), "PING") {
						fmt.Fprint(c, "PONG\r\n")
					}
				}
			})
		}
	})
	return "nats://" + l.Addr().String()
}

func TestOpenRefusesAnOldServerByName(t *testing.T) {
	for version, want := range map[string]string{
		"2.14.3": "server version 2.14.3 is too old: nats-server 2.15.2 or later is needed",
		"custom": `server version "custom" is not understood: nats-server 2.15.2 or later is needed`,
	} {
		nc, err := nats.Connect(oldServer(t, version))
		require.NoError(t, err)
		t.Cleanup(nc.Close) // before its server ends
		for _, o := range []*Options{nil, {ReadOnly: true}} {
			_, err = Open(t.Context(), nc, o)
			require.ErrorContains(t, err, want)
		}
	}
}

// A cluster may hold a server that is too old beside good ones: what it would
// store is refused, and reading goes on once a good one is back.
func TestReconnectToAnOldServer(t *testing.T) {
	t.Parallel()
	address, err := deployment.FreeAddress() // which no connection takes while the server is down
	require.NoError(t, err)
	options := embed.Options{DataDir: t.TempDir(), Listen: address, User: "u", Password: "p"}
	srv, err := embed.Start(t.Context(), options)
	require.NoError(t, err)
	t.Cleanup(func() { srv.Stop() })
	reconnected := make(chan string, 16)
	nc, err := nats.Connect(srv.ClientURL()+","+oldServer(t, "2.11.4"), nats.UserInfo("u", "p"), nats.DontRandomize(), nats.MaxReconnects(-1),
		nats.ReconnectWait(time.Millisecond), nats.ReconnectHandler(func(nc *nats.Conn) { reconnected <- nc.ConnectedServerVersion() }))
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	log, err := Open(t.Context(), nc, nil)
	require.NoError(t, err)
	t.Cleanup(func() { log.Close() })
	entry := eventlog.Entry{Envelope: eventlog.Envelope{Kind: eventlog.KindFact, Type: "x", Agent: "s"}, Payload: []byte("{}")}
	_, err = log.Append(t.Context(), "s", 0, []eventlog.Entry{entry})
	require.NoError(t, err)
	require.Empty(t, log.Info().Refuses)

	srv.Stop()
	require.Equal(t, "2.11.4", <-reconnected)
	_, err = log.Append(t.Context(), "s", 1, []eventlog.Entry{entry})
	require.ErrorContains(t, err, "server version 2.11.4 is too old")
	require.NotErrorIs(t, err, eventlog.ErrOutcomeUnknown, "nothing was sent")
	require.Contains(t, log.Info().Refuses, "server version 2.11.4 is too old")

	srv, err = embed.Start(t.Context(), options)
	require.NoError(t, err)
	require.NoError(t, nc.ForceReconnect())
	for <-reconnected == "2.11.4" {
		require.NoError(t, nc.ForceReconnect())
	}
	_, err = log.Append(t.Context(), "s", 1, []eventlog.Entry{entry})
	require.NoError(t, err)
	require.Empty(t, log.Info().Refuses)
}

// A plain client can ask the servers of a cluster who they are.
func TestOldServersAmongThePeers(t *testing.T) {
	t.Parallel()
	srv, err := embed.Start(t.Context(), embed.Options{DataDir: t.TempDir()})
	require.NoError(t, err)
	t.Cleanup(srv.Stop)
	nc, err := srv.Connect()
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	log, err := Open(t.Context(), nc, nil)
	require.NoError(t, err)
	t.Cleanup(func() { log.Close() })

	stream := &natsjs.StreamInfo{Cluster: &natsjs.ClusterInfo{Leader: "n1", Replicas: []*natsjs.PeerInfo{{Name: "n2"}, {Name: nc.ConnectedServerName()}}}}
	streams := []*natsjs.StreamInfo{{}, stream}
	require.NoError(t, log.checkPeers(t.Context(), streams), "nobody answers")

	var n2 atomic.Value
	n2.Store("2.15.2")
	_, err = nc.Subscribe(peersSubject, func(m *nats.Msg) {
		m.Respond([]byte("junk"))
		for name, version := range map[string]any{"n1": "2.15.2", "n2": n2.Load(), "n3": "2.9.0"} {
			m.Respond(fmt.Appendf(nil, `{"server":{"name":%q,"ver":%q},"data":{}}`, name, version))
		}
	})
	require.NoError(t, err)
	require.NoError(t, log.checkPeers(t.Context(), streams), "n3 keeps nothing of ours")
	n2.Store("2.12.1")
	err = nil
	for began := time.Now(); err == nil && time.Since(began) < time.Minute; { // until they answer in time
		err = log.checkPeers(t.Context(), streams)
	}
	require.ErrorContains(t, err, "server n2: jetstream: server version 2.12.1 is too old")
}
