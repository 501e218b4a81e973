package httpapi

import (
	"errors"
	"sync"
)

var (
	errCallerBusy = errors.New("httpapi: the caller has too much under way")
	errAllBusy    = errors.New("httpapi: too much is under way")
)

// busyRetry is after how many seconds it is worth while to try again what was
// refused as BUSY.
const busyRetry = "1"

// budget bounds the bytes that requests hold, of each caller and of all.
type budget struct {
	ofCaller, ofAll int64 // the most

	mu      sync.Mutex
	all     int64
	callers map[string]int64 // none is 0
}

func newBudget(ofCaller, ofAll int64) *budget {
	return &budget{ofCaller: ofCaller, ofAll: ofAll, callers: map[string]int64{}}
}

// fits returns why a caller may not hold n more bytes, or nil; mu is held.
func (b *budget) fits(caller string, n int64) error {
	switch {
	case b.callers[caller]+n > b.ofCaller:
		return errCallerBusy
	case b.all+n > b.ofAll:
		return errAllBusy
	}
	return nil
}

// holding is what one request holds of a budget. It is for one goroutine.
type holding struct {
	of     *budget
	caller string // as Caller.share has it
	n      int64
}

// expect returns why the request may not hold n more bytes now. It takes nothing:
// a client that announces a body has not sent it.
func (h *holding) expect(n int64) error {
	h.of.mu.Lock()
	defer h.of.mu.Unlock()
	return h.of.fits(h.caller, n)
}

// take adds n bytes, or refuses them: errCallerBusy, errAllBusy.
func (h *holding) take(n int64) error {
	h.of.mu.Lock()
	defer h.of.mu.Unlock()
	if err := h.of.fits(h.caller, n); err != nil {
		return err
	}
	h.add(n)
	return nil
}

// giveBack returns all bytes. A second call does nothing.
func (h *holding) giveBack() {
	h.of.mu.Lock()
	defer h.of.mu.Unlock()
	h.add(-h.n)
}

func (h *holding) add(n int64) {
	h.n += n
	h.of.all += n
	if h.of.callers[h.caller] += n; h.of.callers[h.caller] == 0 {
		delete(h.of.callers, h.caller)
	}
}

// held returns how many bytes all callers hold.
func (b *budget) held() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all
}
