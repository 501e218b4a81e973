package jetstream_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/embed/embedtest"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream"
	"github.com/helixd/helixd/eventlog/jetstream/jetstreamtest"
	"github.com/helixd/helixd/eventlog/logtest"
)

// openSynced opens the log of a server on dir that syncs every second, and returns a
// function that ends both.
func openSynced(t *testing.T, dir string) (*jetstream.Log, func()) {
	t.Helper()
	srv, nc := embedtest.Start(t, embed.Options{DataDir: dir, SyncInterval: time.Second})
	log := jetstreamtest.Open(t, nc, &jetstream.Options{Durability: "interval=1s"})
	return log, func() { log.Close(); nc.Close(); srv.Stop() }
}

// logFolder returns the folder of the log's stream.
func logFolder(t *testing.T, dir string) (found string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && d.Name() == "HELIX_LOG_0" {
			found = path
		}
		return err
	}))
	require.NotEmpty(t, found)
	return found
}

func manyTexts(text string, n int) (entries []eventlog.Entry) {
	for range n {
		entries = append(entries, logtest.Text("s", text))
	}
	return entries
}

// TestLostRecordsAreNotShownForNewOnes: the segments' files reached the disk and the
// log's did not, so that the log assigns the same sequences again.
func TestLostRecordsAreNotShownForNewOnes(t *testing.T) {
	t.Parallel()
	dir, old := t.TempDir(), filepath.Join(t.TempDir(), "old")
	log, stop := openSynced(t, dir)
	head, err := log.Append(t.Context(), "s", 0, manyTexts("kept", 100))
	require.NoError(t, err)
	require.NoError(t, log.Seal(t.Context(), "s"))
	stop()
	require.NoError(t, os.CopyFS(old, os.DirFS(logFolder(t, dir))))

	log, stop = openSynced(t, dir)
	_, err = log.Append(t.Context(), "s", head, manyTexts("lost", 20))
	require.NoError(t, err)
	require.NoError(t, log.Seal(t.Context(), "s"))
	_, err = log.Append(t.Context(), "only lost", 0, manyTexts("lost", 20))
	require.NoError(t, err)
	require.NoError(t, log.Seal(t.Context(), "only lost"))
	stop()
	folder := logFolder(t, dir)
	require.NoError(t, os.RemoveAll(folder))
	require.NoError(t, os.CopyFS(folder, os.DirFS(old)))

	log, _ = openSynced(t, dir)
	_, err = log.Head(t.Context(), "only lost")
	require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
	now, err := log.Head(t.Context(), "s")
	require.NoError(t, err)
	require.Equal(t, head, now)
	_, err = log.Append(t.Context(), "s", head, manyTexts("new", 30))
	require.NoError(t, err)
	var got []eventlog.Entry
	for _, r := range recordsOf(t, log, "s", 0, 0) {
		got = append(got, r.Encoded())
	}
	want := append(manyTexts("kept", 100), manyTexts("new", 30)...)
	for i, e := range want {
		want[i] = e.Encoded()
	}
	require.Equal(t, want, got)
}

// TestAnIntactStoreKeepsItsSegments: also those that are the only copy of their records.
func TestAnIntactStoreKeepsItsSegments(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	log, stop := openSynced(t, dir)
	head := uint64(0)
	reopened := func() {
		want := recordsOf(t, log, "s", 0, 0)
		sealed, err := log.SealedBefore(t.Context(), "s", time.Now())
		require.NoError(t, err)
		stop()
		log, stop = openSynced(t, dir)
		again, err := log.SealedBefore(t.Context(), "s", time.Now())
		require.NoError(t, err)
		require.Equal(t, sealed, again)
		requireSame(t, want, recordsOf(t, log, "s", 0, 0))
	}
	add := func() {
		var err error
		head, err = log.Append(t.Context(), "s", head, manyTexts("x", 100))
		require.NoError(t, err)
	}
	add()
	require.NoError(t, log.Seal(t.Context(), "s"))
	reopened()
	add() // not sealed
	reopened()
	_, err := log.Purge(t.Context(), now)
	require.NoError(t, err)
	reopened()
	add()
	_, err = log.Append(t.Context(), "erased", 0, manyTexts("x", 20))
	require.NoError(t, err)
	require.NoError(t, log.Seal(t.Context(), "s"))
	_, err = log.Erase(t.Context(), "erased") // the log's last records
	require.NoError(t, err)
	reopened()
}
