package backup_test

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/jetstream"
	"github.com/helixd/helixd/eventlog/jetstream/restore"
	"github.com/helixd/helixd/eventlog/logtest"
	"github.com/helixd/helixd/integration/testkit"
	"github.com/helixd/helixd/snapshot"
	"github.com/helixd/helixd/snapshot/backup"
)

// TestABackupIsRestored: every record is at its sequence, byte for byte, and the log
// continues after it.
func TestABackupIsRestored(t *testing.T) {
	testkit.Sequential(t)
	t.Parallel()
	s := newStore(t, 3)
	s.create("long", 700)
	require.NoError(t, s.log.Seal(t.Context(), "long"))
	s.append("long", logtest.Text("long", "the end, in the log only"))
	s.create("odd id ../%é", 3)
	s.create("large", 1)
	s.append("large", logtest.Text("large", large), logtest.Text("large", "and"), logtest.Text("large", large))
	s.create("erased", 30)
	_, err := s.states.Erase(t.Context(), "erased")
	require.NoError(t, err)
	s.create("works", 1)
	s.append("works", logtest.Fact("works", &fact.RunRequested{RunID: "run-1", Base: base("works")}))
	foreign := fmt.Sprintf("helix.log.%d.foreign", s.log.PartitionOf("foreign"))
	s.publish(foreign, `{"of": "somebody else" }`)
	s.publish(foreign, "\xff no JSON")
	for range 30 {
		s.append("trimmed", logtest.Fact("trimmed", &fact.UserMessage{Content: "x", Base: base("trimmed")}))
		require.NoError(t, s.log.Seal(t.Context(), "trimmed"))
	}
	memories := eventlog.MemoryScope{Kind: eventlog.MemoryOfUser, ID: "u"}.LogID()
	for i := range 3 {
		id := fmt.Sprint("m", i)
		s.append(memories, logtest.Fact(memories, &fact.MemorySaved{MemoryID: id, Content: "likes tea", Base: base(memories)}),
			logtest.Fact(memories, &fact.MemoryEmbedded{MemoryID: id, Model: "m", Vector: fact.Vector{1, 2}, Base: base(memories)}))
		require.NoError(t, s.log.Seal(t.Context(), memories))
	}
	floors := s.trim()
	require.NotZero(t, floors["trimmed"])
	require.NotContains(t, floors, memories)
	s.append("trimmed", logtest.Text("trimmed", "behind"))
	for _, session := range []string{"purged and going on", "short"} {
		s.create(session, 2)
	}

	to := newServer(t)
	taken := s.take(backup.Options{Rate: 1 << 62})
	require.Equal(t, []string{"a works"}, to.restore(taken))
	to.verify()
	require.Equal(t, s.sessions(), to.sessions())
	require.NotContains(t, to.sessions(), "erased")
	require.Contains(t, to.sessions(), memories)
	ends, err := s.log.Ends(t.Context())
	require.NoError(t, err)
	var shown int64
	backup.Follow(bytes.NewReader(taken), func(records int64) { shown = records })
	_, done, err := backup.Read(t.Context(), bytes.NewReader(taken), backup.Visitor{})
	require.NoError(t, err)
	require.EqualValues(t, done.Records, shown)
	for _, session := range s.sessions() {
		floor, want := s.copied(session)
		gotFloor, got := to.copied(session)
		require.Equal(t, want, got, session)
		require.Equal(t, floor, gotFloor, session)
		require.Equal(t, s.state(session), to.state(session), session)
	}
	require.Equal(t, floors["trimmed"], func() uint64 { floor, _ := to.copied("trimmed"); return floor }())

	// It continues at a much higher sequence.
	for _, session := range append(to.sessions(), "new", "erased") {
		last := to.append(session, logtest.Text(session, "more"))
		require.Greater(t, last, ends[to.log.PartitionOf(session)]+restore.SequencesBehind)
		require.NoError(t, to.log.Seal(t.Context(), session))
	}
	to.verify()

	// It is a deployment like any other: it can be restarted, backed up, erased and
	// trimmed.
	to.log.Close()
	to.stop()
	to.connect()
	to.open(0)
	to.verify()
	third := newServer(t)
	third.restore(to.take(backup.Options{}))
	third.verify()
	for _, session := range to.sessions() {
		_, want := to.copied(session)
		_, got := third.copied(session)
		require.Equal(t, want, got, session)
	}
	to.trim()
	for _, session := range to.sessions() {
		_, err := to.states.Erase(t.Context(), session)
		require.NoError(t, err)
	}
	require.Empty(t, to.sessions())
}

