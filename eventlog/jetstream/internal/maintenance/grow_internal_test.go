package maintenance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	natsjs "github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/internal/feed"
	"github.com/helixd/helixd/eventlog/jetstream/internal/link"
	"github.com/helixd/helixd/eventlog/jetstream/internal/store"
	"github.com/helixd/helixd/eventlog/jetstream/internal/storetest"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
	"github.com/helixd/helixd/integration/testkit"
)

// TestALogGrows: existing sessions stay in their partitions, in every state, and new ones
// are where the new number puts them.
func TestALogGrows(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	g := newGrowable(t, 1)
	ids := map[string]string{}
	for _, kind := range []string{"live", "sealed", "trimmed", "erased", "forgotten", "wanted", "tombstone", "large", "late"} {
		ids[kind] = elsewhere(kind, 1, 4)
	}
	ctx := t.Context()
	for _, kind := range []string{"sealed", "trimmed"} {
		for range 5 {
			g.append(ids[kind], 3)
			require.NoError(t, g.log.Seal(ctx, ids[kind]))
		}
	}
	_, err := g.log.purgeAll(ctx, 0, time.Now)
	require.NoError(t, err)
	trimmed := g.records(ids["trimmed"])
	floor, err := g.log.Trim(ctx, ids["trimmed"], trimmed[7].Sequence)
	require.NoError(t, err)
	require.NotZero(t, floor)
	g.append(ids["live"], 3)
	large := bytes.Repeat([]byte("large "), 100_000)
	entries := storetest.TextEntries(ids["large"], 2)
	entries[1].Payload = fmt.Appendf(nil, "{%q: %q}", "text", large)
	storetest.Appended(t, g.log, ids["large"], 0, entries)
	for _, kind := range []string{"erased", "forgotten"} {
		g.append(ids[kind], 3)
		g.erase(ids[kind])
	}
	require.NoError(t, finishAt(ctx, g.log, ids["forgotten"], time.Now().Add(2*store.DoneFor)))
	for _, kind := range []string{"wanted", "tombstone"} {
		head := g.append(ids[kind], 3)
		require.NoError(t, g.log.Want(ctx, ids[kind], head))
	}
	_, err = g.log.tombstone(ctx, ids["tombstone"])
	require.NoError(t, err)
	kept := []string{"live", "sealed", "large"}
	before := map[string][]eventlog.Record{}
	for _, kind := range kept {
		before[kind] = g.records(ids[kind])
	}
	last, err := g.log.LastOf(ctx, layout.LogStream(0))
	require.NoError(t, err)

	g.restart(4)
	require.Equal(t, 4, g.log.Info().Partitions)
	ends, err := g.log.Ends(ctx)
	require.NoError(t, err)
	begins := last + 1<<24 // room for what is appended while it grows
	require.Equal(t, []uint64{last, begins, begins, begins}, ends, "sequences are never given again")
	check := func() {
		for kind, id := range ids {
			if kind == "forgotten" || kind == "late" {
				require.NotZero(t, g.log.PartitionOf(id), "%s: nothing was left of it", kind)
				continue
			}
			require.Zero(t, g.log.PartitionOf(id), kind)
		}
	}
	check()
	for _, kind := range kept {
		require.Equal(t, before[kind], g.records(ids[kind]), kind)
	}
	var trim *eventlog.TrimmedError
	for _, err := range g.log.Read(ctx, ids["trimmed"], 0, 0) {
		require.ErrorAs(t, err, &trim)
		break
	}
	require.Equal(t, floor, trim.Floor)
	// Interrupted erasures end where the sessions were.
	_, err = g.log.finishErasures(ctx, true, time.Now())
	require.NoError(t, err)
	for _, kind := range []string{"wanted", "tombstone"} {
		_, err = g.log.Head(ctx, ids[kind])
		require.ErrorIs(t, err, eventlog.ErrSessionNotFound, kind)
		e, err := g.log.ErasingOf(ctx, ids[kind])
		require.NoError(t, err)
		require.True(t, e.Done, kind)
	}
	followed := make(chan eventlog.Record, 1)
	follow, stop := context.WithCancel(ctx)
	defer stop()
	head := before["live"][2].Sequence
	go func() {
		for r, err := range whole(g.log).Follow(follow, ids["live"], head) {
			if err != nil {
				return
			}
			followed <- r
		}
	}()
	next := g.append(ids["live"], 1)
	require.Equal(t, next, (<-followed).Sequence)
	stop()
	for round := range 2 { // before a restart, and after it
		for kind, id := range ids {
			if kind == "large" {
				continue
			}
			require.Greater(t, g.append(id, 2), last, kind)
			require.NoError(t, g.log.Seal(ctx, id))
		}
		for i := range 20 {
			g.append(fmt.Sprint("new", round, i), 2)
		}
		g.verified()
		g.restart(0)
		require.Equal(t, 4, g.log.Info().Partitions)
		check()
		require.Equal(t, before["sealed"], g.records(ids["sealed"])[:15])
		require.Equal(t, before["large"], g.records(ids["large"]))
		require.Len(t, g.records(ids["erased"]), 2+2*round)
		_, err = g.log.purgeAll(ctx, 0, time.Now)
		require.NoError(t, err)
	}
	used := map[int]bool{}
	for _, id := range g.verified() {
		used[g.log.PartitionOf(id)] = true
	}
	require.Len(t, used, 4)
	more, err := g.log.Trim(ctx, ids["trimmed"], trimmed[12].Sequence)
	require.NoError(t, err)
	require.Greater(t, more, floor)
	for id, err := range g.log.Sessions(ctx) {
		require.NoError(t, err)
		g.erase(id)
	}
	_, err = g.log.finishErasures(ctx, true, time.Now().Add(2*store.DoneFor))
	require.NoError(t, err)
	check()
	require.Empty(t, g.verified())
	g.restart(0)
	check()
}

