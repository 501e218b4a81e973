package maintenance

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/embed/embedtest"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/integrity"
	"github.com/helixd/helixd/eventlog/jetstream/internal/link"
	"github.com/helixd/helixd/eventlog/jetstream/internal/store"
	"github.com/helixd/helixd/eventlog/jetstream/internal/storetest"
	"github.com/helixd/helixd/eventlog/jetstream/internal/verify"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
	"github.com/helixd/helixd/integration/testkit"
)

// openSyncing opens the log of a server on dir that syncs every second, and returns a
// function that ends both.
func openSyncing(t *testing.T, dir string) (*Maintenance, func()) {
	t.Helper()
	srv, nc := embedtest.Start(t, embed.Options{DataDir: dir, SyncInterval: time.Second})
	l, err := Open(t.Context(), nc, link.Options{Durability: "interval=1s", Server: srv})
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	return l, func() { l.Close(); nc.Close(); srv.Stop() }
}

// withLostEnd opens a log after a power loss: of the messages of lost, the segments'
// stream has kept all and the log's none. damage changes the server's files.
func withLostEnd(t *testing.T, before, lost func(*Maintenance), damage ...func(dir string)) *Maintenance {
	t.Helper()
	dir, old := t.TempDir(), filepath.Join(t.TempDir(), "old")
	l, stop := openSyncing(t, dir)
	before(l)
	stop()
	found, err := filepath.Glob(filepath.Join(dir, "jetstream", "*", "streams", layout.LogStream(0)))
	require.NoError(t, err)
	require.Len(t, found, 1)
	require.NoError(t, os.CopyFS(old, os.DirFS(found[0])))

	l, stop = openSyncing(t, dir)
	lost(l)
	stop()
	require.NoError(t, os.RemoveAll(found[0]))
	require.NoError(t, os.CopyFS(found[0], os.DirFS(old)))
	for _, f := range damage {
		f(dir)
	}
	l, _ = openSyncing(t, dir)
	return l
}

// TestAPowerLossThatLeavesAnErasuresMark: the mark reached the disk and the log's end did
// not, so that the log assigns the same sequences again. Records stored under them stay.
func TestAPowerLossThatLeavesAnErasuresMark(t *testing.T) {
	testkit.OneGoroutine(t)
	t.Parallel()
	for name, erase := range map[string]func(*testing.T, *Maintenance){
		"done": func(t *testing.T, l *Maintenance) {
			_, err := l.Erase(t.Context(), "s")
			require.NoError(t, err)
		},
		"tombstone": func(t *testing.T, l *Maintenance) {
			tombstone, err := l.wantTombstone(t.Context(), "s", 0)
			require.NoError(t, err)
			_, err = l.beginAt(t.Context(), "s", tombstone)
			require.NoError(t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			head, kept := uint64(0), storetest.TextEntries("kept", 5)
			l := withLostEnd(t, func(l *Maintenance) {
				head = storetest.Appended(t, l, "kept", 0, kept)
			}, func(l *Maintenance) {
				storetest.Appended(t, l, "s", 0, storetest.TextEntries("secret", 30))
				erase(t, l)
			})
			entries := storetest.TextEntries("new", 3)
			entries[1].Payload = bytes.Repeat([]byte("large"), store.InlineBytes)
			storetest.Appended(t, l, "s", 0, entries)
			require.NoError(t, l.Seal(t.Context(), "s"))
			s, _, err := l.LastSegment(t.Context(), "s")
			require.NoError(t, err)
			require.NotNil(t, s)
			more := storetest.TextEntries("more", 40)
			storetest.Appended(t, l, "kept", head, more)
			for _, now := range []time.Time{time.Now(), time.Now().Add(store.DoneFor + time.Minute)} {
				for range 3 {
					err = finishAt(t.Context(), l, "s", now)
					require.NoError(t, err)
				}
			}
			e, err := l.ErasingOf(t.Context(), "s")
			require.NoError(t, err)
			require.Zero(t, e.At)
			storetest.RequireRecords(t, l, "s", entries)
			storetest.RequireRecords(t, l, "kept", append(append([]eventlog.Entry(nil), kept...), more...))
		})
	}
}

