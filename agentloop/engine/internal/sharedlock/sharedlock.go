// Package sharedlock is a lock that a bounded number of users hold together, or one
// alone, within a context.
package sharedlock

import (
	"context"
	"sync"
)

// maxUsers is how many users may hold a lock together.
const maxUsers = 8

// Lock is held by users together, or by one alone.
type Lock struct {
	users chan struct{} // holds one for each that is in
	alone chan struct{} // held by a caller that waits for the exclusive lock
	using int           // how many are in, wait, or are about to; guarded by the table
}

func newLock() *Lock {
	return &Lock{users: make(chan struct{}, maxUsers), alone: make(chan struct{}, 1)}
}

// Share waits to be in, within ctx.
func (l *Lock) Share(ctx context.Context) error {
	select {
	case l.users <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Unshare undoes Share.
func (l *Lock) Unshare() { <-l.users }

// Lock waits for the exclusive lock, within ctx.
func (l *Lock) Lock(ctx context.Context) error {
	select {
	case l.alone <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	for n := range maxUsers {
		if err := l.Share(ctx); err != nil {
			for range n {
				l.Unshare()
			}
			<-l.alone
			return err
		}
	}
	return nil
}

// Unlock undoes Lock.
func (l *Lock) Unlock() {
	for range maxUsers {
		l.Unshare()
	}
	<-l.alone
}

// Table holds the locks that are in use, by name. The zero value is ready.
type Table struct {
	mu  sync.Mutex
	all map[string]*Lock
}

// Of returns the lock of a name, for its user until Leave: while one user that has
// been given up still holds it, later ones wait.
func (t *Table) Of(name string) *Lock {
	t.mu.Lock()
	defer t.mu.Unlock()
	one := t.all[name]
	if one == nil {
		if t.all == nil {
			t.all = map[string]*Lock{}
		}
		one = newLock()
		t.all[name] = one
	}
	one.using++
	return one
}

// Leave undoes Of.
func (t *Table) Leave(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if one := t.all[name]; one.using > 1 {
		one.using--
	} else {
		delete(t.all, name)
	}
}
