package openai

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/openai/openai-go/v3/option"
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

// startOnAnswer starts the clock when an answer begins: one that is an error is
// read before there is a stream.
func (c *idleClock) startOnAnswer(req *http.Request, next option.MiddlewareNext) (*http.Response, error) {
	res, err := next(req)
	if err == nil {
		c.start()
	}
	return res, err
}
