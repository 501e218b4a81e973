package maintenance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/embed/embedtest"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/internal/link"
	"github.com/helixd/helixd/eventlog/jetstream/internal/store"
	"github.com/helixd/helixd/eventlog/jetstream/internal/storetest"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
	"github.com/helixd/helixd/eventlog/jetstream/restore"
)

// TestATrimOfARestoredSessionBesideASeal: segments that were trimmed before the restore
// have no sequence. One that is sealed after the trim has listed the others makes it
// count one more.
func TestATrimOfARestoredSessionBesideASeal(t *testing.T) {
	t.Parallel()
	_, nc := embedtest.Start(t, embed.Options{})
	const floor = 10
	restored, more := storetest.TextEntries("restored", 3), storetest.TextEntries("more", 3)
	r, err := restore.Begin(t.Context(), nc, restore.Options{Ends: []uint64{100}})
	require.NoError(t, err)
	_, err = r.Session(t.Context(), "s", floor, func(yield func(eventlog.Copied, error) bool) {
		for i, e := range restored {
			if !yield(eventlog.Copied{Record: eventlog.Record{Sequence: floor + 1 + uint64(i), Time: time.Unix(1, 0), Entry: e}}, nil) {
				return
			}
		}
	})
	require.NoError(t, err)
	require.NoError(t, r.Finish(t.Context()))
	require.NoError(t, r.Close())

	l, err := Open(t.Context(), nc, link.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	head, err := l.Head(t.Context(), "s")
	require.NoError(t, err)
	head = storetest.Appended(t, l, "s", head, more)
	sealed := false
	trimmer := openHooked(t, nc, func(ctx context.Context, point string, do func(context.Context) error) error {
		if point == "$JS.API.STREAM.INFO."+layout.SegmentStream(0) && !sealed {
			sealed = true
			require.NoError(t, l.Seal(ctx, "s"))
		}
		return do(ctx)
	})
	got, err := trimmer.Trim(t.Context(), "s", head)
	require.NoError(t, err)
	require.True(t, sealed)
	require.EqualValues(t, floor, got)
	var texts []eventlog.Entry
	for record, err := range l.Read(t.Context(), "s", floor, 0) {
		require.NoError(t, err)
		texts = append(texts, record.Entry)
	}
	require.Equal(t, append(restored, more...), texts)
}

// TestATrimLeavesRecordsThatTheLogHas: a session is created and sealed at any of a trim's
// requests. A purge then finds each record of the log in the segments.
func TestATrimLeavesRecordsThatTheLogHas(t *testing.T) {
	t.Parallel()
	for at, done := 0, false; !done; at++ {
		l := openLog(t, link.Options{})
		entries, steps := storetest.TextEntries("new", 6), 0
		other := openHooked(t, l.Conn, func(ctx context.Context, _ string, do func(context.Context) error) error {
			if steps++; steps == at+1 {
				head := storetest.Appended(t, l, "s", 0, entries[:3])
				require.NoError(t, l.Seal(t.Context(), "s"))
				storetest.Appended(t, l, "s", head, entries[3:])
				require.NoError(t, l.Seal(t.Context(), "s"))
			}
			return do(ctx)
		})
		_, err := other.Trim(t.Context(), "s", 1<<52)
		require.NoError(t, err)
		if done = steps <= at; !done {
			_, err = l.Purge(t.Context(), storetest.PurgeNow)
			require.NoError(t, err)
			storetest.RequireRecords(t, l, "s", entries)
		}
		l.Close()
	}
}

// TestALatePayloadAfterATrimmedRecord: two callers append the same blob after one record.
// The parts that the second had stored when it failed stay, though retention has removed
// that record: the first one's record names the blob.
func TestALatePayloadAfterATrimmedRecord(t *testing.T) {
	t.Parallel()
	l := openLog(t, link.Options{})
	head := storetest.Appended(t, l, "s", 0, storetest.TextEntries("begin", 2))
	large := storetest.TextEntries("large", 1)
	large[0].Payload = bytes.Repeat([]byte("x"), 2*store.InlineBytes)
	late := &store.PendingAppend{Session: "s", Expected: head}
	_, err := l.AppendBlob(t.Context(), late, large[0].Payload)
	require.NoError(t, err)
	require.NoError(t, l.Seal(t.Context(), "s"))
	last := storetest.Appended(t, l, "s", head, large)
	last = storetest.Appended(t, l, "s", last, storetest.TextEntries("end", 1))
	require.NoError(t, l.Seal(t.Context(), "s"))
	_, err = l.Purge(t.Context(), storetest.PurgeNow)
	require.NoError(t, err)
	floor, err := l.Trim(t.Context(), "s", head)
	require.NoError(t, err)
	require.Equal(t, head, floor)
	l.DropBlobs(t.Context(), late, &eventlog.ConflictError{Head: last})
	n := 0
	for r, err := range l.Read(t.Context(), "s", floor, 0) {
		require.NoError(t, err)
		if n++; n == 1 {
			require.Equal(t, large[0].Payload, r.Payload)
		}
	}
	require.Equal(t, 2, n)
}

// TestATrimFinishesAnInterruptedOne, also if it has to remove less: readers know the
// floor.
func TestATrimFinishesAnInterruptedOne(t *testing.T) {
	t.Parallel()
	l := openLog(t, link.Options{})
	head := uint64(0)
	for i := range 3 {
		head = storetest.Appended(t, l, "s", head, storetest.TextEntries(fmt.Sprint(i), 2))
		require.NoError(t, l.Seal(t.Context(), "s"))
	}
	_, err := l.Purge(t.Context(), storetest.PurgeNow)
	require.NoError(t, err)
	died := errors.New("died")
	trimmer := openHooked(t, l.Conn, func(ctx context.Context, point string, do func(context.Context) error) error {
		if point == "delete" {
			return died
		}
		return do(ctx)
	})
	_, err = trimmer.Trim(t.Context(), "s", 4)
	require.ErrorIs(t, err, died)
	floor, err := l.Trim(t.Context(), "s", 1)
	require.NoError(t, err)
	require.EqualValues(t, 4, floor)
	for _, err := range l.Read(t.Context(), "s", 0, 0) {
		trimmed, ok := errors.AsType[*eventlog.TrimmedError](err)
		require.True(t, ok, "%v", err)
		require.EqualValues(t, 4, trimmed.Floor)
	}
}
