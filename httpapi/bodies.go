package httpapi

import (
	"errors"
	"sync"
)

const (
	// MaxCallerBodies is how many bytes the request bodies may have that are
	// under way for one caller: a tenant, else a token or a subject.
	MaxCallerBodies = 128 << 20
	// MaxBodies is the same for all callers together.
	MaxBodies = 512 << 20
)

var (
	errCallerBusy = errors.New("httpapi: the caller has too much under way")
	errAllBusy    = errors.New("httpapi: too much is under way")
)

// busyRetry is after how many seconds it is worth while to try again what was
// refused as BUSY.
const busyRetry = "1"

// bodies counts the request bodies that are under way, in bytes.
type bodies struct {
	ofCaller, ofAll int64 // the most

	mu      sync.Mutex
	all     int64
	callers map[string]int64
}

func newBodies(ofCaller, ofAll int64) *bodies {
	return &bodies{ofCaller: ofCaller, ofAll: ofAll, callers: map[string]int64{}}
}

// take counts a body until it is given back.
func (b *bodies) take(c Caller, n int64) (giveBack func(), err error) {
	key := c.share()
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.callers[key]+n > b.ofCaller:
		return nil, errCallerBusy
	case b.all+n > b.ofAll:
		return nil, errAllBusy
	}
	b.callers[key] += n
	b.all += n
	return sync.OnceFunc(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.callers[key] -= n; b.callers[key] == 0 {
			delete(b.callers, key)
		}
		b.all -= n
	}), nil
}
