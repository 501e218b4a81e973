package jetstream_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream"
	"github.com/helixd/helixd/eventlog/jetstream/internal/storetest"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
	"github.com/helixd/helixd/eventlog/logtest"
	"github.com/helixd/helixd/integration/testkit"
	foldsjs "github.com/helixd/helixd/snapshot/jetstream"
)

// threeNodes are servers that form a cluster when they are started.
func threeNodes(t testing.TB) [3]embed.Options {
	t.Helper()
	return [3]embed.Options(storetest.Cluster(t, 3))
}

// opened is a node that is up.
type opened struct {
	srv *embed.Server
	nc  *nats.Conn
	log eventlog.Log
	err error
}

func (o *opened) open(ctx context.Context, node embed.Options, options jetstream.Options) {
	if o.srv, o.err = embed.Start(ctx, node); o.err != nil {
		return
	}
	if o.nc, o.err = o.srv.Connect(); o.err != nil {
		return
	}
	log, err := jetstream.Open(ctx, o.nc, &options)
	if o.err = err; err != nil {
		return
	}
	o.log = log
	_, o.err = foldsjs.Open(ctx, o.nc, log, options.Replicas)
}

func (o *opened) close() {
	if o.log != nil {
		o.log.Close()
	}
	if o.nc != nil {
		o.nc.Close()
	}
	if o.srv != nil {
		o.srv.Stop()
	}
}

func openAll(t testing.TB, nodes [3]embed.Options, options jetstream.Options) (all [3]opened) {
	t.Helper()
	return openAllIn(t, t.Context(), nodes, options)
}

// openAllIn is openAll in a context with the test's tuning.
func openAllIn(t testing.TB, ctx context.Context, nodes [3]embed.Options, options jetstream.Options) (all [3]opened) {
	t.Helper()
	var wg sync.WaitGroup
	for i := range nodes {
		wg.Go(func() { all[i].open(ctx, nodes[i], options) })
	}
	wg.Wait()
	for i := range all {
		t.Cleanup(all[i].close)
		require.NoError(t, all[i].err, nodes[i].Name)
	}
	return all
}

// The durability is that of the streams as they are, not as they were when the log was opened.
func TestDurabilityFollowsTheReplicas(t *testing.T) {
	testkit.Long(t)
	testkit.Cluster(t)
	t.Parallel()
	all := openAll(t, threeNodes(t), jetstream.Options{Partitions: 1, Replicas: 3})
	require.EqualValues(t, "replicated×3", all[0].log.Info().Durability)
	js, err := natsjs.New(all[0].nc)
	require.NoError(t, err)
	for _, replicas := range []int{1, 3} {
		want := map[int]eventlog.Durability{1: eventlog.DurabilityUnknown, 3: "replicated×3"}[replicas]
		s, err := js.Stream(t.Context(), layout.LogStream(0))
		require.NoError(t, err)
		config := s.CachedInfo().Config
		config.Replicas = replicas
		_, err = js.UpdateStream(t.Context(), config)
		require.NoError(t, err)
		require.Eventually(t, func() bool {
			_, err := all[0].log.(*jetstream.Log).Replicas(t.Context())
			return err == nil && all[0].log.Info().Durability == want
		}, time.Minute, 10*time.Millisecond, "%s", all[0].log.Info().Durability)
	}
}

// A leader under load counts no server as missing while all answer it.
func TestNoReplicaIsMissingUnderLoad(t *testing.T) {
	testkit.Full(t) // it keeps both cores busy
	t.Parallel()
	all := openAll(t, threeNodes(t), jetstream.Options{Partitions: 1, Replicas: 3})
	ctx, cancel := context.WithCancel(t.Context())
	var writers sync.WaitGroup
	for i := range 64 {
		writers.Go(func() {
			session, last := fmt.Sprint("s", i), uint64(0)
			for n := 0; ctx.Err() == nil; n++ {
				last, _ = eventlog.AppendOnce(ctx, all[0].log, session, fmt.Sprint("id", n), last, []eventlog.Entry{logtest.Text(session, "a")})
			}
		})
	}
	defer writers.Wait()
	defer cancel()
	found := map[string]int{}
	for end := time.Now().Add(8 * time.Second); time.Now().Before(end); { // the first five seconds show nothing
		all, err := all[0].log.(*jetstream.Log).Replicas(ctx)
		require.NoError(t, err)
		found[fmt.Sprint(all.Missing)]++
	}
	require.Len(t, found, 1, "%v", found)
	require.Contains(t, found, "[]")
}

// Nodes that start together all find the streams missing, and no server knows of the
// others yet: each creates them, and none fails. Nor does one fail when all restart and
// no stream has a leader.
func TestNodesOfAClusterOpenAtOnce(t *testing.T) {
	testkit.Long(t)
	t.Parallel() // most of it is waiting
	nodes := threeNodes(t)
	all := openAll(t, nodes, jetstream.Options{Partitions: 2, Replicas: 3})
	last, err := eventlog.AppendOnce(t.Context(), all[0].log, "s", "a", 0, []eventlog.Entry{logtest.Text("s", "a")})
	require.NoError(t, err)
	last, err = eventlog.AppendOnce(t.Context(), all[1].log, "s", "b", last, []eventlog.Entry{logtest.Text("s", "b")})
	require.NoError(t, err)
	for _, n := range all {
		require.EqualValues(t, "replicated×3", n.log.Info().Durability)
		require.Len(t, logtest.Records(t, n.log, "s"), 2)
	}
	for i := range all {
		all[i].close()
	}

	all = openAll(t, nodes, jetstream.Options{Replicas: 3})
	for _, n := range all {
		require.Equal(t, 2, n.log.Info().Partitions, "the number with which they were created")
		require.Len(t, logtest.Records(t, n.log, "s"), 2)
	}
	_, err = jetstream.Open(t.Context(), all[2].nc, &jetstream.Options{Partitions: 16, Replicas: 3})
	require.ErrorContains(t, err, "jetstream: the log has 2 partitions, not 16")
	_, err = eventlog.AppendOnce(t.Context(), all[2].log, "s", "c", last, []eventlog.Entry{logtest.Text("s", "c")})
	require.NoError(t, err)
}
