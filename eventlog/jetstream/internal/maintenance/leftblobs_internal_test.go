package maintenance

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/internal/link"
	"github.com/helixd/helixd/eventlog/jetstream/internal/store"
	"github.com/helixd/helixd/eventlog/jetstream/internal/storetest"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
	"github.com/helixd/helixd/integration/testkit"
)

// leavePayload stores the blob of an append that was to create the session, whose sender
// then dies.
func leavePayload(t *testing.T, l *Maintenance, session, text string) []eventlog.Entry {
	t.Helper()
	large := storetest.TextEntries("x", 1)
	large[0].Payload = bytes.Repeat([]byte(text), 3*store.InlineBytes/len(text)) // two parts
	stored := 0
	dead := openHooked(t, l.Conn, func(ctx context.Context, point string, do func(context.Context) error) error {
		if stored == 2 {
			return errKilled
		}
		if strings.HasPrefix(point, "publish helix.blob.") {
			stored++
		}
		return do(ctx)
	})
	_, err := dead.Append(t.Context(), session, 0, large)
	require.Error(t, err)
	return large
}

// TestAPayloadThatNoRecordNamesIsRemoved: its sender died before the record. It stays for
// a day, since the session may be lost and be repaired; then no file has a byte of it.
func TestAPayloadThatNoRecordNamesIsRemoved(t *testing.T) {
	testkit.OneGoroutine(t)
	t.Parallel()
	const secret = "a-secret-nobody-may-find"
	dir := t.TempDir()
	l, stop := openSyncing(t, dir)
	leavePayload(t, l, "s", secret)
	kept := storetest.TextEntries("kept", 2)
	kept[1].Payload = bytes.Repeat([]byte("large"), store.InlineBytes)
	storetest.Appended(t, l, "kept", 0, kept)
	storetest.Appended(t, l, "purged", 0, kept)
	_, err := l.Purge(t.Context(), storetest.PurgeNow)
	require.NoError(t, err)
	parts := func() uint64 {
		at, err := l.FirstFrom(t.Context(), layout.BlobStream, l.BlobPrefix("s")+">", 1)
		require.NoError(t, err)
		return at
	}
	_, err = l.finishErasures(t.Context(), true, time.Now().Add(leftFor-time.Minute))
	require.NoError(t, err)
	require.NotZero(t, parts())

	day := time.Now().Add(leftFor + 2*leftEvery)
	_, err = l.finishErasures(t.Context(), false, day)
	require.NoError(t, err)
	require.NotZero(t, parts(), "a node that does not lead leaves it")
	for range 2 {
		_, err = l.finishErasures(t.Context(), true, day)
		require.NoError(t, err)
	}
	require.Zero(t, parts())
	for _, session := range []string{"kept", "purged"} {
		storetest.RequireRecords(t, l, session, kept)
	}
	storetest.Appended(t, l, "s", 0, storetest.TextEntries("new", 1))
	stop()
	files, err := testkit.Scan(t.Context(), dir, secret)
	require.NoError(t, err)
	require.Empty(t, files)
}

// TestASessionThatIsCreatedKeepsItsPayloads: it has the same payload as a blob without a
// record, and is created before that one is marked, or after.
func TestASessionThatIsCreatedKeepsItsPayloads(t *testing.T) {
	testkit.OneGoroutine(t)
	t.Parallel()
	for _, at := range []string{"subjects", "mark", "delete"} {
		t.Run("before "+at, func(t *testing.T) {
			l := openLog(t, link.Options{})
			large := leavePayload(t, l, "s", "large")
			now, created := time.Now().Add(leftFor+time.Minute), false
			other := openHooked(t, l.Conn, func(ctx context.Context, point string, do func(context.Context) error) error {
				if point == at && !created {
					created = true
					storetest.Appended(t, l, "s", 0, large)
				}
				return do(ctx)
			})
			for range 3 {
				_, err := other.finishErasures(t.Context(), true, now)
				require.NoError(t, err)
			}
			require.True(t, created)
			storetest.RequireRecords(t, l, "s", large)
			_, err := l.Erase(t.Context(), "s")
			require.NoError(t, err)
			requireNothing(t, l, "s")
		})
	}
}

// TestAPayloadThatIsStoredAfterAGrowth: the server stores it where the session's old
// number put it, and its sender dies. The session is created in its new place, and has
// its own; a day later no file has the first one.
func TestAPayloadThatIsStoredAfterAGrowth(t *testing.T) {
	testkit.OneGoroutine(t)
	t.Parallel()
	g := newGrowable(t, 1)
	session := elsewhere("s", 1, 4)
	large := storetest.TextEntries("x", 1)
	large[0].Payload = bytes.Repeat([]byte(secretText), 3*store.InlineBytes/len(secretText))
	dead := openHooked(t, g.nc, killedAfter("publish "+layout.BlobPrefix(session, 0), func(ctx context.Context) {
		require.NoError(t, g.log.Grow(ctx, 4))
	}))
	_, err := dead.Append(t.Context(), session, 0, large)
	require.Error(t, err)
	require.NotZero(t, g.log.PartitionOf(session))
	kept := storetest.TextEntries("kept", 1)
	kept[0].Payload = bytes.Repeat([]byte("large"), store.InlineBytes)
	head := storetest.Appended(t, g.log, session, 0, kept)
	old := func() uint64 {
		at, err := g.log.FirstFrom(t.Context(), layout.BlobStream, layout.BlobPrefix(session, 0)+">", 1)
		require.NoError(t, err)
		return at
	}
	require.NotZero(t, old())
	for range 2 {
		_, err = g.log.finishErasures(t.Context(), true, time.Now().Add(leftFor+2*leftEvery))
		require.NoError(t, err)
	}
	require.Zero(t, old())
	storetest.RequireRecords(t, g.log, session, kept)
	storetest.Appended(t, g.log, session, head, kept)
	g.stop()
	files, err := testkit.Scan(t.Context(), g.dir, secretText)
	require.NoError(t, err)
	require.Empty(t, files)
}
