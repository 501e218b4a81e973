package snapshot_test

import (
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/logtest"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/integration/testkit"
	"github.com/helixd/helixd/projector"
	"github.com/helixd/helixd/projector/jsondoc"
	"github.com/helixd/helixd/snapshot"
	foldsmem "github.com/helixd/helixd/snapshot/memory"
)

// appendAll appends entries, some hundred at a time.
func appendAll(t *testing.T, log eventlog.Log, session string, head uint64, entries []eventlog.Entry) uint64 {
	t.Helper()
	for len(entries) > 0 {
		n := min(len(entries), 500)
		var err error
		head, err = log.Append(t.Context(), session, head, entries[:n])
		require.NoError(t, err)
		entries = entries[n:]
	}
	return head
}

// TestAnyStateIsTheFold: each state is the fold of its records and belongs to its caller,
// whatever was requested before, states or timelines.
func TestAnyStateIsTheFold(t *testing.T) {
	t.Parallel()
	const records = 3_000
	entries := logtest.LongSession("s", records)
	want := map[uint64]string{}
	live := new(projector.Tree)
	log := memory.New()
	head := appendAll(t, log, "s", 0, entries)
	for r, err := range log.Read(t.Context(), "s", 0, 0) {
		require.NoError(t, err)
		projector.Apply(live, r)
		if r.Sequence%97 == 0 || r.Sequence == head {
			want[r.Sequence] = marshal(t, live)
		}
	}
	rnd := testkit.Random(t)
	for _, saved := range []*foldsmem.Folds{nil, new(foldsmem.Folds)} {
		for _, timeline := range []bool{false, true} {
			o := &snapshot.StoreOptions{SaveEvery: 500}
			if saved != nil {
				o.Folds = saved
			}
			counted := &counting{Log: log}
			states := snapshot.New(counted, o)
			if timeline {
				_, err := states.Timeline(t.Context(), "s", 0)
				require.NoError(t, err)
			}
			for range 60 {
				n := 97 * (1 + rnd.Uint64N(records/97))
				if rnd.IntN(10) == 0 {
					n = head
				}
				counted.read = 0
				got, err := states.At(t.Context(), "s", n)
				if n == head {
					got, err = states.Head(t.Context(), "s")
				}
				require.NoError(t, err)
				require.Equal(t, want[n], marshal(t, got), "at %d", n)
				if timeline {
					require.LessOrEqual(t, counted.read, snapshot.KeyframeEvery+1)
				}
				// The caller may change it.
				got.CustomState = jsondoc.Doc{}
				projector.Apply(got, eventlog.Record{Sequence: got.Head + 1, Entry: userMessage(t, "mine")})
			}
		}
	}
}

// TestTheNextStateCostsLittle: a state shortly after a requested one is computed from
// that one.
func TestTheNextStateCostsLittle(t *testing.T) {
	t.Parallel()
	log := memory.New()
	appendAll(t, log, "s", 0, logtest.LongSession("s", 2_000))
	counted := &counting{Log: log}
	states := snapshot.New(counted, nil)
	n := uint64(1_500)
	_, err := states.At(t.Context(), "s", n)
	require.NoError(t, err)
	for _, step := range []uint64{1, 0, 7, 40} {
		counted.read = 0
		n += step
		_, err := states.At(t.Context(), "s", n)
		require.NoError(t, err)
		require.Equal(t, int(step)+1, counted.read)
	}
}

// TestAGrowingSessionIsFoldedOn: the state at the head of a growing session is computed
// from a few records each time, however short the session is.
func TestAGrowingSessionIsFoldedOn(t *testing.T) {
	t.Parallel()
	log := memory.New()
	counted := &counting{Log: log}
	states := snapshot.New(counted, nil)
	head := uint64(0)
	for _, entry := range logtest.LongSession("s", 300) {
		head = appendAll(t, log, "s", head, []eventlog.Entry{entry})
		counted.read = 0
		got, err := states.Head(t.Context(), "s")
		require.NoError(t, err)
		require.Equal(t, head, got.Head)
		require.LessOrEqual(t, counted.read, 16, "at %d", head)
	}
}

