package maintenance

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/internal/link"
	"github.com/helixd/helixd/eventlog/jetstream/internal/store"
	"github.com/helixd/helixd/eventlog/jetstream/internal/storetest"
	"github.com/helixd/helixd/eventlog/jetstream/internal/wire"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
	"github.com/helixd/helixd/integration/testkit"
)

// finishAt does everything that is due at a time for the mark of an erasure.
func finishAt(ctx context.Context, l *Maintenance, session string, now time.Time) error {
	if _, err := l.finishErasure(ctx, session, true); err != nil {
		return err
	}
	_, err := l.forgetDone(ctx, session, 0, now, time.Now().Add(time.Hour))
	return err
}

// markedDone stores marks of erasures that are done, and returns how many marks there are.
func markedDone(t *testing.T, l *Maintenance, n int) func() int {
	t.Helper()
	for i := range n {
		_, err := l.StoreMessage(t.Context(), &nats.Msg{
			Subject: layout.ErasedSubject(fmt.Sprint("done", i), 0), Data: []byte(`{"fence":1,"removed":true,"done":true,"told":true}`), Header: nats.Header{},
		})
		require.NoError(t, err)
	}
	return func() int {
		marks, err := l.SubjectsOf(t.Context(), layout.SegmentStream(0), layout.ErasedSubjects+"0.*")
		require.NoError(t, err)
		return len(marks)
	}
}

// TestDoneErasuresDoNotDelayOthers: a node that has just started finds an unfinished
// erasure among many marks of those that were done long ago. It does not read each of
// them, neither then nor later, and removes them after everything else, for as long as
// its budget allows.
func TestDoneErasuresDoNotDelayOthers(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	const done = 2*marksAtOnce + 50
	l := openLog(t, link.Options{})
	left := markedDone(t, l, done)
	head := storetest.Appended(t, l, "wanted", 0, storetest.TextEntries("x", 3))
	require.NoError(t, l.Want(t.Context(), "wanted", head))

	asked := 0
	node := openHooked(t, l.Conn, func(ctx context.Context, _ string, do func(context.Context) error) error {
		asked++
		return do(ctx)
	})
	asked = 0
	later := time.Now().Add(store.DoneFor + time.Minute)
	node.forgetFor = 0
	n, err := node.finishErasures(t.Context(), true, later)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	_, err = l.Head(t.Context(), "wanted")
	require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
	require.Equal(t, done, left(), "one of them is removed, and one has come")
	require.Less(t, asked, marksAtOnce)

	for range 2 { // a node that does not lead leaves them
		asked = 0
		_, err = node.finishErasures(t.Context(), false, later)
		require.NoError(t, err)
	}
	require.Less(t, asked, 5, "it knows the marks; what takes long is asked for again")
	require.Equal(t, done, left())

	node.forgetFor = time.Hour
	_, err = node.finishErasures(t.Context(), true, later)
	require.NoError(t, err)
	require.Zero(t, left())
}

// TestAnErasureOfAnIDThatIsKnownToBeDone: its session was created again and must be
// erased again.
func TestAnErasureOfAnIDThatIsKnownToBeDone(t *testing.T) {
	t.Parallel()
	l := openLog(t, link.Options{})
	for range 3 {
		head := storetest.Appended(t, l, "s", 0, storetest.TextEntries("x", 3))
		require.NoError(t, l.Want(t.Context(), "s", head))
		n, err := l.finishErasures(t.Context(), true, time.Now())
		require.NoError(t, err)
		require.Equal(t, 1, n)
		n, err = l.finishErasures(t.Context(), true, time.Now())
		require.NoError(t, err)
		require.Zero(t, n)
		require.Len(t, l.done.of[0], 1)
	}
	_, err := l.finishErasures(t.Context(), true, time.Now().Add(store.DoneFor+time.Minute))
	require.NoError(t, err)
	require.Empty(t, l.done.of[0])
	requireNothing(t, l, "s")
}

// TestAMarkThatCannotBeRemovedKeepsNoOtherOne: it is reported, and tried again later.
func TestAMarkThatCannotBeRemovedKeepsNoOtherOne(t *testing.T) {
	t.Parallel()
	l := openLog(t, link.Options{})
	left := markedDone(t, l, 3)
	_, err := l.StoreMessage(t.Context(), &nats.Msg{Subject: layout.SegmentSubject("done0", 0), Data: []byte("damaged"), Header: nats.Header{}})
	require.NoError(t, err)
	later := time.Now().Add(store.DoneFor + time.Minute)
	_, err = l.finishErasures(t.Context(), true, later)
	require.ErrorIs(t, err, eventlog.ErrDamaged)
	require.ErrorContains(t, err, `session "done0"`)
	require.Equal(t, 1, left())
	_, err = l.finishErasures(t.Context(), true, later)
	require.NoError(t, err)
	_, err = l.finishErasures(t.Context(), true, later.Add(forgetRetry))
	require.ErrorIs(t, err, eventlog.ErrDamaged)
}

// TestLatePartsAmongManyAreFound: a session that was created again has parts of blobs,
// and after these is one of the erased session. A mark stays until all were checked.
func TestLatePartsAmongManyAreFound(t *testing.T) {
	t.Parallel()
	l := openLog(t, link.Options{})
	storetest.Appended(t, l, "s", 0, storetest.TextEntries("old", 3))
	_, err := l.Erase(t.Context(), "s")
	require.NoError(t, err)
	e, err := l.ErasingOf(t.Context(), "s")
	require.NoError(t, err)
	large := storetest.TextEntries("new", 3)
	for i := range large {
		large[i].Payload = bytes.Repeat([]byte{'a' + byte(i)}, 2*store.InlineBytes)
	}
	storetest.Appended(t, l, "s", 0, large)
	secret := []byte("late")
	_, err = l.StoreBlob(t.Context(), "s", wire.RefOf(secret), secret, wire.HeaderAfter, e.Tombstone-1)
	require.NoError(t, err)
	prefix := l.BlobPrefix("s")
	late := func() uint64 {
		n, err := l.Count(t.Context(), layout.BlobStream, prefix+wire.RefOf(secret).Hash+".0")
		require.NoError(t, err)
		return n
	}
	l.forgetFor = 0 // one part
	later := time.Now().Add(store.DoneFor + time.Minute)
	for range large {
		_, err = l.finishErasures(t.Context(), true, later)
		require.NoError(t, err)
		require.EqualValues(t, 1, late())
	}
	for range 3 {
		_, err = l.finishErasures(t.Context(), true, later)
		require.NoError(t, err)
		require.Zero(t, late())
	}
	e, err = l.ErasingOf(t.Context(), "s")
	require.NoError(t, err)
	require.Zero(t, e.At)
	storetest.RequireRecords(t, l, "s", large)
}

// TestAMarkThatWasNotTidiedIsRemoved: a node died after it had stored that an erasure is
// done, and before it removed the mark's earlier messages.
func TestAMarkThatWasNotTidiedIsRemoved(t *testing.T) {
	t.Parallel()
	l := openLog(t, link.Options{})
	left := markedDone(t, l, 1)
	markedDone(t, l, 1)
	marks, err := l.SubjectsOf(t.Context(), layout.SegmentStream(0), layout.ErasedSubjects+"0.*")
	require.NoError(t, err)
	require.EqualValues(t, 2, marks["done0"])
	later := time.Now().Add(store.DoneFor + time.Minute)
	for range 2 {
		require.Equal(t, 1, left())
		_, err = l.finishErasures(t.Context(), true, later)
		require.NoError(t, err)
	}
	require.Zero(t, left())
}
