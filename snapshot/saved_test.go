package snapshot_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/embed/embedtest"
	"github.com/helixd/helixd/eventlog"
	logjs "github.com/helixd/helixd/eventlog/jetstream"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
	"github.com/helixd/helixd/eventlog/logtest"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/projector"
	"github.com/helixd/helixd/snapshot"
	foldsjs "github.com/helixd/helixd/snapshot/jetstream"
	foldsmem "github.com/helixd/helixd/snapshot/memory"
)

// counting counts the records that are read.
type counting struct {
	eventlog.Log
	read int
}

func (c *counting) Read(ctx context.Context, session string, from, to uint64) iter.Seq2[eventlog.Record, error] {
	return func(yield func(eventlog.Record, error) bool) {
		for r, err := range c.Log.Read(ctx, session, from, to) {
			c.read++
			if !yield(r, err) {
				return
			}
		}
	}
}

// fill appends n state patches to session s and returns the records.
func fill(t *testing.T, log eventlog.Log, n int) []eventlog.Record {
	t.Helper()
	head := uint64(0)
	if h, err := log.Head(t.Context(), "s"); err == nil {
		head = h
	}
	for i := 0; i < n; i += 100 {
		var entries []eventlog.Entry
		for j := range min(100, n-i) {
			e, err := eventlog.NewChunk(&eventlog.StatePatch{
				Patches: []eventlog.PatchOp{{Op: "add", Path: fmt.Sprintf("/k%d", (i+j)%7), Value: fmt.Appendf(nil, `"value %d"`, i+j)}},
				Base:    eventlog.Base{AgentID: "s", AgentType: "a", Timestamp: int64(i + j)},
			}, eventlog.Labels{})
			require.NoError(t, err)
			entries = append(entries, e)
		}
		var err error
		head, err = log.Append(t.Context(), "s", head, entries)
		require.NoError(t, err)
	}
	return logtest.Records(t, log, "s")
}

// TestSavedFolds: with saved folds every state is the same as without, and far fewer
// records are read.
func TestSavedFolds(t *testing.T) {
	for name, open := range map[string]func(t *testing.T) (eventlog.Log, snapshot.Folds){
		"memory": func(*testing.T) (eventlog.Log, snapshot.Folds) { return memory.New(), &foldsmem.Folds{} },
		"jetstream": func(t *testing.T) (eventlog.Log, snapshot.Folds) {
			_, nc := embedtest.Start(t, embed.Options{})
			log, err := logjs.Open(t.Context(), nc, nil)
			require.NoError(t, err)
			t.Cleanup(func() { log.Close() })
			folds, err := foldsjs.Open(t.Context(), nc, layout.Hashed(1), 1)
			require.NoError(t, err)
			return log, folds
		},
	} {
		t.Run(name, func(t *testing.T) {
			log, folds := open(t)
			counted := &counting{Log: log}
			states := snapshot.New(counted, &snapshot.StoreOptions{Folds: folds, SaveEvery: 50})
			fill(t, log, 120)
			_, err := states.Head(t.Context(), "s") // saves at 120
			require.NoError(t, err)
			records := fill(t, log, 200)
			_, err = states.Head(t.Context(), "s") // saves at 320
			require.NoError(t, err)

			counted.read = 0
			head, err := states.Head(t.Context(), "s")
			require.NoError(t, err)
			require.Equal(t, 1, counted.read, "the saved fold's own record is looked at, and nothing else")
			require.Equal(t, marshal(t, projector.Fold(records...)), marshal(t, head))
			for n := 0; n <= len(records); n += 10 {
				counted.read = 0
				at, err := states.At(t.Context(), "s", uint64(n))
				require.NoError(t, err)
				require.Equal(t, marshal(t, projector.Fold(records[:n]...)), marshal(t, at), "at %d", n)
				if n >= 120 {
					require.LessOrEqual(t, counted.read, n-119)
				}
			}
			var ahead *eventlog.CursorAheadError
			_, err = states.At(t.Context(), "s", uint64(len(records)+1))
			require.ErrorAs(t, err, &ahead)
		})
	}
}

// TestUselessFoldsAreIgnored: a fold that is damaged, of another version, of
// a log that has lost its end, or unreadable costs time only.
func TestUselessFoldsAreIgnored(t *testing.T) {
	log := memory.New()
	records := fill(t, log, 30)
	want := marshal(t, projector.Fold(records...))
	good := marshal(t, projector.Fold(records[:10]...))
	for name, saved := range map[string]snapshot.Saved{
		"another version":     {Sequence: 10, Version: projector.Version + 1, State: []byte(good)},
		"damaged":             {Sequence: 10, Version: projector.Version, State: []byte(good[:50])},
		"another sequence":    {Sequence: 11, Version: projector.Version, State: []byte(good)},
		"another record":      {Sequence: 10, Version: projector.Version, Digest: "of something else", State: []byte(good)},
		"beyond the log":      {Sequence: 99, Version: projector.Version, State: []byte(`{"head":99}`)},
		"between two of them": {Sequence: 10, Version: projector.Version, State: []byte(`{}`)},
	} {
		folds := &foldsmem.Folds{}
		_, err := folds.Save(t.Context(), "s", saved)
		require.NoError(t, err)
		got, err := snapshot.New(log, &snapshot.StoreOptions{Folds: folds}).Head(t.Context(), "s")
		require.NoError(t, err, name)
		require.Equal(t, want, marshal(t, got), name)
	}
	got, err := snapshot.New(log, &snapshot.StoreOptions{Folds: broken{}, SaveEvery: 1}).Head(t.Context(), "s")
	require.NoError(t, err)
	require.Equal(t, want, marshal(t, got))
}

// broken is a store of folds that always fails.
type broken struct{}

var errGone = errors.New("gone")

func (broken) Nearest(context.Context, string, uint64, ...snapshot.Form) (*snapshot.Saved, error) {
	return nil, errGone
}
func (broken) Save(context.Context, string, snapshot.Saved) (int, error) { return 0, errGone }
func (broken) Erase(context.Context, string) error                       { return errGone }
func (broken) Sequences(context.Context, string, ...snapshot.Form) ([]uint64, error) {
	return nil, errGone
}