// TestALogGrowsAgain: sessions created under each number stay where it has put them.
func TestALogGrowsAgain(t *testing.T) {
	testkit.Long(t)
	testkit.Sequential(t)
	t.Parallel()
	g := newGrowable(t, 1)
	at := map[string]int{}
	heads := map[string]uint64{}
	for i, n := range []int{1, 2, 5, 12} {
		if i > 0 {
			g.restart(n)
		}
		for session, p := range at {
			require.Equal(t, p, g.log.PartitionOf(session), "%d partitions: %s", n, session)
			require.Len(t, g.records(session), 1)
			require.Equal(t, heads[session], g.records(session)[0].Sequence)
		}
		for j := range 30 {
			session := fmt.Sprintf("%d-%d", n, j)
			heads[session] = g.append(session, 1)
			at[session] = g.log.PartitionOf(session)
			require.Equal(t, layout.Partition(session, n), at[session])
		}
	}
	require.Equal(t, []int{1, 2, 5, 12}, g.log.Placement().Partitions)
	require.Len(t, g.verified(), len(at))
	g.stop()
	g.connect()
	require.ErrorContains(t, g.open(link.Options{Partitions: 5, Grow: true}), `stream HELIX_LOG_0 was created for "1,2,5,12" partitions, not 5`)
	for _, o := range []link.Options{{ReadOnly: true}, {Existing: true}, {Partitions: 12}} {
		require.NoError(t, g.open(o))
		for session, p := range at {
			require.Equal(t, p, g.log.PartitionOf(session))
		}
		require.NoError(t, g.log.Close())
	}
}

// TestACreatingAppendIsRepeatedAfterAGrowth: it finds the session that it created.
func TestACreatingAppendIsRepeatedAfterAGrowth(t *testing.T) {
	t.Parallel()
	g := newGrowable(t, 1)
	session := elsewhere("s", 1, 4)
	entries := storetest.TextEntries(session, 2)
	first, err := eventlog.AppendOnce(t.Context(), whole(g.log), session, "w", 0, entries)
	require.NoError(t, err)
	g.restart(4)
	again, err := eventlog.AppendOnce(t.Context(), whole(g.log), session, "w", 0, entries)
	require.NoError(t, err)
	require.Equal(t, first, again)
	require.Len(t, g.records(session), 2)
}

