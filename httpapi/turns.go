package httpapi

import (
	"context"
	"sync"
	"time"

	"github.com/helixd/helixd/httpapi/auth"
)

const (
	// atOnce is how many searches a node makes at a time, how many comparisons,
	// how many checks of large patches, and, with few cores, how many large bodies
	// it parses.
	atOnce = 2
	// turnPatience is how long a request waits for its turn.
	turnPatience = 10 * time.Second
	// maxRest bounds how long a caller waits after its turn for the next one.
	maxRest = time.Second
)

// turns bounds work that takes much of a node: so many pieces at a time, of one
// caller at most one, so that no caller can hold all of them. Callers of whom
// nothing is known are bounded together.
type turns struct {
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

func newTurns(slots int, rests bool) *turns {
	return &turns{slots: make(chan struct{}, slots), rests: rests, callers: map[string]*turn{}}
}

// take waits for the caller's turn, which lasts until giveBack is called. Errors:
// errCallerBusy, errAllBusy; the context's cause.
func (t *turns) take(ctx context.Context, c auth.Caller) (giveBack func(), err error) {
	own, leave := t.enter(c)
	patience := time.NewTimer(turnPatience)
	defer patience.Stop()
	for _, wait := range []struct {
		slots chan struct{}
		busy  error
	}{{own, errCallerBusy}, {t.slots, errAllBusy}} {
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
func (t *turns) enter(c auth.Caller) (busy chan struct{}, leave func()) {
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

// parseTurn waits for a turn to parse a request's body, or a part of it, if that is
// large. A caller with several of them would else take all cores: the network is
// looked at when one is free, or every 10 ms, and another caller's append needs that
// many times.
func (r *request) parseTurn() (done func(), err error) {
	if r.ContentLength <= firstRead {
		return func() {}, nil
	}
	return r.parses.take(r.Context(), auth.CallerOf(r.Context()))
}

// waiting returns how many requests of a caller have a turn, or wait for it.
func (t *turns) waiting(c auth.Caller) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	if own := t.callers[c.Share()]; own != nil {
		return own.requests
	}
	return 0
}
