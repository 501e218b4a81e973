package snapshot_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	natsjs "github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/embed/embedtest"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/integrity"
	logjs "github.com/helixd/helixd/eventlog/jetstream"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/projector"
	"github.com/helixd/helixd/projector/jsondoc"
	"github.com/helixd/helixd/snapshot"
	foldsjs "github.com/helixd/helixd/snapshot/jetstream"
	foldsmem "github.com/helixd/helixd/snapshot/memory"
	"github.com/helixd/helixd/snapshot/pack"
)

// place is a finding without its text.
type place struct {
	code     integrity.Code
	sequence uint64
}

func verified(t *testing.T, log eventlog.Log, folds snapshot.Folds) (found []place) {
	t.Helper()
	states := snapshot.New(log, &snapshot.StoreOptions{Folds: folds})
	require.NoError(t, states.Verify(t.Context(), "s", func(f integrity.Finding) {
		require.Equal(t, "s", f.Session)
		require.NotEmpty(t, f.Detail)
		found = append(found, place{f.Code, f.Sequence})
	}))
	return found
}

// TestSavedFoldsOfRunsAreRight: everything that a store saves, continuing earlier saved
// folds, is the fold of the log.
func TestSavedFoldsOfRunsAreRight(t *testing.T) {
	records := aRun(t)
	log, folds := memory.New(), &foldsmem.Folds{}
	states := snapshot.New(log, &snapshot.StoreOptions{Folds: folds, SaveEvery: 1})
	for i := 0; i < len(records); i += 3 {
		var entries []eventlog.Entry
		for _, r := range records[i:min(i+3, len(records))] {
			entries = append(entries, r.Entry)
		}
		_, err := log.Append(t.Context(), "s", uint64(i), entries)
		require.NoError(t, err)
		_, err = states.Head(t.Context(), "s")
		require.NoError(t, err)
	}
	saved, err := folds.Sequences(t.Context(), "s", snapshot.Packed)
	require.NoError(t, err)
	require.NotEmpty(t, saved)
	require.Empty(t, verified(t, log, folds))
	require.Empty(t, verified(t, log, nil), "a store without saved folds")
}

func TestVerifyFindsWrongFolds(t *testing.T) {
	log := memory.New()
	records := fill(t, log, 30)
	right := func(n int, form snapshot.Form) snapshot.Saved {
		folds := &foldsmem.Folds{}
		_, err := snapshot.New(upToLog(t, records, n), &snapshot.StoreOptions{Folds: folds, SaveEvery: 1}).Head(t.Context(), "s")
		require.NoError(t, err)
		s, err := folds.Nearest(t.Context(), "s", uint64(n), snapshot.Packed)
		require.NoError(t, err)
		require.NotNil(t, s)
		if form == snapshot.JSON {
			s.Form, s.State, s.Cuts = form, []byte(marshal(t, projector.Fold(records[:n]...))), nil
		}
		return *s
	}
	for _, form := range []snapshot.Form{snapshot.JSON, snapshot.Packed} {
		for name, tc := range map[string]struct {
			change func(*snapshot.Saved)
			want   []place
		}{
			"none": {func(*snapshot.Saved) {}, nil},
			"in other words": {func(s *snapshot.Saved) {
				if form == snapshot.Packed {
					tree := projector.Fold(records[:20]...)
					tree.Asides = []projector.Annotation{}
					s.State, _ = pack.Encode(tree)
					return
				}
				var state map[string]json.RawMessage
				require.NoError(t, json.Unmarshal(s.State, &state))
				s.State = []byte(strings.ReplaceAll(marshal(t, state), `,"`, `, "`))
			}, nil},
			"another state": {func(s *snapshot.Saved) {
				tree := projector.Fold(records[:20]...)
				tree.CustomState = jsondoc.New([]byte(strings.Replace(tree.CustomState.String(), "value 15", "value 16", 1)))
				if s.State = []byte(marshal(t, tree)); form == snapshot.Packed {
					s.State, _ = pack.Encode(tree)
				}
			}, []place{{integrity.FoundFoldDiffers, 20}}},
			"of another record":   {func(s *snapshot.Saved) { s.Digest = "of something else" }, []place{{integrity.FoundFoldDiffers, 20}}},
			"cut":                 {func(s *snapshot.Saved) { s.State = s.State[1:] }, []place{{integrity.FoundFoldDamaged, 20}}},
			"of another sequence": {func(s *snapshot.Saved) { *s = right(19, form); s.Sequence = 20 }, []place{{integrity.FoundFoldDamaged, 20}}},
			"another version":     {func(s *snapshot.Saved) { s.Version = projector.Version + 1 }, []place{{integrity.FoundFoldUnverified, 20}}},
			"beyond the log":      {func(s *snapshot.Saved) { s.Sequence = 40 }, []place{{integrity.FoundEndLost, 31}}},
		} {
			folds := &foldsmem.Folds{}
			s := right(20, form)
			tc.change(&s)
			for _, s := range []snapshot.Saved{right(10, form), s, right(30, form)} {
				saveFold(t, folds, s)
			}
			require.Equal(t, tc.want, verified(t, log, folds), "%s %q", name, form)
		}
	}

	folds := &foldsmem.Folds{}
	saveFold(t, folds, right(10, snapshot.Packed))
	require.Equal(t, []place{{integrity.FoundEndLost, 10}}, verified(t, memory.New(), folds), "the session is gone")
	require.Equal(t, []place{{integrity.FoundFoldUnverified, 10}}, verified(t, unreadable{log}, folds), "the log is what is damaged")
	require.Contains(t, verified(t, log, unreadableFolds{folds}), place{integrity.FoundFoldDamaged, 10})

	wrong := right(10, snapshot.JSON)
	wrong.Digest = "of something else"
	saveFold(t, folds, wrong)
	require.Equal(t, []place{{integrity.FoundFoldDiffers, 10}}, verified(t, log, folds), "one of two at the same sequence")
}

