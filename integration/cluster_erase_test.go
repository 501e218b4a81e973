package integration_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream"
	"github.com/helixd/helixd/eventlog/logtest"
)

// TestErasureFromReplicasIsPendingUntilNothingIsFound: servers of a cluster
// keep bytes in logs of their own, which they compact when they like.
func TestErasureFromReplicasIsPendingUntilNothingIsFound(t *testing.T) {
	t.Parallel() // most of it is waiting
	const secret = "a-secret-nobody-may-find"
	c := newCluster(t)
	found := func(texts ...string) (files []string) {
		for _, s := range c.servers {
			some, err := embed.Scan(t.Context(), s.StoreDir(), texts...)
			require.NoError(t, err)
			files = append(files, some...)
		}
		return files
	}
	open := func(scan func(...string) []string) *jetstream.Log {
		o := &jetstream.Options{Replicas: 3, Partitions: 1}
		if scan != nil {
			o.Scan = func(_ context.Context, texts []string) (bool, error) { return len(scan(texts...)) > 0, nil }
		}
		return openLog(t, connect(t, c.url()), o).(*jetstream.Log)
	}
	log := open(nil)
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
	require.Eventually(t, func() bool { return len(found(secret)) > 0 }, clusterPatience, 10*time.Millisecond)

	e, err := log.Erase(ctx, "s")
	require.NoError(t, err)
	require.Equal(t, eventlog.Erasure{Pending: true, Records: 6}, e)
	e, err = log.Erase(ctx, "s")
	require.NoError(t, err)
	require.True(t, e.Pending, "nobody has looked")
	_, err = log.Head(ctx, "s")
	require.ErrorIs(t, err, eventlog.ErrSessionNotFound)

	log = open(found)
	e, err = log.Erase(ctx, "s")
	require.NoError(t, err)
	require.True(t, e.Pending, "what is left is found")
	require.Eventually(t, func() bool { // once each replica has done it, too
		return !slices.ContainsFunc(found(secret), func(file string) bool { return !strings.Contains(file, "_js_") })
	}, clusterPatience, 10*time.Millisecond, "only in the servers' own logs")

	// When they compact is theirs to decide: a restart of all does not do it
	// for sure. So the files are as they would be.
	log = open(func(...string) []string { return nil })
	e, err = log.Erase(ctx, "s")
	require.NoError(t, err)
	require.False(t, e.Pending)
	_, err = log.Erase(ctx, "s")
	require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
}
