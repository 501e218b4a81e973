package web

import (
	"context"
	"sync"
	"time"

	"github.com/helixd/helixd/httpapi/auth"
)

const (
	// AtOnce is how many searches a node runs at a time. The same number limits
	// comparisons, checks of large patches and, on few cores, the parsing of large
	// bodies.
	AtOnce = 2
	// TurnPatience is how long a request waits for its turn.
	TurnPatience = 10 * time.Second
	// maxRest bounds how long a caller waits after its turn for the next one.
	maxRest = time.Second
)

// Turns limits expensive work: a number of pieces at a time, and one per caller, so that
// no caller takes all of them. Callers without credentials count as one caller that may
// have all.
type Turns struct {
	slots chan struct{}
	// rests: after a turn its caller waits for as long as the turn took, so that it keeps
	// at most half of a core busy. Go polls the network when a core is idle, else every
	// 10 ms: a caller that kept one of two cores busy would delay all others whenever the
	// garbage collector has the other core.
	rests bool

	mu      sync.Mutex
	callers map[string]*turn // that work or wait
}

// turn is the work of one caller.
type turn struct {
	busy     chan struct{}
	requests int // that work or wait
}

func NewTurns(slots int, rests bool) *Turns {
	return &Turns{slots: make(chan struct{}, slots), rests: rests, callers: map[string]*turn{}}
}

// Take waits for the caller's turn, which lasts until giveBack is called. After
// TurnPatience it returns ErrCallerBusy or ErrAllBusy; if ctx ends, its cause.
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

// enter returns the channel on which the caller's requests wait for each other. leave
// removes the caller after its last request.
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

// ParseTurn waits for a turn to parse the body, or a part of it, if the body is large.
// Without turns, a caller with several large bodies would take all cores, and Go polls
// the network only every 10 ms while none is idle: another caller's append needs several
// polls.
func (r *Request) ParseTurn() (done func(), err error) {
	if max(r.ContentLength, r.Held.N) <= FirstRead { // a body without a length is known by what has come
		return func() {}, nil
	}
	return r.Parses.Take(r.Context(), auth.CallerOf(r.Context()))
}

// AnswerIn waits for a turn in which the answer is made. The turn ends when the answer is encoded
// and, if it is large, counts as one under way; else with the request.
func (r *Request) AnswerIn(t *Turns) error {
	done, err := t.Take(r.Context(), auth.CallerOf(r.Context()))
	if err == nil {
		r.Out.turn = done
	}
	return err
}

// LargeAnswer waits for a turn to make the answer to a GET, if it is made of so many bytes that
// it may be large. An answer counts as one under way from when it is encoded: without turns, a
// caller could have any number of large ones encoded at a time.
func (r *Request) LargeAnswer(size int64) error {
	if size <= pieceBytes {
		return nil
	}
	return r.AnswerIn(r.Encodes)
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
