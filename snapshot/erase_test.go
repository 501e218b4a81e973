package snapshot_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/snapshot"
	foldsmem "github.com/helixd/helixd/snapshot/memory"
)

// leaving are folds that are not erased in time from the second time on.
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

// An erasure whose folds are left is pending if the log's part is done. That a
// session is not found does not mean that nothing of it is left.
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
