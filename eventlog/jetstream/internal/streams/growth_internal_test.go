package streams

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/internal/link"
	"github.com/helixd/helixd/eventlog/jetstream/internal/storetest"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
	"github.com/helixd/helixd/integration/testkit"
)

// moved returns the id of a session that more partitions would put elsewhere.
func moved(from, to int) string {
	for i := 0; ; i++ {
		id := fmt.Sprint("moved", i)
		if layout.Partition(id, from) != layout.Partition(id, to) {
			return id
		}
	}
}

// TestWhatALeaseLetsCreate: without a lease no session is created, and while a growth is
// closing only those that stay in their partition.
func TestWhatALeaseLetsCreate(t *testing.T) {
	l := &Set{permit: newPermit()}
	l.setNumbers([]int{1})
	moves, stays := moved(1, 4), "stays"
	for i := 0; layout.Partition(stays, 4) != 0; i++ {
		stays = fmt.Sprint("stays", i)
	}
	may, _ := l.mayCreate(stays)
	require.False(t, may)
	l.permit.extend(unlimited(), 4)
	may, changed := l.mayCreate(moves)
	require.False(t, may)
	may, _ = l.mayCreate(stays)
	require.True(t, may, "it is where it is by both numbers")
	l.permit.extend(unlimited(), 0)
	<-changed
	may, _ = l.mayCreate(moves)
	require.True(t, may)
}

// TestAGrowthWhoseProcessDiedIsCancelled: any other process cancels it after a while. The
// next growth succeeds.
func TestAGrowthWhoseProcessDiedIsCancelled(t *testing.T) {
	testkit.Long(t)
	ctx := link.WithTuning(t.Context(), link.Tuning{Announced: 1500 * time.Millisecond})
	conn, err := link.New(ctx, storetest.Connect(t), link.Options{Partitions: 1})
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	l, err := Open(t.Context(), conn)
	require.NoError(t, err)
	require.NoError(t, l.makeFor(t.Context(), ConfigsOf(l.Opts, []int{1, 4}, 0)[3]))
	seq, err := l.setGrowth(t.Context(), 0, 0, growth{Phase: announced, To: 4, By: "dead"})
	require.NoError(t, err)
	seq, err = l.setGrowth(t.Context(), 0, seq, growth{Phase: closing, To: 4, By: "dead"})
	require.NoError(t, err)
	watcher := &Set{Link: conn, permit: newPermit()}
	watcher.setNumbers([]int{1})
	require.Equal(t, growthSoon, watcher.lookAtGrowth(t.Context()))
	may, _ := watcher.mayCreate(moved(1, 4))
	require.False(t, may)
	watcher.seenSince = time.Now().Add(-growthPatience - time.Second)
	require.Equal(t, growthSoon, watcher.lookAtGrowth(t.Context()))
	g, at, err := l.growthOf(t.Context(), 0)
	require.NoError(t, err)
	require.Equal(t, cancelled, g.Phase)
	require.Greater(t, at, seq)
	_, err = l.setGrowth(t.Context(), 0, seq, growth{Phase: grown, To: 4, By: "dead"})
	require.Error(t, err, "the dead process was only slow: it is too late")
	require.Equal(t, growthLook, watcher.lookAtGrowth(t.Context()))
	may, _ = watcher.mayCreate("s")
	require.True(t, may)
	require.NoError(t, l.Grow(t.Context(), 4))
	require.Equal(t, 4, l.Partitions())
}

// opened returns a log's streams on a new server.
func opened(t *testing.T, hook link.Hook) *Set {
	t.Helper()
	conn, err := link.New(link.WithTuning(t.Context(), link.Tuning{Hook: hook}), storetest.Connect(t), link.Options{Partitions: 1})
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	l, err := Open(t.Context(), conn)
	require.NoError(t, err)
	l.StartGrowth()
	return l
}