// TestAPowerLossThatLeavesAWantedErasure: the mark wants a session erased up to a record
// that the log has lost. The rest of that session is erased, and no other one.
func TestAPowerLossThatLeavesAWantedErasure(t *testing.T) {
	testkit.OneGoroutine(t)
	t.Parallel()
	for name, c := range map[string]struct{ left, purged, sealed, tombstoned, damaged bool }{
		"all of it is lost":                          {},
		"all of it is lost but segments":             {sealed: true},
		"some of it is left":                         {left: true},
		"some of it is left in segments only":        {left: true, purged: true},
		"some of it is left before lost ones":        {left: true, purged: true, sealed: true},
		"some of it is left, and an older tombstone": {left: true, tombstoned: true},
		"what is left of it is damaged":              {left: true, purged: true, damaged: true},
	} {
		t.Run(name, func(t *testing.T) {
			head, kept := uint64(0), storetest.TextEntries("kept", 5)
			l := withLostEnd(t, func(l *Maintenance) {
				storetest.Appended(t, l, "kept", 0, kept)
				if c.left {
					head = storetest.Appended(t, l, "s", 0, storetest.TextEntries("old", 3))
				}
				if c.purged {
					_, err := l.Purge(t.Context(), storetest.PurgeNow)
					require.NoError(t, err)
				}
				if c.tombstoned {
					_, err := l.wantTombstone(t.Context(), "s", 0)
					require.NoError(t, err)
				}
			}, func(l *Maintenance) {
				if c.tombstoned {
					_, err := l.Erase(t.Context(), "s")
					require.NoError(t, err)
					head = 0
				}
				head = storetest.Appended(t, l, "s", head, storetest.TextEntries("lost", 30))
				if c.sealed {
					require.NoError(t, l.Seal(t.Context(), "s"))
				}
				if c.damaged {
					_, err := l.StoreMessage(t.Context(), &nats.Msg{Subject: layout.SegmentSubject("s", 0), Data: []byte("damaged"), Header: nats.Header{}})
					require.NoError(t, err)
				}
				require.NoError(t, l.Want(t.Context(), "s", head))
			})
			var entries []eventlog.Entry
			if !c.left {
				entries = storetest.TextEntries("new", 60)
				require.Greater(t, storetest.Appended(t, l, "s", 0, entries), head)
			}
			requireErasedAfterLoss(t, l, "s", entries)
			storetest.RequireRecords(t, l, "kept", kept)
		})
	}
}

// A late erasure of one session leaves the next one of its id, which can't be read: a repair may
// bring that back.
func TestALateErasureLeavesASessionWithADamagedEnd(t *testing.T) {
	t.Parallel()
	l, _ := openSyncing(t, t.TempDir())
	old := storetest.Appended(t, l, "s", 0, storetest.TextEntries("old", 3))
	_, err := l.Erase(t.Context(), "s")
	require.NoError(t, err)
	storetest.Appended(t, l, "kept", 0, storetest.TextEntries("kept", 5))
	head := storetest.Appended(t, l, "s", 0, storetest.TextEntries("new", 3))
	_, err = l.Purge(t.Context(), storetest.PurgeNow)
	require.NoError(t, err)
	_, err = l.StoreMessage(t.Context(), &nats.Msg{Subject: layout.SegmentSubject("s", 0), Data: []byte("damaged"), Header: nats.Header{}})
	require.NoError(t, err)
	segments := func() uint64 {
		n, err := l.Count(t.Context(), layout.SegmentStream(0), layout.SegmentSubject("s", 0))
		require.NoError(t, err)
		return n
	}
	require.EqualValues(t, 2, segments())

	_, err = l.Erase(eventlog.WithHead(t.Context(), "s", old), "s")
	require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
	require.EqualValues(t, 2, segments())
	_, err = l.Erase(eventlog.WithHead(t.Context(), "s", head), "s")
	require.NoError(t, err)
	require.Zero(t, segments())
}

