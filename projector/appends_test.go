package projector_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
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
	want := map[string]projector.Append{
		"k":   {Digest: "d", FirstSequence: 2, LastSequence: 6, Count: 3},
		"a:b": {Digest: "e", FirstSequence: 10, LastSequence: 10, Count: 1},
	}
	require.Equal(t, want, state.Appends)
	require.Equal(t, "a", state.AgentType, "the first chunk names the agent")

	// What helixd never writes changes nothing of it: a key again, or the
	// middle of an append.
	entries = append(entries, keyed("k", "other", 2)...)
	entries = append(entries, keyed("k", "d", 2)...)
	entries = append(entries, keyed("new", "d", 2)[1])
	require.Equal(t, want, projector.Fold(numbered(entries...)...).Appends)
}

func TestAppendsOutliveTruncation(t *testing.T) {
	entries := append(keyed("k", "d", 2), fact("s", &eventlog.Truncated{
		Reason: eventlog.ResyncRollback, Ranges: []eventlog.Range{{AgentID: "s", From: 1, To: 9}}, FactBase: factBase("s"),
	}))
	require.Contains(t, projector.Fold(numbered(entries...)...).Appends, "k")
}
