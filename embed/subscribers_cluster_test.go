package embed_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream"
	"github.com/helixd/helixd/eventlog/logtest"
	"github.com/helixd/helixd/integration/testkit"
)

// A subscriber may connect to any server of a cluster.
func TestSubscribersOfACluster(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	m, keys := minter(t)
	nodes := clusterOf(t, 3)
	for i := range nodes {
		nodes[i].Listen, nodes[i].Subscribers = freeAddress(t), keys
	}
	servers := startAll(t, nodes...)
	nc, _ := connect(t, servers[0])
	var log eventlog.Log
	require.Eventually(t, func() bool {
		l, err := jetstream.Open(t.Context(), nc, &jetstream.Options{Replicas: 3})
		if err == nil {
			log = l
		}
		return err == nil
	}, patience, 50*time.Millisecond)
	t.Cleanup(func() { log.Close() })
	right := mint(t, m, "s")
	var subs []*nats.Subscription
	for _, srv := range servers {
		out := outside(t, srv, as(right))
		_, err := out.SubscribeSync("helix.live.other")
		require.NoError(t, err)
		out.requireRefused(t, "another session")
		sub, err := out.SubscribeSync(right.Subject)
		require.NoError(t, err)
		require.NoError(t, out.Flush())
		subs = append(subs, sub)
	}
	last := uint64(0)
	say := func(text string) {
		t.Helper()
		var err error
		last, err = eventlog.AppendOnce(t.Context(), log, "s", text, last, []eventlog.Entry{logtest.Text("s", text)})
		require.NoError(t, err)
	}
	hears := func(sub *nats.Subscription) bool {
		m, err := sub.NextMsg(time.Second)
		return err == nil && m.Subject == right.Subject
	}
	for _, sub := range subs {
		require.Eventually(t, func() bool { // until the servers know who listens where
			say("said")
			return hears(sub)
		}, patience, time.Millisecond)
	}
}
