package snapshot_test

import (
	"context"
	"fmt"
	"iter"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/logtest"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/integration/testkit"
	"github.com/helixd/helixd/projector"
	"github.com/helixd/helixd/snapshot"
	foldsmem "github.com/helixd/helixd/snapshot/memory"
)

// TestATipIsTheFold: whatever was appended through tips or by others, or read in between,
// a current tip and every other state are the fold of the records.
func TestATipIsTheFold(t *testing.T) {
	testkit.Sequential(t)
	t.Parallel()
	rnd := testkit.Random(t)
	log := memory.New()
	states := snapshot.New(log, &snapshot.StoreOptions{SaveEvery: 100, Folds: new(foldsmem.Folds)})
	want := new(projector.Tree)
	wanted := map[uint64]string{0: marshal(t, want)}
	entries, held := logtest.LongSession("s", 1500), 0
	next := func() (out []eventlog.Entry) {
		n := 1 + rnd.IntN(3)
		for ; n > 0 && len(entries) > 0; n-- {
			out, entries = append(out, entries[0]), entries[1:]
		}
		return out
	}
	learn := func() {
		for r, err := range eventlog.After(t.Context(), log, "s", want.Head) {
			require.NoError(t, err)
			projector.Apply(want, r)
			wanted[r.Sequence] = marshal(t, want)
		}
	}
	for i := 0; len(entries) > 0; i++ {
		switch rnd.IntN(6) {
		case 0: // another node
			_, err := log.Append(t.Context(), "s", want.Head, next())
			require.NoError(t, err)
			learn()
		case 1: // a reader, which may change the state
			if want.Head == 0 {
				continue
			}
			got, err := states.Head(t.Context(), "s")
			require.NoError(t, err)
			require.Equal(t, wanted[want.Head], marshal(t, got))
			projector.Apply(got, eventlog.Record{Sequence: got.Head + 1, Entry: userMessage(t, "mine")})
			n := 1 + rnd.Uint64N(want.Head)
			got, err = states.At(t.Context(), "s", n)
			require.NoError(t, err)
			require.Equal(t, wanted[n], marshal(t, got), "at %d", n)
		default:
			tip, err := states.Tip(t.Context(), "s")
			require.NoError(t, err)
			require.Equal(t, wanted[tip.Tree().Head], marshal(t, tip.Tree()))
			if tip.Current() {
				require.Equal(t, want.Head, tip.Tree().Head)
			} else if held++; tip.Tree().Head < want.Head {
				more := next()
				_, err := tip.Append(t.Context(), fmt.Sprint("lost-", i), more)
				require.ErrorAs(t, err, new(*eventlog.ConflictError))
				require.NoError(t, tip.Read(t.Context()))
				require.True(t, tip.Current())
				entries = append(more, entries...)
			}
			writer := fmt.Sprint("writer-", i)
			if rnd.IntN(2) == 0 {
				writer = eventlog.KeyedWriter(fmt.Sprint("key-", i), "digest")
			}
			last, err := tip.Append(t.Context(), writer, next())
			require.NoError(t, err)
			learn()
			require.Equal(t, want.Head, last)
			require.Equal(t, wanted[last], marshal(t, tip.Tree()))
			tip.Release()
		}
	}
	require.NotZero(t, held, "states are kept")
}

// TestATipCostsNothing: the store that was the last one to append to a session has its
// state.
func TestATipCostsNothing(t *testing.T) {
	t.Parallel()
	counted := &counting{Log: memory.New()}
	states := snapshot.New(counted, nil)
	for i := range 600 {
		counted.read = 0
		tip, err := states.Tip(t.Context(), "s")
		require.NoError(t, err)
		_, err = tip.Append(t.Context(), fmt.Sprint("w", i), []eventlog.Entry{userMessage(t, "x")})
		require.NoError(t, err)
		tip.Release()
		if i > 0 {
			require.Zero(t, counted.read)
		}
	}
	counted.read = 0
	_, err := states.At(t.Context(), "s", 300)
	require.NoError(t, err)
	require.LessOrEqual(t, counted.read, snapshot.KeyframeEvery+1, "states are left on the way")
}

