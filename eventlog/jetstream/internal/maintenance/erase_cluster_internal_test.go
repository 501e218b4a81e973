package maintenance

import (
	"encoding/json"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/eventlog/jetstream/internal/link"
	"github.com/helixd/helixd/eventlog/jetstream/internal/store"
	"github.com/helixd/helixd/eventlog/jetstream/internal/storetest"
	"github.com/helixd/helixd/eventlog/jetstream/internal/streams"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
	"github.com/helixd/helixd/integration/testkit"
)

// openCluster opens a log of three replicas on n servers, once on each.
func openCluster(t *testing.T, n int) []*Maintenance {
	t.Helper()
	return storetest.StartCluster(t, n, func(srv *embed.Server, nc *nats.Conn) (*Maintenance, error) {
		l, err := Open(t.Context(), nc, link.Options{Partitions: 1, Replicas: 3, Server: srv})
		if err == nil {
			t.Cleanup(func() { l.Close() })
		}
		return l, err
	})
}

// TestAnErasureEndsOnMoreServersThanReplicas: a session's streams are not all on the
// same servers of a cluster.
func TestAnErasureEndsOnMoreServersThanReplicas(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	logs := openCluster(t, 4)
	l := logs[0]
	on := func(stream string) []string {
		s, err := l.FindStream(t.Context(), stream)
		require.NoError(t, err)
		return slices.Sorted(slices.Values(streams.ServersOf(s.CachedInfo())))
	}
	if before := on(layout.SegmentStream(0)); slices.Equal(before, on(layout.LogStream(0))) {
		what, _ := json.Marshal(map[string]string{"peer": before[0]})
		m, err := l.Conn.Request("$JS.API.STREAM.PEER.REMOVE."+layout.SegmentStream(0), what, 10*time.Second)
		require.NoError(t, err)
		require.NotContains(t, string(m.Data), "error")
		require.Eventually(t, func() bool {
			now := on(layout.SegmentStream(0))
			return len(now) == 3 && !slices.Contains(now, before[0])
		}, time.Minute, 50*time.Millisecond)
	}

	// The remains of an older version's erasure are done when each server has reported.
	_, err := l.StoreMessage(t.Context(), &nats.Msg{Subject: layout.ErasedSubject("old", 0), Header: nats.Header{}})
	require.NoError(t, err)
	n, err := l.FinishErasures(t.Context(), true)
	require.NoError(t, err)
	require.Zero(t, n)

	// So is a segment that arrived after all had reported for the rest.
	storetest.Appended(t, l, "late", 0, storetest.TextEntries("x", 3))
	tombstone, err := l.wantTombstone(t.Context(), "late", 0)
	require.NoError(t, err)
	mark, err := l.beginAt(t.Context(), "late", tombstone)
	require.NoError(t, err)
	_, err = l.RemoveAll(t.Context(), "late", mark)
	require.NoError(t, err)
	for _, other := range logs {
		require.NoError(t, other.Report(t.Context(), "late", mark))
	}
	_, err = l.StoreMessage(t.Context(), &nats.Msg{Subject: layout.SegmentSubject("late", 0), Data: []byte("1"), Header: nats.Header{}})
	require.NoError(t, err)
	e, err := l.erased(t.Context(), "late")
	require.NoError(t, err)
	require.True(t, e.Pending)
	require.NotEmpty(t, e.WaitsFor)

	storetest.Appended(t, l, "s", 0, storetest.TextEntries("x", 30))
	e, err = l.Erase(t.Context(), "s")
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		for i, l := range logs {
			if _, err := l.FinishErasures(t.Context(), i == 0); err != nil {
				t.Log(err)
			}
		}
		mark, err := l.ErasingOf(t.Context(), "s")
		if err != nil || mark.At == 0 || mark.Done {
			return err == nil
		}
		e, err = l.Erase(t.Context(), "s")
		return err == nil && !e.Pending
	}, 40*time.Second, 100*time.Millisecond, "%+v", &e)
}

// TestNodesChangeAMarkAtOnce: while the servers replicate one node's change of a mark, they
// refuse another one's with an error of its own. It is tried again, so that no change is lost.
func TestNodesChangeAMarkAtOnce(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	logs := openCluster(t, 3)
	const each, times = 3, 5
	var nodes sync.WaitGroup
	for _, l := range logs {
		for range each {
			nodes.Go(func() {
				for range times {
					_, err := l.Change(t.Context(), "s", func(e *store.Erasing) bool {
						e.Round++
						return true
					})
					if !assert.NoError(t, err) {
						return
					}
				}
			})
		}
	}
	nodes.Wait()
	e, err := logs[0].ErasingOf(t.Context(), "s")
	require.NoError(t, err)
	require.EqualValues(t, len(logs)*each*times, e.Round)
}
