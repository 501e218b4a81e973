package link

import (
	"context"
	"sync"
	"time"

	"github.com/helixd/helixd/eventlog"
)

// Hook holds an operation before each request to a server, so that a test decides the
// order of the requests of several operations. do sends the request. A published message
// may be lost, or arrive after its sender has given up. A log with a hook does not seal
// by itself.
type Hook func(ctx context.Context, point string, do func(context.Context) error) error

// Tuning are values that tests change; zero means the constants.
type Tuning struct {
	Hook Hook
	// CheckEvery is how often a hub looks for lost records.
	CheckEvery time.Duration
	// Announced is how long a growth stays announced.
	Announced time.Duration
	// Inline is the size up to which a payload is in its message.
	Inline int
	// Few, Far and Ahead are how a read chooses between the log and segments.
	Few, Far uint64
	Ahead    int
}

type tuningKey struct{}

// WithTuning returns a context in which a log is opened with t.
func WithTuning(ctx context.Context, t Tuning) context.Context {
	return context.WithValue(ctx, tuningKey{}, t)
}

// Step calls do, which sends a request.
func (l *Link) Step(ctx context.Context, point string, do func(context.Context) error) error {
	if l.Opts.Hook == nil {
		return do(ctx)
	}
	return l.Opts.Hook(ctx, point, do)
}

// Pause waits a little before a request is repeated. It returns false if ctx has ended.
func (l *Link) Pause(ctx context.Context) bool {
	if l.Opts.Hook != nil { // the hook orders the requests
		return ctx.Err() == nil
	}
	return eventlog.Sleep(ctx, readPause) == nil
}

// Lock locks mu, which another operation may hold that the hook has stopped.
func (l *Link) Lock(ctx context.Context, mu *sync.Mutex) {
	if l.Opts.Hook == nil {
		mu.Lock()
		return
	}
	for !mu.TryLock() {
		_ = l.Opts.Hook(ctx, "lock", func(context.Context) error { return nil })
	}
}

// Yield gives way to others, see eventlog.Yield.
func (l *Link) Yield(ctx context.Context, began time.Time) {
	if l.Opts.Hook == nil {
		eventlog.Yield(ctx, began)
	}
}

const readPause = 20 * time.Millisecond
