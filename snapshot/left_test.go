package snapshot_test

import (
	"bytes"
	"context"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/snapshot"
)

// leftBy is a store whose caller leaves while the store is read.
type leftBy struct {
	broken
	leave context.CancelFunc
}

func (l leftBy) Nearest(ctx context.Context, _ string, _ uint64, _ ...snapshot.Form) (*snapshot.Saved, error) {
	l.leave()
	return nil, ctx.Err()
}

// A caller that leaves is no failure of the saved folds, and is not logged.
func TestACallerThatLeavesIsNotLogged(t *testing.T) {
	log := memory.New()
	fill(t, log, 30)
	ctx, leave := context.WithCancel(t.Context())
	var logs bytes.Buffer
	s := snapshot.New(log, &snapshot.StoreOptions{Folds: leftBy{leave: leave}, SaveEvery: 1, Logger: slog.New(slog.NewTextHandler(&logs, nil))})
	_, err := s.Head(ctx, "s")
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, logs.String())
}
