package maintenance

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/embed/embedtest"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/internal/link"
	"github.com/helixd/helixd/eventlog/jetstream/internal/store"
	"github.com/helixd/helixd/eventlog/jetstream/internal/storetest"
	"github.com/helixd/helixd/eventlog/jetstream/internal/wire"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
	"github.com/helixd/helixd/integration/testkit"
)

// TestErasureBesideWritersLeavesNoByte: writers of small and large payloads append
// meanwhile, and once more when it is done.
func TestErasureBesideWritersLeavesNoByte(t *testing.T) {
	t.Parallel()
	const secret = "a-secret-nobody-may-find"
	dir := t.TempDir()
	srv, nc := embedtest.Start(t, embed.Options{DataDir: dir, SyncInterval: time.Second})
	l, err := Open(t.Context(), nc, link.Options{})
	require.NoError(t, err)
	defer l.Close()
	begin := storetest.Appended(t, l, "s", 0, storetest.TextEntries(secret, 1))
	ctx := context.WithoutCancel(t.Context())
	var wg sync.WaitGroup
	const appends = 15 // of a writer at most: overwriting takes its time
	written, erased := make(chan struct{}, 3*appends), make(chan struct{})
	for writer := range 3 {
		wg.Go(func() {
			entries := func(i int) []eventlog.Entry {
				some := storetest.TextEntries(secret, 3)
				if writer == 0 {
					some = some[:1]
					some[0].Payload = bytes.Repeat(fmt.Append(nil, secret, i), store.InlineBytes/len(secret))
				}
				return some
			}
			head := begin
			for i := range appends {
				last, err := l.Append(ctx, "s", head, entries(i))
				if err != nil {
					if last, err = l.Head(ctx, "s"); err != nil {
						assert.ErrorIs(t, err, eventlog.ErrSessionNotFound)
						break
					}
				}
				head = last
				written <- struct{}{}
			}
			<-erased
			_, err := l.Append(ctx, "s", head, entries(appends))
			assert.Error(t, err)
		})
	}
	for range 8 {
		<-written
	}
	e, err := l.Erase(ctx, "s")
	assert.NoError(t, err)
	assert.False(t, e.Pending)
	close(erased)
	wg.Wait()
	require.NoError(t, l.Close())
	nc.Close()
	srv.Stop()
	files, err := testkit.Scan(t.Context(), dir, secret)
	require.NoError(t, err)
	require.Empty(t, files)
}

// TestACancelledAppendLeavesNoPayloadOfAnErasedSession: its caller left when the session
// was erased, and some parts of a blob were stored and others not yet.
func TestACancelledAppendLeavesNoPayloadOfAnErasedSession(t *testing.T) {
	t.Parallel()
	l := openLog(t, link.Options{})
	head := storetest.Appended(t, l, "s", 0, storetest.TextEntries("x", 1))
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	parts := 0
	late := openHooked(t, l.Conn, func(ctx context.Context, point string, do func(context.Context) error) error {
		if strings.HasPrefix(point, "publish helix.blob.") {
			switch parts++; parts {
			case 1:
				_, err := l.Erase(context.WithoutCancel(ctx), "s")
				require.NoError(t, err)
			case 3:
				leave()
			}
		}
		return do(ctx)
	})
	large := storetest.TextEntries("x", 1)
	large[0].Payload = make([]byte, eventlog.MaxPayload)
	_, err := late.Append(ctx, "s", head, large)
	require.ErrorIs(t, err, context.Canceled)
	s, err := l.JS.Stream(t.Context(), layout.BlobStream)
	require.NoError(t, err)
	require.EqualValues(t, 2, s.CachedInfo().State.LastSeq)
	require.Zero(t, s.CachedInfo().State.Msgs)
}

// TestAChunkMayBeOfTypeErased: only the fact of that name is a tombstone.
func TestAChunkMayBeOfTypeErased(t *testing.T) {
	t.Parallel()
	l := openLog(t, link.Options{})
	entries := storetest.TextEntries("x", 3)
	entries[2].Type, entries[2].Payload = wire.ErasedType, []byte(`{"type":"erased"}`)
	last := storetest.Appended(t, l, "s", 0, entries)
	storetest.RequireRecords(t, l, "s", entries)
	require.NoError(t, l.Seal(t.Context(), "s"))
	s, _, err := l.LastSegment(t.Context(), "s")
	require.NoError(t, err)
	require.NotNil(t, s)
	require.Equal(t, last, s.Last())
	e, err := l.Erase(t.Context(), "s")
	require.NoError(t, err)
	require.Equal(t, eventlog.Erasure{Records: 3}, e)
}