// TestAGrowthThatIsInterrupted: wherever it is interrupted, the log is as before, and the
// next growth succeeds, also to another number, and with sessions that were created in
// between.
func TestAGrowthThatIsInterrupted(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	testkit.Sequential(t)
	died := errors.New("died")
	for _, between := range []bool{false, true} {
		for at := range testkit.Positions(4) {
			g := newGrowable(t, 1)
			old := elsewhere("old", 1, 3)
			g.append(old, 2)
			g.stop()
			g.connect()
			n := 0
			err := g.openAs(withHook(t.Context(), func(ctx context.Context, point string, do func(context.Context) error) error {
				if slices.Contains([]string{"create", "places", "grow"}, point) {
					if n++; n == at+1 {
						return died
					}
				}
				return do(ctx)
			}), link.Options{Partitions: 4, Grow: true})
			if err == nil {
				require.Equal(t, 4, g.log.Info().Partitions)
				require.GreaterOrEqual(t, n, 9, "6 streams for the partitions, one for the table, the table, the number")
				break
			}
			require.ErrorIs(t, err, died)
			growTo := 4
			if between {
				g.restart(0)
				if g.log.Info().Partitions == 1 {
					growTo = 3
				} else { // it died after the log had grown
					require.Equal(t, 4, g.log.Info().Partitions)
				}
				for i := range 10 {
					g.append(fmt.Sprint("between", i), 3)
				}
			}
			g.restart(growTo)
			require.Equal(t, growTo, g.log.Info().Partitions)
			require.Zero(t, g.log.PartitionOf(old))
			last := g.append(old, 1)
			require.Len(t, g.records(old), 3)
			for i := range 10 {
				require.Greater(t, g.append(fmt.Sprint("between", i), 1), last-1)
			}
			if between {
				require.Len(t, g.records("between0"), 4)
				g.restart(4)
				require.Len(t, g.records("between9"), 4)
			}
			g.verified()
			g.stop()
		}
	}
}

// TestALogDoesNotGrowOverAForeignStream: it names the stream, and stays as it is.
func TestALogDoesNotGrowOverAForeignStream(t *testing.T) {
	t.Parallel()
	g := newGrowable(t, 1)
	js, err := natsjs.New(g.nc)
	require.NoError(t, err)
	_, err = js.CreateStream(t.Context(), natsjs.StreamConfig{Name: layout.LogStream(1), Subjects: []string{"x"}})
	require.NoError(t, err)
	require.ErrorContains(t, g.open(link.Options{Partitions: 2, Grow: true}), "stream HELIX_LOG_1 that is not of the log")
	require.NoError(t, g.open(link.Options{}))
	require.Equal(t, 1, g.log.Info().Partitions)
	g.append("s", 1)
}

