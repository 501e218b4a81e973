package maintenance

import (
	"context"
	"fmt"
	"testing"
	"time"

	natsjs "github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/embed/embedtest"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/internal/link"
	"github.com/helixd/helixd/eventlog/jetstream/internal/store"
	"github.com/helixd/helixd/eventlog/jetstream/internal/storetest"
	"github.com/helixd/helixd/eventlog/jetstream/internal/wire"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

// secondNode opens the log of l once more.
func secondNode(t *testing.T, l *Maintenance) *Maintenance {
	t.Helper()
	other, err := Open(t.Context(), l.Conn, link.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { other.Close() })
	return other
}

// TestAnotherNodesSealerBringsNothingErasedBack: a node that still has an erased
// session's records in memory seals them after the session was created again.
func TestAnotherNodesSealerBringsNothingErasedBack(t *testing.T) {
	t.Parallel()
	a := openLog(t, link.Options{})
	b := secondNode(t, a)
	storetest.Appended(t, b, "s", 0, storetest.TextEntries("secret", sealLeast))
	storetest.Appended(t, a, "other", 0, storetest.TextEntries("x", 2*store.FewSequences)) // so that segments are read first
	e, err := a.Erase(t.Context(), "s")
	require.NoError(t, err)
	require.Equal(t, eventlog.Erasure{Records: sealLeast}, e)
	recreated := storetest.TextEntries("new", 3)
	storetest.Appended(t, a, "s", 0, recreated)

	sealer := b.sealerOf("s")
	sealer.mu.Lock()
	sealer.tails["s"].touched = time.Now().Add(-sealIdle)
	sealer.mu.Unlock()
	sealer.sweep(time.Now())
	sealer.sealDue(t.Context())
	storetest.RequireRecords(t, a, "s", recreated)
	require.NoError(t, a.Seal(t.Context(), "s"))
	storetest.RequireRecords(t, a, "s", recreated)
}

// TestASealerForgetsWhatAnotherNodeErased: what a node has not sealed yet of a session that
// another node erased is not due for ever, and a session that takes the id is sealed.
func TestASealerForgetsWhatAnotherNodeErased(t *testing.T) {
	t.Parallel()
	srv, nc := embedtest.Start(t, embed.Options{SyncInterval: time.Second})
	a, err := Open(t.Context(), nc, link.Options{Server: srv}) // which overwrites many records at once
	require.NoError(t, err)
	t.Cleanup(func() { a.Close() })
	b := secondNode(t, a)
	sealer := b.sealerOf("s")
	unsealed := func() bool {
		sealer.mu.Lock()
		defer sealer.mu.Unlock()
		tail := sealer.tails["s"]
		return tail != nil && tail.count > 0
	}
	seal := func() {
		sealer.mu.Lock()
		if tail := sealer.tails["s"]; tail != nil {
			tail.touched = time.Now().Add(-sealIdle)
		}
		sealer.mu.Unlock()
		sealer.sweep(time.Now())
		sealer.sealDue(t.Context())
	}
	for _, again := range []struct {
		by      *Maintenance
		records int
	}{{nil, 0}, {a, wire.SegmentRecords}, {b, wire.SegmentRecords}} {
		head := storetest.Appended(t, b, "s", 0, storetest.TextEntries("old", wire.SegmentRecords))
		sealedTo(t, b, "s", head)
		storetest.Appended(t, b, "s", head, storetest.TextEntries("unsealed", sealLeast))
		_, err := a.Erase(t.Context(), "s")
		require.NoError(t, err)
		if again.by == nil {
			seal()
			seal()
			require.False(t, unsealed(), "nothing of the session is left")
			continue
		}
		head = storetest.Appended(t, again.by, "s", 0, storetest.TextEntries("new", again.records))
		seal()
		seal()
		if again.by == a {
			require.False(t, unsealed(), "the session that this node had written to is gone")
			require.NoError(t, a.Seal(t.Context(), "s"))
		}
		sealedTo(t, b, "s", head)
		_, err = a.Erase(t.Context(), "s")
		require.NoError(t, err)
		b.sealerOf("s").forget("s")
	}
}

// TestALateEraserLeavesTheNewSession: two nodes erase the same session; one is done, and
// the session is created again before the other continues.
func TestALateEraserLeavesTheNewSession(t *testing.T) {
	t.Parallel()
	a := openLog(t, link.Options{})
	b := secondNode(t, a)
	storetest.Appended(t, a, "s", 0, storetest.TextEntries("old", 10))
	tombstoneOnly(t, b, "s")

	recreated := storetest.TextEntries("new", 10)
	last, steps := uint64(0), 0
	b = openHooked(t, a.Conn, func(ctx context.Context, _ string, do func(context.Context) error) error {
		if steps++; steps == 2 { // it has found the tombstone
			_, err := a.Erase(context.WithoutCancel(ctx), "s")
			require.NoError(t, err)
			last = storetest.Appended(t, a, "s", 0, recreated)
			require.NoError(t, a.Seal(t.Context(), "s"))
		}
		return do(ctx)
	})
	_, err := b.Erase(t.Context(), "s")
	require.ErrorIs(t, err, eventlog.ErrSessionNotFound)

	storetest.RequireRecords(t, a, "s", recreated)
	s, _, err := a.LastSegment(t.Context(), "s")
	require.NoError(t, err)
	require.Equal(t, last, s.Last())
}

// TestAnErasureOfOneSessionLeavesTheNext: another node erases the session first, and creates it
// again, before any request of an erasure that is of that session only.
func TestAnErasureOfOneSessionLeavesTheNext(t *testing.T) {
	t.Parallel()
	a := openLog(t, link.Options{})
	steps, overtake := 0, func(int) {}
	b := openHooked(t, a.Conn, func(ctx context.Context, _ string, do func(context.Context) error) error {
		steps++
		overtake(steps)
		return do(ctx)
	})
	for at := 1; ; at++ {
		session, recreated := fmt.Sprint("s", at), storetest.TextEntries("new", 10)
		old := storetest.Appended(t, a, session, 0, storetest.TextEntries("old", 10))
		steps, overtake = 0, func(step int) {
			if step == at {
				if _, err := a.Erase(t.Context(), session); err != nil {
					require.ErrorIs(t, err, eventlog.ErrSessionNotFound) // it has gone already
				}
				storetest.Appended(t, a, session, 0, recreated)
			}
		}
		_, err := b.Erase(eventlog.WithHead(t.Context(), session, old), session)
		if steps < at { // it was alone
			require.NoError(t, err)
			_, err = a.Head(t.Context(), session)
			require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
			require.Greater(t, at, 5)
			return
		}
		storetest.RequireRecords(t, a, session, recreated)
	}
}

// TestAnEraserThatLookedTooEarlyKeepsTheMark: it did not find the session, whose first
// record was late. Another node found and marked it, and died before the tombstone or after
// it.
func TestAnEraserThatLookedTooEarlyKeepsTheMark(t *testing.T) {
	t.Parallel()
	for name, tombstoned := range map[string]bool{"marked": false, "tombstone": true} {
		t.Run(name, func(t *testing.T) {
			l := openLog(t, link.Options{})
			head := storetest.Appended(t, l, "s", 0, storetest.TextEntries("late", 3))
			require.NoError(t, l.Want(t.Context(), "s", head))
			if tombstoned {
				_, err := l.tombstone(t.Context(), "s")
				require.NoError(t, err)
			}

			done, err := l.erased(t.Context(), "s") // where Erase continues if it has not found the session
			require.NoError(t, err)
			require.False(t, done.Pending)
			_, err = l.Head(t.Context(), "s")
			require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
			_, err = l.TombstoneOf(t.Context(), "s")
			require.ErrorIs(t, err, eventlog.ErrSessionNotFound, "no tombstone without a mark")
		})
	}
}

func TestTwoMayEraseAtOnce(t *testing.T) {
	t.Parallel()
	l := openLog(t, link.Options{})
	storetest.Appended(t, l, "s", 0, storetest.TextEntries("x", 50))
	results := make(chan error, 2)
	for range 2 {
		go func() {
			_, err := l.Erase(context.WithoutCancel(t.Context()), "s")
			results <- err
		}()
	}
	for range 2 {
		if err := <-results; err != nil {
			require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
		}
	}
	_, err := l.Head(t.Context(), "s")
	require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
}

// TestAPurgeFinishesAnInterruptedErasure: it neither fails on the session nor leaves its
// bytes where nothing overwrites them any more.
func TestAPurgeFinishesAnInterruptedErasure(t *testing.T) {
	t.Parallel()
	l := openLog(t, link.Options{})
	storetest.Appended(t, l, "s", 0, storetest.TextEntries("secret", 10))
	other := storetest.TextEntries("other", 10)
	storetest.Appended(t, l, "other", 0, other)
	tombstoneOnly(t, l, "s")

	_, err := l.Purge(t.Context(), storetest.PurgeNow)
	require.NoError(t, err)
	e, err := l.Erase(t.Context(), "s")
	require.NoError(t, err)
	require.Equal(t, eventlog.Erasure{}, e, "it is done")
	storetest.RequireRecords(t, l, "other", other)
	storetest.Appended(t, l, "s", 0, storetest.TextEntries("new", 1))
}

// TestInterruptedErasuresAreFinished: even if no caller requests them again. That begins
// no other erasure.
func TestInterruptedErasuresAreFinished(t *testing.T) {
	t.Parallel()
	l := openLog(t, link.Options{})
	entries := storetest.TextEntries("x", 3)
	ids := []string{"wanted", "tombstone", "tombstone without a mark", "there"}
	for _, id := range ids {
		storetest.Appended(t, l, id, 0, entries)
	}
	require.NoError(t, l.Want(t.Context(), "wanted", 1))
	_, err := l.wantTombstone(t.Context(), "tombstone", 0)
	require.NoError(t, err)
	tombstoneOnly(t, l, "tombstone without a mark")
	head, err := l.Head(t.Context(), "wanted")
	require.NoError(t, err)
	require.NoError(t, l.Want(t.Context(), "wanted", head))
	n, err := l.FinishErasures(t.Context(), true)
	require.NoError(t, err)
	require.Equal(t, 2, n)
	for _, id := range ids[:2] {
		e, err := l.Erase(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, eventlog.Erasure{}, e, "it is done")
		_, err = l.Erase(t.Context(), id)
		require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
	}
	recreated := storetest.TextEntries("new", 2)
	storetest.Appended(t, l, "wanted", 0, recreated)

	require.NoError(t, l.FindErasures(t.Context()))
	n, err = l.FinishErasures(t.Context(), true)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	n, err = l.FinishErasures(t.Context(), true)
	require.NoError(t, err)
	require.Zero(t, n)
	storetest.RequireRecords(t, l, "wanted", recreated)
	storetest.RequireRecords(t, l, "there", entries)
}

// TestAnErasureOfAnotherSessionOfTheIDIsDropped: the wanted session was erased by another
// node, and the id was created again.
func TestAnErasureOfAnotherSessionOfTheIDIsDropped(t *testing.T) {
	t.Parallel()
	l := openLog(t, link.Options{})
	head := storetest.Appended(t, l, "s", 0, storetest.TextEntries("x", 3))
	_, err := l.Erase(t.Context(), "s")
	require.NoError(t, err)
	recreated := storetest.TextEntries("new", 20)
	storetest.Appended(t, l, "s", 0, recreated)
	require.NoError(t, l.Want(t.Context(), "s", head))
	for range 2 {
		n, err := l.FinishErasures(t.Context(), true)
		require.NoError(t, err)
		require.Zero(t, n)
		storetest.RequireRecords(t, l, "s", recreated)
		require.NoError(t, l.Seal(t.Context(), "s"))
		_, err = l.Purge(t.Context(), storetest.PurgeNow)
		require.NoError(t, err)
	}
	e, err := l.ErasingOf(t.Context(), "s")
	require.NoError(t, err)
	require.True(t, e.Done)
	require.Zero(t, e.Head)
	_, err = l.Erase(t.Context(), "s")
	require.NoError(t, err)
	_, err = l.Erase(t.Context(), "s")
	require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
}

// TestALateMarkDoesNotStopTheErasureOfTheNextSession: a node has read the head of an earlier
// session of the id, and marks it when another node has marked the next one.
func TestALateMarkDoesNotStopTheErasureOfTheNextSession(t *testing.T) {
	t.Parallel()
	late := openLog(t, link.Options{})
	old := storetest.Appended(t, late, "s", 0, storetest.TextEntries("old", 3))
	_, err := late.Erase(t.Context(), "s")
	require.NoError(t, err)
	storetest.Appended(t, late, "s", 0, storetest.TextEntries("new", 3))
	marks := 0
	l := openHooked(t, late.Conn, func(ctx context.Context, point string, do func(context.Context) error) error {
		err := do(ctx)
		if point == "mark" && err == nil {
			if marks++; marks == 1 {
				require.NoError(t, late.Want(t.Context(), "s", old))
			}
		}
		return err
	})
	_, err = l.Erase(t.Context(), "s")
	require.NoError(t, err)
	_, err = l.Head(t.Context(), "s")
	require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
	require.Greater(t, marks, 1)
}

// TestAnErasureThatFailsReportsWhetherItHasBegun: it is pending only after the tombstone.
func TestAnErasureThatFailsReportsWhetherItHasBegun(t *testing.T) {
	t.Parallel()
	l := openLog(t, link.Options{})
	storetest.Appended(t, l, "s", 0, storetest.TextEntries("x", 3))
	gone, leave := context.WithCancel(t.Context())
	leave()
	for _, session := range []string{"s", "never"} {
		e, err := l.Erase(gone, session)
		require.ErrorIs(t, err, context.Canceled)
		require.Zero(t, e)
	}
	_, err := l.Head(t.Context(), "s")
	require.NoError(t, err)

	require.NoError(t, l.JS.DeleteStream(t.Context(), layout.BlobStream)) // the first stream that is needed after it
	e, err := l.Erase(t.Context(), "s")
	require.Error(t, err)
	require.True(t, e.Pending)
	_, err = l.Head(t.Context(), "s")
	require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
}

// TestAChangeOfAMarkRestsBetweenTries: the server can't compare yet, since it is replicating
// another change.
func TestAChangeOfAMarkRestsBetweenTries(t *testing.T) {
	t.Parallel()
	began, tries := time.Now(), 0
	l := openHooked(t, openLog(t, link.Options{}).Conn, func(ctx context.Context, point string, do func(context.Context) error) error {
		if point != "mark" {
			return do(ctx)
		}
		if tries++; tries == 1 {
			began = time.Now()
		}
		if time.Since(began) < 20*time.Millisecond {
			return &natsjs.APIError{ErrorCode: 10164}
		}
		return do(ctx)
	})
	require.NoError(t, l.Want(t.Context(), "s", 1))
	require.LessOrEqual(t, tries, 1+int(time.Since(began)/time.Millisecond))
}