// TestAGrowthTrustsTheLeaderOnly: a server that may no longer lead a stream may lack
// sessions, and a growth would put them elsewhere.
func TestAGrowthTrustsTheLeaderOnly(t *testing.T) {
	answers := 0
	l := opened(t, func(ctx context.Context, point string, do func(context.Context) error) error {
		if point == "$JS.API.STREAM.INFO."+layout.SegmentStream(0) {
			if answers--; answers < 0 {
				return errors.New("no answer")
			}
		}
		return do(ctx)
	})
	l.Opts.Replicas = 3
	for n := range 2 { // before the list, and after it
		answers = n
		_, _, err := l.beforeGrowth(t.Context(), 1)
		require.ErrorIs(t, err, eventlog.ErrUnavailable)
	}
	answers = 2
	_, _, err := l.beforeGrowth(t.Context(), 1)
	require.NoError(t, err)
}

// TestAGrowthThatCouldNotBeCancelled: the server fails while the log grows, and so does
// the growth. When the server is back, sessions can be created again, without another
// growth.
func TestAGrowthThatCouldNotBeCancelled(t *testing.T) {
	for name, failsAt := range map[string]int64{"it is cancelled then": 3, "it had succeeded": 4} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var down atomic.Bool
			var stored atomic.Int64 // announced, closing, the table, grown
			l := opened(t, func(ctx context.Context, point string, do func(context.Context) error) error {
				if down.Load() {
					return errors.New("no answer")
				}
				err := do(ctx)
				if point == "places" && stored.Add(1) == failsAt {
					down.Store(true)
					return errors.New("no answer")
				}
				return err
			})
			require.Error(t, l.Grow(t.Context(), 4))
			may, changed := l.mayCreate(moved(1, 4))
			require.False(t, may)
			down.Store(false)
			<-changed
			may, _ = l.mayCreate(moved(1, 4))
			require.True(t, may)
			if failsAt == 4 {
				require.Equal(t, 4, l.Partitions())
				return
			}
			require.Equal(t, 1, l.Partitions())
			require.NoError(t, l.Grow(t.Context(), 4))
			require.Equal(t, 4, l.Partitions())
		})
	}
}

// TestAPartitionIsTakenOverOnce: also if one of the new streams is not found at first.
func TestAPartitionIsTakenOverOnce(t *testing.T) {
	found, fails := 0, 0
	l := opened(t, func(ctx context.Context, point string, do func(context.Context) error) error {
		if point == "stream" && fails > 0 {
			if found++; found == fails {
				return errors.New("no answer")
			}
		}
		return do(ctx)
	})
	was := l.places.Load()
	require.NoError(t, l.Grow(t.Context(), 4))
	l.places.Store(was) // as a process that has not seen the growth
	taken := map[int]int{}
	l.OnPartition = append(l.OnPartition, func(p int, _ uint64) { taken[p]++ })
	for fails = 1; fails <= 3; fails++ {
		found = 0
		require.Error(t, l.takeOver(t.Context(), 4))
		require.Equal(t, 1, l.Partitions())
	}
	fails = 0
	require.NoError(t, l.takeOver(t.Context(), 4))
	require.Equal(t, map[int]int{1: 1, 2: 1, 3: 1}, taken)
}

// TestAForeignGrowthIsNone: to what no log can grow. Every process that creates sessions reads it.
func TestAForeignGrowthIsNone(t *testing.T) {
	for phase, to := range map[phase]int{closing: 1 << 32, grown: 1} {
		t.Run(string(phase), func(t *testing.T) {
			l := opened(t, func(ctx context.Context, _ string, do func(context.Context) error) error { return do(ctx) })
			require.NoError(t, l.makeFor(t.Context(), ConfigsOf(l.Opts, []int{1, 4}, 0)[3]))
			storetest.PublishForeign(t, l.Conn, layout.GrowthSubject(0), nil, fmt.Appendf(nil, `{"phase":%q,"to":%d}`, phase, to))
			pause := l.lookAtGrowth(t.Context())
			may, _ := l.mayCreate("s")
			require.True(t, may)
			require.Equal(t, growthLook, pause)
			again, err := Open(t.Context(), l.Link)
			require.NoError(t, err)
			require.Equal(t, 1, again.Partitions())
			require.NoError(t, again.Grow(t.Context(), 4))
			require.Equal(t, 4, again.Partitions())
		})
	}
}
