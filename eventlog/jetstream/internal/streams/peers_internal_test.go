package streams

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog/jetstream/internal/link"
	"github.com/helixd/helixd/eventlog/jetstream/internal/storetest"
)

// A plain client can ask the servers of a cluster for their versions.
func TestOldServersAmongThePeers(t *testing.T) {
	t.Parallel()
	nc := storetest.Connect(t)
	conn, err := link.New(t.Context(), nc, link.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	log, err := Open(t.Context(), conn)
	require.NoError(t, err)

	stream := &natsjs.StreamInfo{Cluster: &natsjs.ClusterInfo{Leader: "n1", Replicas: []*natsjs.PeerInfo{{Name: "n2"}, {Name: nc.ConnectedServerName()}}}}
	infos := []*natsjs.StreamInfo{{}, stream}
	require.NoError(t, log.checkPeers(t.Context(), infos), "nobody answers")

	var n2 atomic.Value
	n2.Store("2.15.2")
	_, err = nc.Subscribe(PeersSubject, func(m *nats.Msg) {
		m.Respond([]byte("junk"))
		for name, version := range map[string]any{"n1": "2.15.2", "n2": n2.Load(), "n3": "2.9.0"} {
			m.Respond(fmt.Appendf(nil, `{"server":{"name":%q,"ver":%q},"data":{}}`, name, version))
		}
	})
	require.NoError(t, err)
	require.NoError(t, log.checkPeers(t.Context(), infos), "n3 keeps nothing of ours")
	n2.Store("2.12.1")
	err = nil
	for began := time.Now(); err == nil && time.Since(began) < time.Minute; { // until they answer in time
		err = log.checkPeers(t.Context(), infos)
	}
	require.ErrorContains(t, err, "server n2: jetstream: server version 2.12.1 is too old")
}
