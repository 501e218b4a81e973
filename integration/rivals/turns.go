package main

import (
	"context"
	"runtime"
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

// verifyAll checks that each store holds what it has acknowledged, and no more.
func verifyAll(ctx context.Context, counts [][]int, stores ...interface {
	verify(ctx context.Context, counts []int) error
}) error {
	for i, s := range stores {
		if err := s.verify(ctx, counts[i]); err != nil {
			return err
		}
	}
	return nil
}
