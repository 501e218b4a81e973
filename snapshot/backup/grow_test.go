package backup_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/jetstream"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
	"github.com/helixd/helixd/eventlog/jetstream/restore"
	"github.com/helixd/helixd/eventlog/logtest"
	"github.com/helixd/helixd/integration/testkit"
	"github.com/helixd/helixd/snapshot"
	"github.com/helixd/helixd/snapshot/backup"
	foldsjs "github.com/helixd/helixd/snapshot/jetstream"
)

// grow restarts the log with more partitions.
func (s *store) grow(partitions int) {
	s.t.Helper()
	s.stop()
	s.connect()
	var err error
	s.log, err = jetstream.Open(s.t.Context(), s.nc, &jetstream.Options{Partitions: partitions, Grow: true, Server: s.srv, Durability: "interval=1m"})
	require.NoError(s.t, err)
	s.folds, err = foldsjs.OpenExisting(s.t.Context(), s.nc, s.log)
	require.NoError(s.t, err)
	for _, session := range s.sessions() { // before its streams exist
		_, err := s.folds.Sequences(s.t.Context(), session, snapshot.JSON)
		require.NoError(s.t, err)
	}
	s.folds, err = foldsjs.Open(s.t.Context(), s.nc, s.log, 1)
	require.NoError(s.t, err)
	s.states = snapshot.New(s.log, &snapshot.StoreOptions{Folds: s.folds})
}

// TestAGrownLogIsBackedUp: a restored log has each session in the same partition as the
// original, and finds it after a restart and after it has grown again.
func TestAGrownLogIsBackedUp(t *testing.T) {
	testkit.Sequential(t)
	t.Parallel()
	s := newStore(t, 1)
	for i := range 12 {
		s.create(fmt.Sprint("old", i), 3)
	}
	for range 30 {
		s.append("trimmed", logtest.Fact("trimmed", &fact.UserMessage{Content: "x", Base: base("trimmed")}))
		require.NoError(t, s.log.Seal(t.Context(), "trimmed"))
	}
	require.NotEqual(t, 0, layout.Partition("trimmed", 4))
	require.NotZero(t, s.trim()["trimmed"])
	before := s.state("trimmed")
	s.grow(4)
	require.Equal(t, before, s.state("trimmed"), "the fold that knows its beginning is found")
	for i := range 12 {
		s.create(fmt.Sprint("new", i), 3)
		s.append(fmt.Sprint("old", i), logtest.Text("old", "more"))
	}
	s.append("large", logtest.Text("large", large))
	_, err := s.states.Erase(t.Context(), "old0")
	require.NoError(t, err)
	s.verify()

	file := s.take(backup.Options{})
	header, _, err := backup.Read(t.Context(), bytes.NewReader(file), backup.Visitor{})
	require.NoError(t, err)
	require.Equal(t, backup.Version, header.Version, "older programs would look for sessions elsewhere")
	to := newServer(t)
	to.restore(file)
	same := func() {
		t.Helper()
		to.verify()
		require.Equal(t, s.sessions(), to.sessions())
		for _, session := range append(s.sessions(), "old0") {
			require.Equal(t, s.log.PartitionOf(session), to.log.PartitionOf(session), session)
		}
		for _, session := range s.sessions() {
			floor, want := s.copied(session)
			gotFloor, got := to.copied(session)
			require.Equal(t, want, got, session)
			require.Equal(t, floor, gotFloor, session)
			require.Equal(t, s.state(session), to.state(session), session)
		}
	}
	same()
	to.stop()
	to.connect()
	to.open(4)
	same()
	for _, session := range []string{"old0", "old1", "new1"} {
		require.Greater(t, to.append(session, logtest.Text(session, "x")), uint64(restore.SequencesBehind))
	}
	sessions := to.sessions()
	to.grow(7)
	require.Equal(t, sessions, to.sessions())
	to.verify()
	for _, session := range sessions {
		_, want := to.copied(session)
		require.NotEmpty(t, want)
	}
	damaged := *header.Placement
	damaged.Partitions = []int{4, 1}
	_, err = restore.Begin(t.Context(), newServer(t).nc, restore.Options{Ends: header.Ends, Placement: &damaged})
	require.ErrorIs(t, err, eventlog.ErrDamaged)
}
