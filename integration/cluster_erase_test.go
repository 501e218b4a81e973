package integration_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream"
	"github.com/helixd/helixd/eventlog/jetstream/jetstreamtest"
	"github.com/helixd/helixd/eventlog/logtest"
	"github.com/helixd/helixd/integration/testkit"
)

// TestErasureFromOutsideReplicasIsPending: servers of a cluster keep bytes in logs of
// their own, which they compact when they like, and nobody here sees their files. The
// answer says so.
func TestErasureFromOutsideReplicasIsPending(t *testing.T) {
	testkit.Long(t)
	t.Parallel() // most of it is waiting
	const secret = "a-secret-nobody-may-find"
	c := newCluster(t)
	found := func() (files []string) {
		for _, s := range c.servers {
			some, err := testkit.Scan(t.Context(), s.StoreDir(), secret)
			require.NoError(t, err)
			files = append(files, some...)
		}
		return files
	}
	log := jetstreamtest.Open(t, connect(t, c.url()), &jetstream.Options{Replicas: 3, Partitions: 1})
	ctx := t.Context()
	head := uint64(0)
	for i := range 3 {
		var err error
		head, err = eventlog.AppendOnce(ctx, log, "s", fmt.Sprint("w", i), head, []eventlog.Entry{
			logtest.Text("s", secret), logtest.Text("s", strings.Repeat(secret, 20<<10)),
		})
		require.NoError(t, err)
	}
	require.NoError(t, log.Seal(ctx, "s"))
	require.Eventually(t, func() bool { return len(found()) > 0 }, clusterPatience, 10*time.Millisecond)

	e, err := log.Erase(ctx, "s")
	require.NoError(t, err)
	require.True(t, e.Pending)
	require.Equal(t, 6, e.Records)
	require.Contains(t, e.Left, "Raft logs of the NATS servers")
	_, err = log.FinishErasures(ctx, true)
	require.NoError(t, err)
	e, err = log.Erase(ctx, "s")
	require.NoError(t, err)
	require.True(t, e.Pending, "nobody has looked")
	_, err = log.Head(ctx, "s")
	require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
	require.Eventually(t, func() bool { // once each replica has done it, too
		return !slices.ContainsFunc(found(), func(file string) bool { return !strings.Contains(file, "_js_") })
	}, clusterPatience, 10*time.Millisecond, "only in the servers' own logs")
}
