package snapshot_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/logtest"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/snapshot"
	foldsmemory "github.com/helixd/helixd/snapshot/memory"
)

// BenchmarkKeyedAppend measures one append with an idempotency key, as the server makes
// it, in a session with that many earlier ones: the state at the head, the lookup of the
// key, the append.
func BenchmarkKeyedAppend(b *testing.B) {
	const digest = "digest-of-the-request-0123456789abcdef0123"
	for _, keys := range []int{100, 1_000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("keys=%d", keys), func(b *testing.B) {
			log := memory.New()
			states := snapshot.New(log, &snapshot.StoreOptions{Folds: new(foldsmemory.Folds)})
			head := uint64(0)
			for i := 0; i < keys; {
				entries := make([]eventlog.Entry, min(500, keys-i))
				for j := range entries {
					entries[j] = logtest.Text("s", "x")
					entries[j].Writer, entries[j].Ordinal = eventlog.KeyedWriter(fmt.Sprint("before-", i), digest), 1
					i++
				}
				var err error
				head, err = log.Append(b.Context(), "s", head, entries)
				require.NoError(b, err)
				_, err = states.Head(b.Context(), "s")
				require.NoError(b, err)
			}
			b.ResetTimer()
			for i := range b.N {
				tree, err := states.Head(b.Context(), "s")
				require.NoError(b, err)
				key := fmt.Sprint("key-", i)
				_, known := tree.Appends.Get(key)
				require.False(b, known || tree.OldKeys.Has(key))
				_, err = eventlog.AppendOnce(b.Context(), log, "s", eventlog.KeyedWriter(key, digest), tree.Head, []eventlog.Entry{logtest.Text("s", "x")})
				require.NoError(b, err)
			}
		})
	}
}
