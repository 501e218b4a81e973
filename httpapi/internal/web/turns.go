package web

import (
	"context"
	"sync"
	"time"

	"github.com/helixd/helixd/httpapi/auth"
)

const (
	// AtOnce is how many searches a node makes at a time, how many comparisons,
	// how many checks of large patches, and, with few cores, how many large bodies
	// it parses.
	AtOnce = 2
	// TurnPatience is how long a request waits for its turn.
	TurnPatience = 10 * time.Second
	// maxRest bounds how long a caller waits after its turn for the next one.
	maxRest = time.Second
)

// Turns bounds work that takes much of a node: so many pieces at a time, of one
// caller at most one, so that no caller can hold all of them. Callers of whom
// nothing is known are bounded together.
type Turns struct {
	slots chan struct{}
	// rests: after a turn its caller waits for as long as that took, so that it keeps
	// at most half of a core busy. One that keeps a whole core busy makes others wait
	// wherever the garbage collector has the other core: the network is looked at when
	// one is idle, or every 10 ms.
	rests bool

	mu      sync.Mutex
	callers map[string]*turn // that work or wait
}

// turn is what one caller has under way.
type turn struct {
	busy     chan struct{}
	requests int // that work or wait
}

func NewTurns(slots int, rests bool) *Turns {
	return &Turns{slots: make(chan struct{}, slots), rests: rests, callers: map[string]*turn{}}
}

// Take waits for the caller's turn, which lasts until giveBack is called. Errors:
// ErrCallerBusy, ErrAllBusy; the context's cause.
func (t *Turns) Take(ctx context.Context, c auth.Caller) (giveBack func(), err error) {
	own, leave := t.enter(c)
	patience := time.NewTimer(TurnPatience)
	defer patience.Stop()
	for _, wait := range []struct {
		slots chan struct{}
		busy  error
	}{{own, ErrCallerBusy}, {t.slots, ErrAllBusy}} {
		select {
		case wait.slots <- struct{}{}:
			if wait.slots == own {
				free := leave
				leave = func() { <-own; free() }
			}
		case <-patience.C:
			leave()
			return nil, wait.busy
		case <-ctx.Done():
			leave()
			return nil, context.Cause(ctx)
		}
	}
	began := time.Now()
	return func() {
		<-t.slots
		if !t.rests {
			leave()
			return
		}
		time.AfterFunc(min(time.Since(began), maxRest), leave)
	}, nil
}

// enter returns where the caller waits for its own requests; the caller is forgotten
// after the last of them.
func (t *Turns) enter(c auth.Caller) (busy chan struct{}, leave func()) {
	key := c.Share()
	t.mu.Lock()
	defer t.mu.Unlock()
	own := t.callers[key]
	if own == nil {
		most := 1
		if key == (auth.Caller{}).Share() {
			most = cap(t.slots)
		}
		own = &turn{busy: make(chan struct{}, most)}
		t.callers[key] = own
	}
	own.requests++
	return own.busy, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if own.requests--; own.requests == 0 {
			delete(t.callers, key)
		}
	}
}

// ParseTurn waits for a turn to parse a request's body, or a part of it, if that is
// large. A caller with several of them would else take all cores: the network is
// looked at when one is free, or every 10 ms, and another caller's append needs that
// many times.
func (r *Request) ParseTurn() (done func(), err error) {
	if r.ContentLength <= FirstRead {
		return func() {}, nil
	}
	return r.Parses.Take(r.Context(), auth.CallerOf(r.Context()))
}

// Waiting returns how many requests of a caller have a turn, or wait for it.
func (t *Turns) Waiting(c auth.Caller) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	if own := t.callers[c.Share()]; own != nil {
		return own.requests
	}
	return 0
}
