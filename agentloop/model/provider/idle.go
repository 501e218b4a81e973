package provider

import (
	"context"
	"errors"
	"time"
)

// errIdle is the cause of a call that its idleClock has cancelled.
var errIdle = errors.New("no event for too long")

func isIdle(ctx context.Context) bool { return errors.Is(context.Cause(ctx), errIdle) }

// idleClock cancels a call whose provider is silent for too long. It runs only
// while the provider is waited for.
type idleClock struct {
	timeout time.Duration
	timer   *time.Timer
	cancel  context.CancelCauseFunc
}

// newIdleClock returns a clock that does not run yet, and the context that it
// cancels.
func newIdleClock(ctx context.Context, timeout time.Duration) (context.Context, *idleClock) {
	if timeout <= 0 {
		timeout = DefaultIdleTimeout
	}
	ctx, cancel := context.WithCancelCause(ctx)
	c := &idleClock{timeout: timeout, cancel: cancel}
	c.timer = time.AfterFunc(timeout, func() { cancel(errIdle) })
	c.timer.Stop()
	return ctx, c
}

func (c *idleClock) start() { c.timer.Reset(c.timeout) }
func (c *idleClock) stop()  { c.timer.Stop() }

func (c *idleClock) close() {
	c.stop()
	c.cancel(nil)
}
