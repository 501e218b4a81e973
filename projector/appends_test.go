package projector_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/integration/testkit"
	"github.com/helixd/helixd/projector"
)

// keyed is an append of n records with an idempotency key.
func keyed(key, digest string, n int) []eventlog.Entry {
	entries := make([]eventlog.Entry, n)
	for i := range entries {
		entries[i] = chunk(&eventlog.TextDelta{Delta: fmt.Sprint(i), Base: base("s")}, "")
		entries[i].Writer, entries[i].Ordinal = eventlog.KeyedWriter(key, digest), uint64(i)+1
	}
	return entries
}

func TestAppendsByKey(t *testing.T) {
	entries := append(keyed("k", "d", 3), chunk(&eventlog.TextDelta{Delta: "no key", Base: base("s")}, ""))
	entries = append(entries, keyed("a:b", "e", 1)...)
	state := projector.Fold(numbered(entries...)...)
	want := projector.Appends{Open: []projector.KeyedAppend{
		{Key: "k", Append: projector.Append{Digest: "d", FirstSequence: 2, LastSequence: 6, Count: 3}},
		{Key: "a:b", Append: projector.Append{Digest: "e", FirstSequence: 10, LastSequence: 10, Count: 1}},
	}}
	require.Equal(t, want, state.Appends)
	require.Equal(t, "a", state.AgentType, "the first chunk names the agent")

	// Records that helixd never writes change nothing: a key again, or the middle of an
	// append.
	entries = append(entries, keyed("k", "other", 2)...)
	entries = append(entries, keyed("k", "d", 2)...)
	entries = append(entries, keyed("new", "d", 2)[1])
	require.Equal(t, want, projector.Fold(numbered(entries...)...).Appends)
}

func TestAppendsOutliveTruncation(t *testing.T) {
	entries := append(keyed("k", "d", 2), factOf("s", &eventlog.Truncated{
		Reason: eventlog.ResyncRollback, Ranges: []eventlog.Range{{AgentID: "s", From: 1, To: 9}}, Base: factBase("s"),
	}))
	_, known := projector.Fold(numbered(entries...)...).Appends.Get("k")
	require.True(t, known)
}

// A session keeps the answers to its last appends with a key, and for a bounded number
// before them that their keys were used. The result is the same however the log is split,
// and also if the state was stored in between.
func TestKeysAreRememberedForABoundedTime(t *testing.T) {
	testkit.Sequential(t)
	const keys = 3*projector.LeastKnownAppends + projector.LeastOldKeys + 77
	key := func(i int) string { return fmt.Sprint("key-", i) }
	live := new(projector.Tree)
	var kept *projector.Tree
	var keptJSON string
	for i := range keys {
		for _, r := range numbered(keyed(key(i), "d", 1)...) {
			r.Sequence = uint64(i + 1)
			projector.Apply(live, r)
		}
		if i == keys/2 {
			kept = live.Clone()
			keptJSON = encoded(t, kept)
			live = restored(t, live)
		}
	}
	require.Equal(t, keptJSON, encoded(t, kept), "a clone does not change with the original")
	known, old := 0, 0
	for i := range keys {
		a, is := live.Appends.Get(key(i))
		switch {
		case is:
			require.Equal(t, uint64(i+1), a.FirstSequence)
			known++
		case live.OldKeys.Has(key(i)):
			require.Zero(t, known, "the oldest are forgotten first")
			old++
		default:
			require.Zero(t, old, "the oldest are forgotten first")
		}
	}
	require.GreaterOrEqual(t, known, projector.LeastKnownAppends)
	require.LessOrEqual(t, known, 2*projector.LeastKnownAppends+128)
	require.Equal(t, projector.LeastOldKeys, old)
	require.False(t, live.OldKeys.Has("another"))

	whole := new(projector.Tree)
	for i := range keys {
		r := numbered(keyed(key(i), "d", 1)...)[0]
		r.Sequence = uint64(i + 1)
		projector.Apply(whole, r)
	}
	require.Equal(t, whole.Appends, live.Appends)
	require.Equal(t, whole.OldKeys, live.OldKeys)
}
