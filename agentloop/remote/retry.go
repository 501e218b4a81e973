package remote

import (
	"context"
	"fmt"
	"time"
)

// maxDelay is the longest wait between two attempts; doubling stops there.
const maxDelay = 30 * time.Second

// backoff is the wait behind attempt n, from 0: base * 2^n.
func backoff(base time.Duration, n int) time.Duration {
	for range n {
		if base >= maxDelay {
			break
		}
		base = min(2*base, maxDelay)
	}
	return base
}

// pause waits before a further attempt. If ctx ends meanwhile, the error is
// its cause, and its text also has what the last attempt failed with.
func pause(ctx context.Context, d time.Duration, last error) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w, after %v", context.Cause(ctx), last)
	}
}
