package deployment

import (
	"context"
	"time"
)

// Sleep lets time pass. If ctx ends before, it returns ctx's cause at once.
func Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
	return context.Cause(ctx)
}