// TestATipOfAnErasedSession is not kept, nor is what was folded while it was erased.
func TestATipOfAnErasedSession(t *testing.T) {
	t.Parallel()
	states := snapshot.New(memory.New(), nil)
	add := func() *snapshot.Tip {
		tip, err := states.Tip(t.Context(), "s")
		require.NoError(t, err)
		_, err = tip.Append(t.Context(), "w", []eventlog.Entry{userMessage(t, "x")})
		require.NoError(t, err)
		return tip
	}
	first := add()
	_, err := states.Erase(t.Context(), "s")
	require.NoError(t, err)
	first.Release()
	tip, err := states.Tip(t.Context(), "s")
	require.NoError(t, err)
	require.True(t, tip.Current())
	require.Zero(t, tip.Tree().Head)
	tip.Release()
}

// TestATipThatRetentionHasPassed: the records after a state in memory may be gone when
// the state is next used. The append then reads the remaining ones, and does not wait for
// those that are gone.
func TestATipThatRetentionHasPassed(t *testing.T) {
	log := trimmedLog{Log: memory.New()}
	store := snapshot.New(&log, nil)
	tip, err := store.Tip(t.Context(), "s")
	require.NoError(t, err)
	kept, err := tip.Append(t.Context(), "first", []eventlog.Entry{logtest.Text("s", "a")})
	require.NoError(t, err)
	tip.Release()
	head := kept
	for range 5 {
		head, err = log.Append(t.Context(), "s", head, []eventlog.Entry{logtest.Text("s", "b")})
		require.NoError(t, err)
	}
	log.floor.Store(head - 1)
	tip, err = store.Tip(t.Context(), "s")
	require.NoError(t, err)
	defer tip.Release()
	_, err = tip.Append(t.Context(), "second", []eventlog.Entry{logtest.Text("s", "c")})
	var conflict *eventlog.ConflictError
	require.ErrorAs(t, err, &conflict)
}

// trimmedLog reports that records up to a floor are gone.
type trimmedLog struct {
	eventlog.Log
	floor atomic.Uint64
}

func (l *trimmedLog) Read(ctx context.Context, session string, from, to uint64) iter.Seq2[eventlog.Record, error] {
	if floor := l.floor.Load(); from > 0 && from < floor {
		return func(yield func(eventlog.Record, error) bool) {
			yield(eventlog.Record{}, &eventlog.TrimmedError{Cursor: from, Floor: floor})
		}
	}
	return l.Log.Read(ctx, session, from, to)
}

// TestATipFindsAnEarlierTry: the result of a repeated append is the one that was stored
// before, even if the repetition has other content.
func TestATipFindsAnEarlierTry(t *testing.T) {
	log := memory.New()
	store := snapshot.New(log, nil)
	tip, err := store.Tip(t.Context(), "s")
	require.NoError(t, err)
	_, err = tip.Append(t.Context(), "first", []eventlog.Entry{logtest.Text("s", "a")})
	require.NoError(t, err)
	tip.Release()
	tip, err = store.Tip(t.Context(), "s")
	require.NoError(t, err)
	stored, err := eventlog.AppendOnce(t.Context(), log, "s", "key", tip.Tree().Head, []eventlog.Entry{logtest.Text("s", "stored")})
	require.NoError(t, err)
	last, err := tip.Append(t.Context(), "key", []eventlog.Entry{logtest.Text("s", "repeated")})
	require.NoError(t, err)
	require.Equal(t, stored, last)
	want, err := snapshot.New(log, nil).Head(t.Context(), "s")
	require.NoError(t, err)
	require.Equal(t, want, tip.Tree())
	tip.Release()
}
