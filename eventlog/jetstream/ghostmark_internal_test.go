package jetstream

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/eventlog"
)

// openSyncing opens the log of a server on dir that syncs every second, and returns what
// ends both.
func openSyncing(t *testing.T, dir string) (*Log, func()) {
	t.Helper()
	srv, err := embed.Start(t.Context(), embed.Options{DataDir: dir, SyncInterval: time.Second})
	require.NoError(t, err)
	t.Cleanup(srv.Stop)
	nc, err := srv.Connect()
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	l, err := Open(t.Context(), nc, &Options{Durability: "interval=1s", Server: srv})
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	return l, func() { l.Close(); nc.Close(); srv.Stop() }
}

// TestAPowerLossThatLeavesAnErasuresMark: the mark reached the disk and the log's end did
// not, which then gives the same sequences again. What is stored under them stays.
func TestAPowerLossThatLeavesAnErasuresMark(t *testing.T) {
	for name, erase := range map[string]func(*testing.T, *Log){
		"done": func(t *testing.T, l *Log) {
			_, err := l.Erase(t.Context(), "s")
			require.NoError(t, err)
		},
		"fenced": func(t *testing.T, l *Log) {
			fence, err := l.wantFence(t.Context(), "s")
			require.NoError(t, err)
			_, err = l.beginAt(t.Context(), "s", fence)
			require.NoError(t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, old := t.TempDir(), filepath.Join(t.TempDir(), "old")
			l, stop := openSyncing(t, dir)
			kept := textEntries("kept", 5)
			head := appended(t, l, "kept", 0, kept)
			stop()
			found, err := filepath.Glob(filepath.Join(dir, "jetstream", "*", "streams", streamName(0)))
			require.NoError(t, err)
			require.Len(t, found, 1)
			require.NoError(t, os.CopyFS(old, os.DirFS(found[0])))

			l, stop = openSyncing(t, dir)
			appended(t, l, "s", 0, textEntries("secret", 30))
			erase(t, l)
			stop()
			require.NoError(t, os.RemoveAll(found[0]))
			require.NoError(t, os.CopyFS(found[0], os.DirFS(old)))

			l, _ = openSyncing(t, dir)
			entries := textEntries("new", 3)
			entries[1].Payload = bytes.Repeat([]byte("large"), inlineBytes)
			appended(t, l, "s", 0, entries)
			require.NoError(t, l.Seal(t.Context(), "s"))
			s, _, err := l.lastSegment(t.Context(), "s")
			require.NoError(t, err)
			require.NotNil(t, s)
			more := textEntries("more", 40)
			appended(t, l, "kept", head, more)
			for _, now := range []time.Time{time.Now(), time.Now().Add(doneFor + time.Minute)} {
				for range 3 {
					_, _, err = l.finishErasureAt(t.Context(), "s", true, now)
					require.NoError(t, err)
				}
			}
			e, err := l.erasingOf(t.Context(), "s")
			require.NoError(t, err)
			require.Zero(t, e.at)
			requireRecords(t, l, "s", entries)
			requireRecords(t, l, "kept", append(append([]eventlog.Entry(nil), kept...), more...))
		})
	}
}