// TestASessionWithADamagedEndIsErased: a session has only segments left, the last of
// which can't be unpacked. It is erased on request, and its id can be used again.
func TestASessionWithADamagedEndIsErased(t *testing.T) {
	t.Parallel()
	l, _ := openSyncing(t, t.TempDir())
	kept := storetest.TextEntries("kept", 5)
	storetest.Appended(t, l, "kept", 0, kept)
	head := storetest.Appended(t, l, "s", 0, storetest.TextEntries("old", 3))
	_, err := l.Purge(t.Context(), storetest.PurgeNow)
	require.NoError(t, err)
	_, err = l.StoreMessage(t.Context(), &nats.Msg{Subject: layout.SegmentSubject("s", 0), Data: []byte("damaged"), Header: nats.Header{}})
	require.NoError(t, err)
	_, err = l.Head(t.Context(), "s")
	require.ErrorIs(t, err, eventlog.ErrDamaged)

	erasure, err := l.Erase(t.Context(), "s")
	require.NoError(t, err)
	require.False(t, erasure.Pending)
	requireErasedAfterLoss(t, l, "s", nil)
	_, err = l.Erase(t.Context(), "s")
	require.ErrorIs(t, err, eventlog.ErrSessionNotFound)

	entries := storetest.TextEntries("new", 3)
	require.Greater(t, storetest.Appended(t, l, "s", 0, entries), head)
	requireErasedAfterLoss(t, l, "s", entries)
	storetest.RequireRecords(t, l, "kept", kept)
}

// TestAWantedErasureStaysWantedIfTheServerCantReadTheSession: after a power loss a
// session that must be erased has one segment, which the server can't read. Each try
// reports that, and so does the verification. When the segment can be read again, the
// session is erased.
func TestAWantedErasureStaysWantedIfTheServerCantReadTheSession(t *testing.T) {
	testkit.Long(t)
	testkit.Sequential(t)
	t.Parallel()
	head, folder, at := uint64(0), "", -1
	flip := func(dir string) { // it is its own inverse
		folder = dir
		paths, err := filepath.Glob(filepath.Join(dir, "jetstream", "*", "streams", layout.SegmentStream(0), "msgs", "1.blk"))
		require.NoError(t, err)
		require.Len(t, paths, 1)
		block, err := os.ReadFile(paths[0])
		require.NoError(t, err)
		if at < 0 {
			subject := []byte(layout.SegmentSubject("s", 0))
			at = bytes.Index(block, subject) + len(subject) + 80 // after the headers
			require.Greater(t, at, len(subject)+80)
		}
		block[at] ^= 1 << 7
		require.NoError(t, os.WriteFile(paths[0], block, 0o640))
	}
	l := withLostEnd(t, func(l *Maintenance) {
		head = storetest.Appended(t, l, "s", 0, storetest.TextEntries("secret", 3))
		_, err := l.Purge(t.Context(), storetest.PurgeNow)
		require.NoError(t, err)
		storetest.Appended(t, l, "kept", 0, storetest.TextEntries("kept", 5))
		require.NoError(t, l.Seal(t.Context(), "kept")) // after it, or the server would truncate it
	}, func(l *Maintenance) {
		head = storetest.Appended(t, l, "s", head, storetest.TextEntries("lost", 30))
		require.NoError(t, l.Want(t.Context(), "s", head))
	}, flip)
	for range 3 {
		_, err := l.FinishErasures(t.Context(), true)
		require.ErrorIs(t, err, eventlog.ErrDamaged)
		require.ErrorContains(t, err, `session "s"`)
	}
	var found []integrity.Finding
	_, err := verify.New(l.Store).VerifySubjects(t.Context(), func(f integrity.Finding) { found = append(found, f) })
	require.NoError(t, err)
	require.Len(t, found, 1)
	require.Equal(t, integrity.FoundErasing, found[0].Code)
	require.Equal(t, "s", found[0].Session)
	for range 30 { // the log assigns the lost sequences again
		storetest.Appended(t, l, "other", 0, storetest.TextEntries("other", 1))
		_, err := l.Erase(t.Context(), "other")
		require.NoError(t, err)
	}

	l.Close()
	l.Conn.Close()
	l.Opts.Server.(*embed.Server).Stop()
	flip(folder)
	l, _ = openSyncing(t, folder)
	requireErasedAfterLoss(t, l, "s", nil)
	storetest.RequireRecords(t, l, "kept", storetest.TextEntries("kept", 5))
}

