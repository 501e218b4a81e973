package web

import (
	"errors"
	"sync"
)

var (
	ErrCallerBusy = errors.New("httpapi: the caller has too much under way")
	ErrAllBusy    = errors.New("httpapi: too much is under way")
)

// BusyRetry is the Retry-After of BUSY, in seconds.
const BusyRetry = "1"

// budget limits the bytes that requests hold, for each caller and in total.
type budget struct {
	ofCaller, ofAll int64 // the most

	mu      sync.Mutex
	all     int64
	callers map[string]int64 // none is 0
}

func NewBudget(ofCaller, ofAll int64) *budget {
	return &budget{ofCaller: ofCaller, ofAll: ofAll, callers: map[string]int64{}}
}

// fits returns an error if the caller may not hold n more bytes. mu is held.
func (b *budget) fits(caller string, n int64) error {
	switch {
	case b.callers[caller]+n > b.ofCaller:
		return ErrCallerBusy
	case b.all+n > b.ofAll:
		return ErrAllBusy
	}
	return nil
}

// Holding is what one request holds of a budget. It is for one goroutine.
type Holding struct {
	of     *budget
	caller string // see auth.Caller.Share
	N      int64
}

// expect returns an error if the request could not hold n more bytes now. It takes
// nothing: a client that announces a body has not sent it yet.
func (h *Holding) expect(n int64) error {
	h.of.mu.Lock()
	defer h.of.mu.Unlock()
	return h.of.fits(h.caller, n)
}

// Take adds n bytes, or returns ErrCallerBusy or ErrAllBusy.
func (h *Holding) Take(n int64) error {
	h.of.mu.Lock()
	defer h.of.mu.Unlock()
	if err := h.of.fits(h.caller, n); err != nil {
		return err
	}
	h.add(n)
	return nil
}

// giveBack returns all bytes. A second call does nothing.
func (h *Holding) giveBack() {
	h.of.mu.Lock()
	defer h.of.mu.Unlock()
	h.add(-h.N)
}

func (h *Holding) add(n int64) {
	h.N += n
	h.of.all += n
	if h.of.callers[h.caller] += n; h.of.callers[h.caller] == 0 {
		delete(h.of.callers, h.caller)
	}
}

// Held returns how many bytes all callers hold.
func (b *budget) Held() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all
}
