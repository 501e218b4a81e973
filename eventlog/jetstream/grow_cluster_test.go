package jetstream_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream"
	"github.com/helixd/helixd/eventlog/jetstream/internal/link"
	"github.com/helixd/helixd/eventlog/logtest"
	"github.com/helixd/helixd/integration/testkit"
)

// TestALogWithReplicasGrowsWhileItIsUsed: three nodes create sessions meanwhile, and all
// of them find every one.
func TestALogWithReplicasGrowsWhileItIsUsed(t *testing.T) {
	testkit.Long(t)
	t.Parallel() // most of it is waiting
	nodes := openAllIn(t, link.WithTuning(t.Context(), link.Tuning{Announced: 6 * time.Second}), threeNodes(t), jetstream.Options{Partitions: 1, Replicas: 3})
	var mu sync.Mutex
	heads := map[string]uint64{}
	ctx, stop := context.WithCancel(t.Context())
	var writers sync.WaitGroup
	defer writers.Wait()
	defer stop()
	for i, node := range nodes {
		writers.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				session := fmt.Sprintf("node%d-%d", i, n)
				last, err := eventlog.AppendOnce(t.Context(), node.log, session, "w", 0, []eventlog.Entry{logtest.Text(session, "a")})
				if err != nil {
					t.Error(session, err)
					return
				}
				mu.Lock()
				heads[session] = last
				mu.Unlock()
				select {
				case <-time.After(20 * time.Millisecond):
				case <-ctx.Done():
				}
			}
		})
	}
	require.NoError(t, nodes[0].log.(*jetstream.Log).Grow(t.Context(), 3))
	for _, node := range nodes {
		require.Eventually(t, func() bool { return node.log.Info().Partitions == 3 }, 10*time.Second, 10*time.Millisecond)
	}
	count := func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(heads)
	}
	before := count()
	require.Eventually(t, func() bool { return count() > before+60 }, time.Minute, time.Millisecond, "sessions by the new number")
	stop()
	writers.Wait()
	used := map[int]bool{}
	for session, head := range heads {
		for _, node := range nodes {
			at, err := node.log.Head(t.Context(), session)
			require.NoError(t, err, session)
			require.Equal(t, head, at, session)
		}
		used[nodes[1].log.(*jetstream.Log).PartitionOf(session)] = true
	}
	require.Len(t, used, 3)
}