// TestStatesInMemoryAreOfThisLog: as for saved folds, a log that has lost its end or was
// erased is noticed.
func TestStatesInMemoryAreOfThisLog(t *testing.T) {
	t.Parallel()
	log := &swapped{memory.New()}
	states := snapshot.New(log, &snapshot.StoreOptions{Folds: new(foldsmem.Folds)})
	fill(t, log, 900)
	for _, n := range []uint64{300, 600, 900} {
		_, err := states.At(t.Context(), "s", n)
		require.NoError(t, err)
	}
	log.Log = memory.New()
	_, err := log.Append(t.Context(), "s", 0, []eventlog.Entry{userMessage(t, "another")})
	require.NoError(t, err)
	records := fill(t, log, 700)
	for _, n := range []uint64{650, 300, 701, 20} {
		got, err := states.At(t.Context(), "s", n)
		require.NoError(t, err)
		require.Equal(t, marshal(t, projector.Fold(records[:n]...)), marshal(t, got))
	}
	_, err = states.At(t.Context(), "s", 900)
	require.ErrorAs(t, err, new(*eventlog.CursorAheadError))
	got, err := states.Head(t.Context(), "s")
	require.NoError(t, err)
	require.Equal(t, marshal(t, projector.Fold(records...)), marshal(t, got))

	_, err = states.Erase(t.Context(), "s")
	require.NoError(t, err)
	_, err = states.At(t.Context(), "s", 300)
	require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
}

// TestFoldsAreStillSaved: because of states in memory, a session that is read all the
// time is not folded from its beginning; it must be saved for the next process even so.
func TestFoldsAreStillSaved(t *testing.T) {
	t.Parallel()
	log, folds := memory.New(), new(foldsmem.Folds)
	states := snapshot.New(log, &snapshot.StoreOptions{Folds: folds, SaveEvery: 500})
	entries := logtest.LongSession("s", 6_000)
	head := uint64(0)
	for n := 100; n <= len(entries); n += 100 {
		head = appendAll(t, log, "s", head, entries[n-100:n])
		_, err := states.Head(t.Context(), "s")
		require.NoError(t, err)
	}
	all, err := folds.Sequences(t.Context(), "s", snapshot.Packed)
	require.NoError(t, err)
	require.InDelta(t, 10, len(all), 2)
	require.Greater(t, all[len(all)-1], head-700)
	for range 3 { // older states are not saved again and again
		for n := uint64(1); n < head; n += 333 {
			_, err := states.At(t.Context(), "s", n)
			require.NoError(t, err)
		}
	}
	again, err := folds.Sequences(t.Context(), "s", snapshot.Packed)
	require.NoError(t, err)
	require.Equal(t, all, again)
}

// TestStatesForMany: one session is read at many places while it is written and while it
// is erased.
func TestStatesForMany(t *testing.T) {
	t.Parallel()
	log := memory.New()
	states := snapshot.New(log, &snapshot.StoreOptions{Folds: new(foldsmem.Folds), SaveEvery: 300})
	entries := logtest.LongSession("s", 2_000)
	head := appendAll(t, log, "s", 0, entries[:1_000])
	rnd := testkit.Random(t)
	var wg sync.WaitGroup
	for range 4 {
		own := rand.New(rand.NewPCG(rnd.Uint64(), 1))
		wg.Go(func() {
			for range 40 {
				n := 1 + own.Uint64N(1_000)
				got, err := states.At(t.Context(), "s", n)
				if err != nil || got.Head != n {
					t.Error(n, err)
				}
				marshal(t, got)
				if _, err := states.Timeline(t.Context(), "s", 0); err != nil {
					t.Error(err)
				}
			}
		})
	}
	appendAll(t, log, "s", head, entries[1_000:])
	wg.Wait()
	for range 2 {
		wg.Go(func() {
			for range 40 {
				_, _ = states.At(t.Context(), "s", 1_500)
				_, _ = states.Timeline(t.Context(), "s", 0)
			}
		})
	}
	_, err := states.Erase(t.Context(), "s")
	require.NoError(t, err)
	wg.Wait()
	_, err = states.Head(t.Context(), "s")
	require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
}

// A fold of few records that are large is kept as well.
func TestAFoldOfLargeRecordsIsKept(t *testing.T) {
	t.Parallel()
	log := memory.New()
	head := appendAll(t, log, "s", 0, []eventlog.Entry{userMessage(t, strings.Repeat("x", 1<<20)), userMessage(t, "more")})
	counted := &counting{Log: log}
	states := snapshot.New(counted, nil)
	for _, want := range []int{2, 1, 1} { // then only the last record, to check that it is the same
		counted.read = 0
		got, err := states.Head(t.Context(), "s")
		require.NoError(t, err)
		require.Equal(t, head, got.Head)
		require.Equal(t, want, counted.read)
	}
}
