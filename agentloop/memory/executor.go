package memory

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"
)

// Executor decides when the vectors of saved memories are computed.
type Executor interface {
	// Execute has a job done, or drops it: then the memory stays pending. ctx
	// is the caller's; a job that outlives the call has another one.
	Execute(ctx context.Context, job func(ctx context.Context))
	// Shutdown takes no more jobs and waits for those under way. When ctx ends
	// it ends theirs, drops the rest, waits for those under way to notice, and
	// returns ctx's error.
	Shutdown(ctx context.Context) error
}

// Inline does each job before the call returns.
func Inline() Executor { return inline{} }

type inline struct{}

func (inline) Execute(ctx context.Context, job func(context.Context)) { job(ctx) }
func (inline) Shutdown(context.Context) error                         { return nil }

// Defaults and limits of executors in the background.
const (
	DefaultConcurrency = 4
	// MaxQueued is how many jobs wait at most; more are dropped.
	MaxQueued = 1000
)

// Background does jobs in goroutines, at most so many at once, 0 meaning
// DefaultConcurrency. There are none while nothing is to do.
func Background(concurrency int) Executor {
	if concurrency <= 0 {
		concurrency = DefaultConcurrency
	}
	b := &background{free: semaphore.NewWeighted(int64(concurrency)), most: concurrency + MaxQueued}
	b.ctx, b.cancel = context.WithCancelCause(context.Background())
	return b
}

type background struct {
	ctx    context.Context // of all jobs
	cancel context.CancelCauseFunc
	free   *semaphore.Weighted
	jobs   sync.WaitGroup

	mu     sync.Mutex
	taken  int // jobs that are under way or wait
	most   int // of them
	closed bool
}

func (b *background) Execute(_ context.Context, job func(context.Context)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed || b.taken == b.most {
		return
	}
	b.taken++
	b.jobs.Go(func() {
		if b.free.Acquire(b.ctx, 1) == nil {
			job(b.ctx)
			b.free.Release(1)
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		b.taken--
	})
}

func (b *background) Shutdown(ctx context.Context) error {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	inTime := context.AfterFunc(ctx, func() { b.cancel(context.Cause(ctx)) })
	b.jobs.Wait()
	if !inTime() {
		return context.Cause(ctx)
	}
	b.cancel(context.Canceled)
	return nil
}
