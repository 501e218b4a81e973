package memory

import (
	"context"
	"sync"
)

// turns lets a manager write a log once at a time, in the order in which it was
// asked to. Each append is after all others: of many at once all but one would
// have to try again. What several nodes write at once they do try again.
type turns struct {
	mu   sync.Mutex
	logs map[string]*turn
}

type turn struct {
	taken chan struct{} // holds one
	users int           // who have it or wait for it
}

// take waits for a log's turn, which lasts until done is called. Its error is
// ctx's.
func (t *turns) take(ctx context.Context, log string) (done func(), err error) {
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
