package snapshot_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/snapshot"
	foldsmem "github.com/helixd/helixd/snapshot/memory"
)

// leaving are folds whose erasure times out from the second time on.
type leaving struct {
	*foldsmem.Folds
	asked int
}

func (l *leaving) Erase(ctx context.Context, session string) error {
	if l.asked++; l.asked > 1 {
		return context.DeadlineExceeded
	}
	return l.Folds.Erase(ctx, session)
}

// If an erasure is complete in the log but leaves folds, it is pending. A session that is
// not found may still have folds.
func TestAnErasureThatLeavesFolds(t *testing.T) {
	log := memory.New()
	fill(t, log, 10)
	e, err := snapshot.New(log, &snapshot.StoreOptions{Folds: &leaving{Folds: new(foldsmem.Folds)}}).Erase(t.Context(), "s")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.True(t, e.Pending)

	e, err = snapshot.New(log, &snapshot.StoreOptions{Folds: &leaving{Folds: new(foldsmem.Folds)}}).Erase(t.Context(), "s")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NotErrorIs(t, err, eventlog.ErrSessionNotFound)
	require.False(t, e.Pending)
}

// delayed are folds that call a function before they are saved.
type delayed struct {
	*foldsmem.Folds
	before func()
}

func (d *delayed) Save(ctx context.Context, session string, s snapshot.Saved) (int, error) {
	if before := d.before; before != nil {
		d.before = nil
		before()
	}
	return d.Folds.Save(ctx, session, s)
}

// A fold that is saved after its session was erased and created again is removed, too.
func TestAFoldOfAnErasedSessionIsNotKept(t *testing.T) {
	log := memory.New()
	folds := &delayed{Folds: new(foldsmem.Folds)}
	store := snapshot.New(log, &snapshot.StoreOptions{Folds: folds, SaveEvery: 1})
	old := fill(t, log, 10)
	folds.before = func() {
		_, err := store.Erase(t.Context(), "s")
		require.NoError(t, err)
		fill(t, log, 3)
	}
	_, err := store.Head(t.Context(), "s")
	require.NoError(t, err)
	require.Nil(t, folds.before)
	saved, err := folds.Nearest(t.Context(), "s", old[9].Sequence, snapshot.Packed, snapshot.JSON)
	require.NoError(t, err)
	require.Nil(t, saved)
}

// An erasure that comes late leaves the next session of its id, and its folds: retention may
// have removed that session's records, and then only they have its state.
func TestALateErasureLeavesTheFoldsOfTheNextSession(t *testing.T) {
	log, folds := memory.New(), new(foldsmem.Folds)
	store := snapshot.New(log, &snapshot.StoreOptions{Folds: folds, SaveEvery: 1})
	old := fill(t, log, 10)
	_, err := store.Erase(eventlog.WithHead(t.Context(), "s", old[9].Sequence), "s")
	require.NoError(t, err)
	next := fill(t, log, 10)
	_, err = store.Head(t.Context(), "s")
	require.NoError(t, err)
	_, err = store.Erase(eventlog.WithHead(t.Context(), "s", old[9].Sequence), "s")
	require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
	saved, err := folds.Nearest(t.Context(), "s", next[9].Sequence, snapshot.Packed, snapshot.JSON)
	require.NoError(t, err)
	require.NotNil(t, saved)
}

// The same, if retention has removed that session's first records, so that a read of the record
// that the caller knows fails.
func TestALateErasureLeavesATrimmedSession(t *testing.T) {
	_, log, folds := onServer(t)
	store := snapshot.New(log, &snapshot.StoreOptions{Folds: folds})
	old, err := log.Append(t.Context(), "s", 0, []eventlog.Entry{userMessage(t, "old")})
	require.NoError(t, err)
	_, err = store.Erase(eventlog.WithHead(t.Context(), "s", old), "s")
	require.NoError(t, err)
	head := uint64(0)
	for i := range 5 {
		head, err = log.Append(t.Context(), "s", head, []eventlog.Entry{userMessage(t, fmt.Sprint(i))})
		require.NoError(t, err)
		require.NoError(t, log.Seal(t.Context(), "s"))
	}
	_, err = log.Purge(t.Context(), eventlog.PurgeOptions{SealedFor: time.Nanosecond})
	require.NoError(t, err)
	done, err := store.Retain(t.Context(), snapshot.Retention{Drop: true})
	require.NoError(t, err)
	require.NotEmpty(t, done.Dropped)

	_, err = store.Erase(eventlog.WithHead(t.Context(), "s", old), "s")
	require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
	tree, err := snapshot.New(log, &snapshot.StoreOptions{Folds: folds}).Head(t.Context(), "s")
	require.NoError(t, err)
	require.Len(t, tree.Messages, 5)
}
