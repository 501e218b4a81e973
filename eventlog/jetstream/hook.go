package jetstream

import (
	"context"
	"sync"
	"time"

	"github.com/helixd/helixd/eventlog"
)

// hook holds an operation before each request to a server, so that a test says in
// which order those of several operations come. do sends the request; what is
// published may be lost, or arrive after its sender has given up. A log with a
// hook seals nothing by itself.
type hook func(ctx context.Context, point string, do func(context.Context) error) error

// step does what sends a request.
func (l *link) step(ctx context.Context, point string, do func(context.Context) error) error {
	if l.opts.hook == nil {
		return do(ctx)
	}
	return l.opts.hook(ctx, point, do)
}

// pause waits a little before a request is repeated, and reports false where ctx
// has ended.
func (l *link) pause(ctx context.Context) bool {
	if l.opts.hook != nil { // each request waits for its turn
		return ctx.Err() == nil
	}
	return pause(ctx)
}

// lock locks mu, which another operation may hold that has not got its turn.
func (l *link) lock(ctx context.Context, mu *sync.Mutex) {
	if l.opts.hook == nil {
		mu.Lock()
		return
	}
	for !mu.TryLock() {
		_ = l.opts.hook(ctx, "lock", func(context.Context) error { return nil })
	}
}

// yield leaves the log to others, see eventlog.Yield.
func (l *link) yield(ctx context.Context, began time.Time) {
	if l.opts.hook == nil {
		eventlog.Yield(ctx, began)
	}
}

func pause(ctx context.Context) bool {
	t := time.NewTimer(readPause)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

const readPause = 20 * time.Millisecond
