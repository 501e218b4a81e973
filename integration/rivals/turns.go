package main

import (
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
