package remote

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/helixd/helixd/eventlog"
)

// maxDelay is the longest wait between two attempts that is not the server's
// wish; doubling stops there.
const maxDelay = 30 * time.Second

// maxRetryAfter is the longest wait that a server may ask for with
// Retry-After. If it asks for more, there is no further attempt.
const maxRetryAfter = 2 * time.Minute

// Retries are the attempts of a request that have failed in a row.
type Retries struct {
	base   time.Duration // before the first repetition
	most   int
	failed int
}

// Wait waits until a further attempt is due; whether err may be gone by then
// is the caller's to judge (see [Retryable]). If there is none it returns err,
// or the cause of a ctx that has ended, with err in its text.
func (r *Retries) Wait(ctx context.Context, err error) error {
	var wish time.Duration
	if e, ok := errors.AsType[*Error](err); ok {
		wish = e.RetryAfter
	}
	if r.failed >= r.most || wish > maxRetryAfter {
		return err
	}
	delay := max(wish, backoff(r.base, r.failed))
	r.failed++
	if ended := eventlog.Sleep(ctx, delay); ended != nil {
		return fmt.Errorf("%w, after %v", ended, err)
	}
	return nil
}

// Reset begins to count again: an attempt has got somewhere.
func (r *Retries) Reset() { r.failed = 0 }

// NewRetries returns the repetitions of a request: at most so many in a row, the
// first one after base, which doubles each time.
func NewRetries(base time.Duration, most int) *Retries { return &Retries{base: base, most: most} }

// backoff is the wait after attempt n, from 0: base * 2^n.
func backoff(base time.Duration, n int) time.Duration {
	for range n {
		if base >= maxDelay {
			break
		}
		base = min(2*base, maxDelay)
	}
	return base
}
