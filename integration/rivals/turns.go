package main

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
)

// inTurn calls each function twice, first to last and back, so that whatever
// drifts meanwhile drifts for all. Each begins on a clean slate: no garbage
// and no unwritten pages that another one has left.
func inTurn(systems ...func() error) error {
	one := func(f func() error) error {
		runtime.GC()
		syscall.Sync()
		return f()
	}
	for _, f := range systems {
		if err := one(f); err != nil {
			return err
		}
	}
	for i := len(systems) - 1; i >= 0; i-- {
		if err := one(systems[i]); err != nil {
			return err
		}
	}
	return nil
}

// each calls f with 0 to n-1, so many at a time.
func each(ctx context.Context, n, atATime int, f func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(n, atATime) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				if err := f(ctx, i); err != nil {
					cancel(err)
				}
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}