// TestALogGrowsWhileItIsUsed: two processes append to, create and follow sessions
// meanwhile. None of it fails, both find every session, and a feed has each record once.
func TestALogGrowsWhileItIsUsed(t *testing.T) {
	testkit.Long(t)
	t.Parallel() // most of it is waiting
	a := openLogAs(t, link.WithTuning(t.Context(), link.Tuning{Announced: 6 * time.Second}), link.Options{Partitions: 1})
	opts := a.Conn.Opts
	nc, err := opts.Connect()
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	b, err := Open(t.Context(), nc, link.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { b.Close() })
	logs := []*Maintenance{a, b}
	heads := [2]map[string]uint64{{}, {}} // of what was acknowledged, by log
	ctx, stop := context.WithCancel(t.Context())
	var created atomic.Int64
	var writers sync.WaitGroup
	defer writers.Wait()
	defer stop()
	for i, log := range logs {
		writers.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				session := fmt.Sprintf("log%d-%d", i, n)
				last, err := log.Append(t.Context(), session, 0, storetest.TextEntries(session, 1))
				if err == nil {
					last, err = log.Append(t.Context(), session, last, storetest.TextEntries(session, 2))
				}
				if err != nil {
					t.Error(session, err)
					return
				}
				heads[i][session] = last
				created.Add(1)
				time.Sleep(2 * time.Millisecond) // thousands would do no more
			}
		})
	}
	require.NoError(t, a.Grow(t.Context(), 4))
	require.Equal(t, 4, a.Partitions())
	require.Eventually(t, func() bool { return b.Partitions() == 4 }, 5*time.Second, time.Millisecond)
	before := created.Load()
	require.Eventually(t, func() bool { return created.Load() > before+100 }, time.Minute, time.Millisecond, "sessions by the new number")
	stop()
	writers.Wait()
	all, used := map[string]uint64{}, map[int]bool{}
	maps.Copy(all, heads[0])
	maps.Copy(all, heads[1])
	for session, head := range all {
		for _, log := range logs {
			at, err := log.Head(t.Context(), session)
			require.NoError(t, err, session)
			require.Equal(t, head, at, session)
		}
		require.Equal(t, a.PartitionOf(session), b.PartitionOf(session))
		used[a.PartitionOf(session)] = true
	}
	require.Len(t, used, 4)
	require.Equal(t, a.Placement(), b.Placement())
	fed := map[string]int{}
	ends, err := b.Ends(t.Context())
	require.NoError(t, err)
	for p := range b.Partitions() {
		for f, err := range feed.New(b.Store).Feed(t.Context(), p, 0) {
			require.NoError(t, err)
			if f.Session != "" {
				fed[f.Session]++
			}
			if f.Sequence >= ends[p] {
				break
			}
		}
	}
	require.Len(t, fed, len(all))
	for session, n := range fed {
		require.Equal(t, 3, n, session)
	}
}

// TestAnAppendThatIsStoredAfterAGrowth: it creates its session where the new number puts
// it, once; the message that the server has stored in the old place is not visible, and
// is removed: no byte of it is left when the session is erased.
func TestAnAppendThatIsStoredAfterAGrowth(t *testing.T) {
	g := newGrowable(t, 1)
	g.append("other", 1)
	session := elsewhere("s", 1, 4)
	require.NoError(t, g.log.Close())
	late := true
	require.NoError(t, g.openAs(withHook(t.Context(), func(ctx context.Context, point string, do func(context.Context) error) error {
		if late && point == "publish "+layout.LogSubject(session, 0) {
			late = false
			require.NoError(t, g.log.Grow(ctx, 4))
		}
		return do(ctx)
	}), link.Options{}))
	head := storetest.Appended(t, g.log, session, 0, storetest.TextEntries(secretText, 2))
	require.False(t, late)
	require.NotZero(t, g.log.PartitionOf(session))
	require.Len(t, g.records(session), 2)
	require.Equal(t, head, g.records(session)[1].Sequence)
	n, err := g.log.Count(t.Context(), layout.LogStream(0), layout.LogSubject(session, 0))
	require.NoError(t, err)
	require.EqualValues(t, 2, n, "the server has stored it")
	ends, err := g.log.Ends(t.Context())
	require.NoError(t, err)
	for f, err := range feed.New(g.log.Store).Feed(t.Context(), 0, 0) {
		require.NoError(t, err)
		require.NotEqual(t, session, f.Session)
		if f.Sequence == ends[0] {
			break
		}
	}
	_, err = g.log.finishErasures(t.Context(), true, time.Now())
	require.NoError(t, err)
	n, err = g.log.Count(t.Context(), layout.LogStream(0), layout.LogSubject(session, 0))
	require.NoError(t, err)
	require.EqualValues(t, 2, n, "others may come yet")
	_, err = g.log.finishErasures(t.Context(), true, time.Now().Add(7*24*time.Hour))
	require.NoError(t, err)
	n, err = g.log.Count(t.Context(), layout.LogStream(0), layout.LogSubject(session, 0))
	require.NoError(t, err)
	require.Zero(t, n)
	require.ElementsMatch(t, []string{"other", session}, g.verified())
	g.erase(session)
	_, err = g.log.finishErasures(t.Context(), true, time.Now())
	require.NoError(t, err)
	g.stop()
	files, err := testkit.Scan(t.Context(), g.dir, secretText)
	require.NoError(t, err)
	require.Empty(t, files)
}