// TestABackupHasEachState: if the saved fold of a trimmed session is unusable, the backup
// has the state itself. If nothing has it, there is no backup that lacks it.
func TestABackupHasEachState(t *testing.T) {
	t.Parallel()
	s := newStore(t, 1)
	for range 3 {
		s.append("trimmed", logtest.Fact("trimmed", &fact.UserMessage{Content: "x", Base: base("trimmed")}))
		require.NoError(t, s.log.Seal(t.Context(), "trimmed"))
	}
	require.NotZero(t, s.trim()["trimmed"])
	s.create("other", 1)
	want := s.state("trimmed")
	saved, err := s.folds.Nearest(t.Context(), "trimmed", math.MaxUint64, snapshot.JSON)
	require.NoError(t, err)
	require.NoError(t, s.folds.Erase(t.Context(), "trimmed"))
	saved.State, saved.Digest = saved.State[1:], "of a damaged one"
	_, err = s.folds.Save(t.Context(), "trimmed", *saved)
	require.NoError(t, err)

	to := newServer(t)
	to.restore(s.take(backup.Options{}))
	require.Equal(t, want, to.state("trimmed"))

	for name, folds := range map[string]snapshot.Folds{"damaged": s.folds, "none": nil} {
		_, err := backup.Take(t.Context(), s.log, snapshot.New(s.log, &snapshot.StoreOptions{Folds: folds}), io.Discard, backup.Options{})
		require.ErrorContains(t, err, "no saved fold has its state", name)
		require.NotErrorIs(t, err, backup.ErrChanged, name)
	}
}

// TestARestoreTakesAnEmptyDeployment: existing data is never mixed with a backup, and an
// unfinished restore is never used as a log.
func TestARestoreTakesAnEmptyDeployment(t *testing.T) {
	t.Parallel()
	s := newStore(t, 2)
	s.create("s", 3)
	_, err := restore.Begin(t.Context(), s.nc, restore.Options{Ends: []uint64{9, 9}})
	require.ErrorIs(t, err, restore.ErrNotEmpty)
	require.Len(t, s.sessions(), 1)

	to := newServer(t)
	half, err := restore.Begin(t.Context(), to.nc, restore.Options{Ends: []uint64{9, 9}})
	require.NoError(t, err)
	_, err = restore.Begin(t.Context(), to.nc, restore.Options{Ends: []uint64{9, 9}})
	require.ErrorIs(t, err, restore.ErrNotEmpty)
	for _, o := range []jetstream.Options{{}, {Partitions: 2}, {Existing: true}, {ReadOnly: true}} {
		_, err = jetstream.Open(t.Context(), to.nc, &o)
		require.ErrorIs(t, err, restore.ErrRestoring)
	}
	require.NoError(t, half.Finish(t.Context()))
	require.NoError(t, half.Finish(t.Context()))
	require.NoError(t, half.Close())
	to.open(0)
	to.verify()
	require.Equal(t, 2, to.log.Info().Partitions)

	for _, ends := range [][]uint64{nil, make([]uint64, 65)} {
		_, err = restore.Begin(t.Context(), newServer(t).nc, restore.Options{Ends: ends})
		require.Error(t, err)
	}
}

// TestAnEmptyLogIsBackedUp too.
func TestAnEmptyLogIsBackedUp(t *testing.T) {
	t.Parallel()
	to := newServer(t)
	require.Empty(t, to.restore(newStore(t, 1).take(backup.Options{Helixd: "v1"})))
	require.Empty(t, to.sessions())
	require.Greater(t, to.append("s", logtest.Text("s", "x")), uint64(restore.SequencesBehind))
}
