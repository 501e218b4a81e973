package memory

import (
	"context"
	"sync"
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
	b := &background{free: concurrency, concurrency: concurrency, idle: make(chan struct{})}
	b.ctx, b.cancel = context.WithCancelCause(context.Background())
	return b
}

type background struct {
	ctx         context.Context // of all jobs
	cancel      context.CancelCauseFunc
	concurrency int

	mu     sync.Mutex
	free   int // of concurrency
	queue  []func(context.Context)
	closed bool
	idle   chan struct{} // closed when it is closed and all is done
}

func (b *background) Execute(_ context.Context, job func(context.Context)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed:
	case b.free > 0:
		b.free--
		go b.work(job)
	case len(b.queue) < MaxQueued:
		b.queue = append(b.queue, job)
	}
}

// work does a job, and then those that wait.
func (b *background) work(job func(context.Context)) {
	for job != nil {
		job(b.ctx)
		job = b.next()
	}
}

func (b *background) next() func(context.Context) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.queue) == 0 {
		b.free++
		b.settle()
		return nil
	}
	job := b.queue[0]
	b.queue[0] = nil
	b.queue = b.queue[1:]
	return job
}

// settle says that nothing is under way and nothing more will be.
func (b *background) settle() {
	if b.closed && b.free == b.concurrency {
		close(b.idle)
	}
}

func (b *background) Shutdown(ctx context.Context) error {
	b.mu.Lock()
	if !b.closed {
		b.closed = true
		b.settle()
	}
	b.mu.Unlock()
	select {
	case <-b.idle:
		b.cancel(context.Canceled)
		return nil
	case <-ctx.Done():
	}
	b.mu.Lock()
	b.queue = nil
	b.mu.Unlock()
	b.cancel(context.Cause(ctx))
	<-b.idle
	return context.Cause(ctx)
}
