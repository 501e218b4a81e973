package snapshot_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/logtest"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/projector"
	"github.com/helixd/helixd/snapshot"
)

// TestUpdate: propose gets the state at the head, also if another writer was first, and
// Update returns the fold of all records.
func TestUpdate(t *testing.T) {
	t.Parallel()
	log := memory.New()
	states := snapshot.New(log, nil)
	ids := 0
	writer := func() string { ids++; return fmt.Sprint("writer-", ids) }
	folded := func() *projector.Tree {
		want, err := snapshot.New(log, nil).Head(t.Context(), "s")
		require.NoError(t, err)
		return want
	}

	got, err := states.Update(t.Context(), "s", writer, func(tree *projector.Tree) ([]eventlog.Entry, error) {
		require.Nil(t, tree)
		return nil, nil
	})
	require.NoError(t, err)
	require.Nil(t, got, "there is still no session")

	for round, heads := range [][]uint64{{0, 2, 3}, {4, 5, 6}} {
		var seen []uint64
		got, err = states.Update(t.Context(), "s", writer, func(tree *projector.Tree) ([]eventlog.Entry, error) {
			head := uint64(0)
			if tree != nil {
				require.Equal(t, marshal(t, folded()), marshal(t, tree))
				head = tree.Head
			}
			if seen = append(seen, head); len(seen) < len(heads) {
				others := []eventlog.Entry{userMessage(t, "theirs")}
				if head == 0 {
					others = append(others, userMessage(t, "theirs, too"))
				}
				_, err := log.Append(t.Context(), "s", head, others)
				require.NoError(t, err)
			}
			return []eventlog.Entry{userMessage(t, "mine")}, nil
		})
		require.NoError(t, err)
		require.Equal(t, heads, seen)
		require.Equal(t, marshal(t, folded()), marshal(t, got))
		require.Equal(t, 3*(round+1), ids, "each append has an id")
	}

	got, err = states.Update(t.Context(), "s", writer, func(*projector.Tree) ([]eventlog.Entry, error) {
		_, err := states.Erase(t.Context(), "s")
		require.NoError(t, err)
		_, err = log.Append(t.Context(), "s", 0, []eventlog.Entry{logtest.Text("s", "new")})
		require.NoError(t, err)
		return []eventlog.Entry{userMessage(t, "of the old")}, nil
	})
	require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
	require.Nil(t, got)
	require.NotContains(t, marshal(t, folded()), "of the old")
}
