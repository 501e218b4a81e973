// Package turns lets a process write a log once at a time.
package turns

import (
	"context"
	"sync"
)

// Turns lets its users write a log once at a time, in the order in which they asked to. Each
// append is after all others: of many at once all but one would have to try again. What
// several nodes write at once they do try again.
type Turns struct {
	mu   sync.Mutex
	logs map[string]*turn
}

// New returns turns that nobody has.
func New() *Turns { return &Turns{logs: map[string]*turn{}} }

type turn struct {
	taken chan struct{} // holds one
	users int           // who have it or wait for it
}

// Take waits for a log's turn, which lasts until done is called. Its error is
// ctx's.
func (t *Turns) Take(ctx context.Context, log string) (done func(), err error) {
	t.mu.Lock()
	one := t.logs[log]
	if one == nil {
		one = &turn{taken: make(chan struct{}, 1)}
		t.logs[log] = one
	}
	one.users++
	t.mu.Unlock()
	leave := func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if one.users--; one.users == 0 {
			delete(t.logs, log)
		}
	}
	select {
	case one.taken <- struct{}{}:
		return func() { <-one.taken; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, context.Cause(ctx)
	}
}
