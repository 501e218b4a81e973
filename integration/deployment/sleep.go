package deployment

import (
	"context"
	"time"

	"github.com/helixd/helixd/eventlog"
)

// Sleep lets time pass. If ctx ends before, it returns ctx's cause at once.
func Sleep(ctx context.Context, d time.Duration) error {
	_ = eventlog.Sleep(ctx, d)
	return context.Cause(ctx)
}
