// Package locks has a lock for each name, which several users hold together, or one alone.
package locks

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"
)

// maxShared is how many users may hold a lock together.
const maxShared = 8

// Table holds the locks that are in use, by name. Users get a lock in the order in which they
// ask for it. The zero value is ready.
type Table struct {
	mu  sync.Mutex
	all map[string]*lock
}

type lock struct {
	places *semaphore.Weighted
	users  int // that hold it, or wait for it; guarded by the table
}

// Share waits for the lock of a name, which at most maxShared users hold together, until unlock
// is called. Its error is ctx's.
func (t *Table) Share(ctx context.Context, name string) (unlock func(), err error) {
	return t.hold(ctx, name, 1)
}

// Lock waits for the lock of a name, which the caller then holds alone until unlock is called.
// Its error is ctx's.
func (t *Table) Lock(ctx context.Context, name string) (unlock func(), err error) {
	return t.hold(ctx, name, maxShared)
}

func (t *Table) hold(ctx context.Context, name string, places int64) (unlock func(), err error) {
	t.mu.Lock()
	one := t.all[name]
	if one == nil {
		if t.all == nil {
			t.all = map[string]*lock{}
		}
		one = &lock{places: semaphore.NewWeighted(maxShared)}
		t.all[name] = one
	}
	one.users++
	t.mu.Unlock()
	leave := func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if one.users--; one.users == 0 {
			delete(t.all, name)
		}
	}
	if one.places.Acquire(ctx, places) != nil {
		leave()
		return nil, context.Cause(ctx)
	}
	return func() { one.places.Release(places); leave() }, nil
}