// TestAnAppendAfterAnErasedPurgedRecordIsRemoved: the session is erased after the append
// has found its record in the segments, and the log has no message left to compare with.
func TestAnAppendAfterAnErasedPurgedRecordIsRemoved(t *testing.T) {
	t.Parallel()
	l := openLog(t, link.Options{})
	expected := storetest.Appended(t, l, "s", 0, storetest.TextEntries("old", 10))
	_, err := l.Purge(t.Context(), storetest.PurgeNow)
	require.NoError(t, err)
	head, inLog, err := l.HeadPlace(t.Context(), "s")
	require.NoError(t, err)
	require.Equal(t, expected, head)
	require.False(t, inLog)
	_, subject, err := l.Place("s")
	require.NoError(t, err)
	late, err := l.NewAppend(t.Context(), "s", subject, expected, storetest.TextEntries("late", 3))
	require.NoError(t, err)
	_, err = l.Erase(t.Context(), "s")
	require.NoError(t, err)

	late.FollowPurged()
	last, err := l.Committers[0].Append(t.Context(), late)
	require.NoError(t, err)
	require.ErrorIs(t, l.ConfirmBehind(t.Context(), "s", last), eventlog.ErrSessionNotFound)
	_, err = l.Head(t.Context(), "s")
	require.ErrorIs(t, err, eventlog.ErrSessionNotFound)

	// Without an erasure it stays.
	expected = storetest.Appended(t, l, "s", 0, storetest.TextEntries("new", 2))
	_, err = l.Purge(t.Context(), storetest.PurgeNow)
	require.NoError(t, err)
	last = storetest.Appended(t, l, "s", expected, storetest.TextEntries("on", 3))
	require.NoError(t, l.ConfirmBehind(t.Context(), "s", last))
	storetest.RequireRecords(t, l, "s", append(storetest.TextEntries("new", 2), storetest.TextEntries("on", 3)...))
}

// TestNoAppendFollowsATombstone: a conflict names it as the head, and the caller appends
// after that head.
func TestNoAppendFollowsATombstone(t *testing.T) {
	t.Parallel()
	l := openLog(t, link.Options{})
	storetest.Appended(t, l, "s", 0, storetest.TextEntries("old", 3))
	tombstone, err := l.wantTombstone(t.Context(), "s", 0)
	require.NoError(t, err)
	for name, node := range map[string]*Maintenance{"its eraser": l, "another node": secondNode(t, l)} {
		for _, expected := range []uint64{0, tombstone} {
			_, err := node.Append(t.Context(), "s", expected, storetest.TextEntries("more", 1))
			var conflict *eventlog.ConflictError
			require.ErrorAs(t, err, &conflict, name)
		}
		_, err = node.Head(t.Context(), "s")
		require.ErrorIs(t, err, eventlog.ErrSessionNotFound, name)
	}
	_, err = l.Erase(t.Context(), "s")
	require.NoError(t, err)
	requireNothing(t, l, "s")
}

// TestAReadOnlyLogRemovesNoStray: it does not find the session either.
func TestAReadOnlyLogRemovesNoStray(t *testing.T) {
	t.Parallel()
	l := openLog(t, link.Options{})
	expected := storetest.Appended(t, l, "s", 0, storetest.TextEntries("old", 10))
	_, err := l.Purge(t.Context(), storetest.PurgeNow)
	require.NoError(t, err)
	_, subject, err := l.Place("s")
	require.NoError(t, err)
	late, err := l.NewAppend(t.Context(), "s", subject, expected, storetest.TextEntries("late", 1))
	require.NoError(t, err)
	_, err = l.Erase(t.Context(), "s")
	require.NoError(t, err)
	late.FollowPurged()
	stray, err := l.Committers[0].Append(t.Context(), late)
	require.NoError(t, err)

	reader, err := Open(t.Context(), l.Conn, link.Options{ReadOnly: true})
	require.NoError(t, err)
	t.Cleanup(func() { reader.Close() })
	_, err = reader.Head(t.Context(), "s")
	require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
	_, err = l.MessageAt(t.Context(), layout.LogStream(0), stray)
	require.NoError(t, err)
	_, err = l.Head(t.Context(), "s")
	require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
	_, err = l.MessageAt(t.Context(), layout.LogStream(0), stray)
	require.ErrorIs(t, err, link.ErrNoMessage)
}