// requireErasedAfterLoss requires that an erasure ends, and leaves a session of the same id as it is.
func requireErasedAfterLoss(t *testing.T, l *Maintenance, session string, entries []eventlog.Entry) {
	t.Helper()
	for range 3 {
		_, err := l.FinishErasures(t.Context(), true)
		require.NoError(t, err)
	}
	if entries != nil {
		storetest.RequireRecords(t, l, session, entries)
	} else {
		_, err := l.Head(t.Context(), session)
		require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
		for stream, subject := range map[string]string{
			layout.LogStream(0): layout.LogSubject(session, 0), layout.SegmentStream(0): layout.SegmentSubject(session, 0), layout.BlobStream: l.BlobPrefix(session) + ">",
		} {
			at, err := l.FirstFrom(t.Context(), stream, subject, 1)
			require.NoError(t, err)
			require.Zero(t, at, subject)
		}
	}
	e, err := l.ErasingOf(t.Context(), session)
	require.NoError(t, err)
	require.True(t, e.At == 0 || e.Done)
}

// TestAPowerLossThatUndoesAnErasure: the mark reached the disk, and neither the tombstone nor
// the removals from the log did. The records that are back are erased again.
func TestAPowerLossThatUndoesAnErasure(t *testing.T) {
	t.Parallel()
	for name, erase := range map[string]func(*testing.T, *Maintenance){
		"tombstone": func(t *testing.T, l *Maintenance) {
			tombstone, err := l.wantTombstone(t.Context(), "s", 0)
			require.NoError(t, err)
			_, err = l.beginAt(t.Context(), "s", tombstone)
			require.NoError(t, err)
		},
		"removed": func(t *testing.T, l *Maintenance) {
			tombstone, err := l.wantTombstone(t.Context(), "s", 0)
			require.NoError(t, err)
			e, err := l.beginAt(t.Context(), "s", tombstone)
			require.NoError(t, err)
			_, err = l.RemoveAll(t.Context(), "s", e)
			require.NoError(t, err)
		},
		"done": func(t *testing.T, l *Maintenance) {
			_, err := l.Erase(t.Context(), "s")
			require.NoError(t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			kept := storetest.TextEntries("kept", 5)
			l := withLostEnd(t, func(l *Maintenance) {
				storetest.Appended(t, l, "kept", 0, kept)
				head := storetest.Appended(t, l, "s", 0, storetest.TextEntries("secret", 20))
				require.NoError(t, l.Seal(t.Context(), "s"))
				storetest.Appended(t, l, "s", head, storetest.TextEntries("more", 3))
			}, func(l *Maintenance) { erase(t, l) })
			requireErasedAfterLoss(t, l, "s", nil)
			storetest.RequireRecords(t, l, "kept", kept)
		})
	}
}

// TestAPowerLossAfterAPurgeOfAll: the log was empty, and has lost all later records.
func TestAPowerLossAfterAPurgeOfAll(t *testing.T) {
	t.Parallel()
	head, kept := uint64(0), storetest.TextEntries("kept", 20)
	l := withLostEnd(t, func(l *Maintenance) {
		head = storetest.Appended(t, l, "s", 0, kept)
		require.NoError(t, l.Seal(t.Context(), "s"))
		_, err := l.Purge(t.Context(), storetest.PurgeNow)
		require.NoError(t, err)
		info, err := l.StreamInfo(t.Context(), layout.LogStream(0), "")
		require.NoError(t, err)
		require.Greater(t, info.State.FirstSeq, info.State.LastSeq)
	}, func(l *Maintenance) {
		storetest.Appended(t, l, "s", head, storetest.TextEntries("lost", 20))
		require.NoError(t, l.Seal(t.Context(), "s"))
		storetest.Appended(t, l, "only lost", 0, storetest.TextEntries("lost", 20))
		require.NoError(t, l.Seal(t.Context(), "only lost"))
	})
	_, err := l.Head(t.Context(), "only lost")
	require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
	now, err := l.Head(t.Context(), "s")
	require.NoError(t, err)
	require.Equal(t, head, now)
	more := storetest.TextEntries("more", 30)
	storetest.Appended(t, l, "s", head, more)
	storetest.RequireRecords(t, l, "s", append(kept, more...))
}
