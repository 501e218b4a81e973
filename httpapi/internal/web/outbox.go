package web

import (
	"context"
	"sync"
)

// Bounds of an outbox, in bytes.
const (
	outboxFull = 32 << 10 // above this, no more events are pulled
	outboxKeep = 2 << 10  // the largest buffer that an idle stream keeps
)

// outbox buffers what is written to a client next.
type outbox struct {
	ready chan struct{} // there is something
	room  chan struct{} // there is room again
	done  chan struct{} // closed when there will be no more

	mu    sync.Mutex
	buf   []byte
	spare []byte // written, to be used again
}

func newOutbox() *outbox {
	return &outbox{ready: make(chan struct{}, 1), room: make(chan struct{}, 1), done: make(chan struct{})}
}

// add appends an event. It waits while the outbox is full, and returns the cause if ctx
// ends.
func (b *outbox) add(ctx context.Context, o *EventWriter, e Event) error {
	for {
		b.mu.Lock()
		if len(b.buf) < outboxFull {
			b.buf = o.append(b.buf, e)
			b.mu.Unlock()
			signal(b.ready)
			return nil
		}
		b.mu.Unlock()
		if err := b.waitRoom(ctx); err != nil {
			return err
		}
	}
}

// taken waits until take has returned all events.
func (b *outbox) taken(ctx context.Context) error {
	for {
		b.mu.Lock()
		n := len(b.buf)
		b.mu.Unlock()
		if n == 0 {
			return nil
		}
		if err := b.waitRoom(ctx); err != nil {
			return err
		}
	}
}

func (b *outbox) waitRoom(ctx context.Context) error {
	select {
	case <-b.room:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// take empties the outbox and returns its content.
func (b *outbox) take() []byte {
	b.mu.Lock()
	taken := b.buf
	b.buf, b.spare = b.spare, nil
	b.mu.Unlock()
	signal(b.room)
	return taken
}

// reuse gives back a buffer that take has returned. An idle stream keeps at most
// outboxKeep of it.
func (b *outbox) reuse(written []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if cap(written) <= outboxKeep || len(b.buf) > 0 && cap(written) <= 2*outboxFull {
		b.spare = written[:0]
	}
	if len(b.buf) == 0 && cap(b.buf) > outboxKeep {
		b.buf = nil
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