func saveFold(t *testing.T, folds snapshot.Folds, s snapshot.Saved) {
	t.Helper()
	_, err := folds.Save(t.Context(), "s", s)
	require.NoError(t, err)
}

// upToLog is a log of the first n records.
func upToLog(t *testing.T, records []eventlog.Record, n int) eventlog.Log {
	log := memory.New()
	entries := make([]eventlog.Entry, n)
	for i := range n {
		entries[i] = records[i].Entry
	}
	_, err := log.Append(t.Context(), "s", 0, entries)
	require.NoError(t, err)
	return log
}

type unreadable struct{ eventlog.Log }

func (unreadable) Read(context.Context, string, uint64, uint64) iter.Seq2[eventlog.Record, error] {
	return func(yield func(eventlog.Record, error) bool) { yield(eventlog.Record{}, eventlog.ErrIncomplete) }
}

type unreadableFolds struct{ *foldsmem.Folds }

func (unreadableFolds) Nearest(context.Context, string, uint64, ...snapshot.Form) (*snapshot.Saved, error) {
	return nil, errGone
}

// TestFoldsOfATrimmedSession: the first fold after the floor stands for the records that
// retention has removed.
func TestFoldsOfATrimmedSession(t *testing.T) {
	_, nc := embedtest.Start(t, embed.Options{SyncInterval: time.Minute})
	log, err := logjs.Open(t.Context(), nc, nil)
	require.NoError(t, err)
	t.Cleanup(func() { log.Close() })
	_, err = foldsjs.OpenExisting(t.Context(), nc, layout.Hashed(1))
	require.ErrorIs(t, err, natsjs.ErrStreamNotFound)
	saves, err := foldsjs.Open(t.Context(), nc, layout.Hashed(1), 1)
	require.NoError(t, err)
	folds, err := foldsjs.OpenExisting(t.Context(), nc, layout.Hashed(1))
	require.NoError(t, err)

	states := snapshot.New(log, &snapshot.StoreOptions{Folds: saves, SaveEvery: 10})
	var records []eventlog.Record
	for range 4 {
		records = fill(t, log, 20)
		_, err = states.Head(t.Context(), "s")
		require.NoError(t, err)
		require.NoError(t, log.Seal(t.Context(), "s"))
	}
	sequences, err := folds.Sequences(t.Context(), "s", snapshot.Packed)
	require.NoError(t, err)
	at := func(n int) uint64 { return records[n-1].Sequence }
	require.Equal(t, []uint64{at(20), at(40), at(60), at(80)}, sequences)
	sessions, err := folds.Sessions(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"s"}, sessions)
	require.Empty(t, verified(t, log, folds))

	_, err = log.Purge(t.Context(), eventlog.PurgeOptions{SealedFor: time.Nanosecond})
	require.NoError(t, err)
	_, err = log.Trim(t.Context(), "s", at(45))
	require.NoError(t, err)
	require.Equal(t, []place{
		{integrity.FoundFoldUnverified, at(20)}, {integrity.FoundFoldUnverified, at(40)}, {integrity.FoundFoldUnverified, at(60)},
	}, verified(t, log, folds))

	last, err := folds.Nearest(t.Context(), "s", at(80), snapshot.Packed)
	require.NoError(t, err)
	last.Form = snapshot.JSON
	last.State = []byte(strings.Replace(marshal(t, projector.Fold(records...)), fmt.Sprint("value ", 19), "value 20", 1))
	saveFold(t, saves, *last)
	require.Contains(t, verified(t, log, folds), place{integrity.FoundFoldDiffers, at(80)})
}
