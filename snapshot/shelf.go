package snapshot

import (
	"container/list"
	"context"
	"sync"
	"time"
)

// shelf keeps a value for each of the sessions that were asked for last. It is
// bounded in sessions and in bytes, except for the session of the last request; sessions
// without requests are removed.
type shelf[T any] struct {
	sessions, bytes int
	idle            time.Duration

	mu    sync.Mutex
	slots map[string]*slot[T]
	order list.List // of *slot[T], the last used first
	size  int
	timer *time.Timer // runs while there are slots
}

type slot[T any] struct {
	session string
	at      *list.Element // nil: it is not on the shelf any more
	size    int           // as it is counted
	used    time.Time

	turn  chan struct{} // one may use the value
	value T
}

func newShelf[T any](sessions, bytes int, idle time.Duration) *shelf[T] {
	return &shelf[T]{sessions: sessions, bytes: bytes, idle: idle, slots: map[string]*slot[T]{}}
}

// use calls f with the session's value, the zero value at first, and no other
// caller has it meanwhile. f returns how many bytes the value has then; with 0 it is not
// kept. The error is f's, or the context's.
func (s *shelf[T]) use(ctx context.Context, session string, f func(*T) (size int, err error)) error {
	k := s.take(session)
	select {
	case k.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	size := 0
	defer func() {
		<-k.turn
		s.put(k, size)
	}()
	size, err := f(&k.value)
	return err
}

// holds reports whether there is a value of the session.
func (s *shelf[T]) holds(session string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.slots[session] != nil
}

func (s *shelf[T]) take(session string) *slot[T] {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.slots[session]
	if k == nil {
		k = &slot[T]{session: session, turn: make(chan struct{}, 1)}
		s.slots[session], k.at = k, s.order.PushFront(k)
		if s.timer == nil {
			s.timer = time.AfterFunc(s.idle, s.tidy)
		}
	}
	k.used = time.Now()
	s.order.MoveToFront(k.at)
	return k
}

// put counts a value that was used and makes room.
func (s *shelf[T]) put(k *slot[T], size int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k.at == nil {
		return
	}
	s.size += size - k.size
	k.size = size
	if size == 0 {
		s.remove(k)
	}
	for s.order.Len() > 1 && (s.order.Len() > s.sessions || s.size > s.bytes) {
		s.remove(s.order.Back().Value.(*slot[T]))
	}
}

// remove forgets a slot; a caller that uses its value keeps it for itself.
func (s *shelf[T]) remove(k *slot[T]) {
	s.order.Remove(k.at)
	delete(s.slots, k.session)
	s.size -= k.size
	k.at = nil
}

// drop forgets a session.
func (s *shelf[T]) drop(session string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := s.slots[session]; k != nil {
		s.remove(k)
	}
}

// tidy removes sessions without recent requests.
func (s *shelf[T]) tidy() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for e := s.order.Back(); e != nil; e = s.order.Back() {
		k := e.Value.(*slot[T])
		if rest := s.idle - time.Since(k.used); rest > 0 {
			s.timer.Reset(rest)
			return
		}
		s.remove(k)
	}
	s.timer = nil
}
