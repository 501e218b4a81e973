// Package hold keeps appends to a session back for a moment, so that a caller
// whose comparison has failed can catch up and append.
package hold

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Limit is how long a hold lasts at most, and how long one append is kept back at
// most.
const Limit = time.Second

// Holds are those that one process knows of. The zero value has none.
type Holds struct {
	count    atomic.Int64 // of sessions, so that appends need no lock while there is none
	mu       sync.Mutex
	sessions map[string]*session
}

// session is one that is held.
type session struct {
	holders map[string]*time.Timer // by id; the timer ends the hold
	free    chan struct{}          // closed when the last hold ends
}

// Begin holds a session back for a holder until End, at most for Limit.
func (h *Holds) Begin(name, holder string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.sessions[name]
	if s == nil {
		if h.sessions == nil {
			h.sessions = map[string]*session{}
		}
		s = &session{holders: map[string]*time.Timer{}, free: make(chan struct{})}
		h.sessions[name] = s
		h.count.Add(1)
	}
	if s.holders[holder] == nil {
		s.holders[holder] = time.AfterFunc(Limit, func() { h.End(name, holder) })
	}
}

// End ends a hold; it may have ended before.
func (h *Holds) End(name, holder string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.sessions[name]
	if s == nil || s.holders[holder] == nil {
		return
	}
	s.holders[holder].Stop()
	delete(s.holders, holder)
	if len(s.holders) == 0 {
		delete(h.sessions, name)
		h.count.Add(-1)
		close(s.free)
	}
}

// Close ends all holds.
func (h *Holds) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for name, s := range h.sessions {
		for _, timer := range s.holders {
			timer.Stop()
		}
		delete(h.sessions, name)
		h.count.Add(-1)
		close(s.free)
	}
}

// Wait waits until no caller holds the session back, unless ctx is a holder's. It waits
// no longer than Limit, so that holds that follow one another keep nobody back for
// ever. The error is ctx's cause.
func (h *Holds) Wait(ctx context.Context, name string) error {
	if h.count.Load() == 0 || ctx.Value(key{}) == any(name) {
		return nil
	}
	h.mu.Lock()
	s := h.sessions[name]
	h.mu.Unlock()
	if s == nil {
		return nil
	}
	limit := time.NewTimer(Limit)
	defer limit.Stop()
	select {
	case <-s.free:
	case <-limit.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// Held reports whether a session is held back now.
func (h *Holds) Held(name string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.sessions[name] != nil
}

type key struct{}

// Holder returns the context of a session's holder, whose appends don't wait.
func Holder(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, key{}, name)
}
