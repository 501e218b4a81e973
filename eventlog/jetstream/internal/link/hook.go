package link

import (
	"context"
	"sync"
	"time"

	"github.com/helixd/helixd/eventlog"
)

// Hook holds an operation before each request to a server, so that a test says in
// which order those of several operations come. do sends the request; what is
// published may be lost, or arrive after its sender has given up. A log with a
// hook seals nothing by itself.
type Hook func(ctx context.Context, point string, do func(context.Context) error) error

// Tuning is what tests change of a log; zero elsewhere, for the constants.
type Tuning struct {
	Hook Hook
	// CheckEvery is how often a hub looks for lost records.
	CheckEvery time.Duration
	// Announced is how long a growth is announced.
	Announced time.Duration
	// Inline is up to which size a payload is in its message.
	Inline int
	// Few, far and ahead are how a read chooses between the log and segments.
	Few, Far uint64
	Ahead    int
}

type tuningKey struct{}

// WithTuning returns a context in which a log is opened with t.
func WithTuning(ctx context.Context, t Tuning) context.Context {
	return context.WithValue(ctx, tuningKey{}, t)
}

// Step does what sends a request.
func (l *Link) Step(ctx context.Context, point string, do func(context.Context) error) error {
	if l.Opts.Hook == nil {
		return do(ctx)
	}
	return l.Opts.Hook(ctx, point, do)
}

// Pause waits a little before a request is repeated, and reports false where ctx
// has ended.
func (l *Link) Pause(ctx context.Context) bool {
	if l.Opts.Hook != nil { // each request waits for its turn
		return ctx.Err() == nil
	}
	return pause(ctx)
}

// Lock locks mu, which another operation may hold that has not got its turn.
func (l *Link) Lock(ctx context.Context, mu *sync.Mutex) {
	if l.Opts.Hook == nil {
		mu.Lock()
		return
	}
	for !mu.TryLock() {
		_ = l.Opts.Hook(ctx, "lock", func(context.Context) error { return nil })
	}
}

// Yield leaves the log to others, see eventlog.Yield.
func (l *Link) Yield(ctx context.Context, began time.Time) {
	if l.Opts.Hook == nil {
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
