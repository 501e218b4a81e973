package httpapi

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/helixd/helixd/httpapi/auth"
	"github.com/helixd/helixd/httpapi/internal/web"
)

// Bounds of the log lines about refused requests, which anyone can cause.
const (
	refusalLines  = 20 // an interval
	refusalPeriod = 10 * time.Second
)

// refusals limits how many refused requests are logged.
type refusals struct {
	mu      sync.Mutex
	since   time.Time
	logged  int
	skipped int
}

// take reports whether a refusal may be logged now, and how many were skipped since the
// last line.
func (f *refusals) take(now time.Time) (skipped int, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if passed := now.Sub(f.since); passed < 0 || passed >= refusalPeriod {
		f.since, f.logged = now, 0
	}
	if f.logged == refusalLines {
		f.skipped++
		return 0, false
	}
	f.logged++
	skipped, f.skipped = f.skipped, 0
	return skipped, true
}

// keyFailures limits the log lines about tokens that can't be checked, which anyone can
// cause.
type keyFailures struct {
	mu     sync.Mutex
	logged map[string]time.Time // by the cause
}

const (
	keyFailurePeriod = time.Minute // between two lines with the same cause
	maxKeyFailures   = 16          // causes in a period that are logged
)

// known reports whether an error is such a failure and was logged a short time ago. If
// not, it counts as logged now.
func (k *keyFailures) known(err error, now time.Time) bool {
	failed, ok := errors.AsType[*auth.KeysError](err)
	if !ok {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	maps.DeleteFunc(k.logged, func(_ string, at time.Time) bool { return now.Sub(at) >= keyFailurePeriod })
	cause := failed.Error()
	if _, again := k.logged[cause]; again || len(k.logged) == maxKeyFailures {
		return true
	}
	if k.logged == nil {
		k.logged = map[string]time.Time{}
	}
	k.logged[cause] = now
	return false
}

// logRefusal logs that a request was refused because of its caller.
func (s *Server) logRefusal(ctx context.Context, w *web.Tracker, status int, err error) {
	if !errors.Is(err, auth.ErrUnauthorized) && !errors.Is(err, auth.ErrForbidden) && !errors.Is(err, auth.ErrOtherUser) {
		return
	}
	bound := &s.refusals
	if errors.Is(err, auth.ErrUnauthorized) {
		bound = &s.strangers
	}
	skipped, ok := bound.take(time.Now())
	if !ok {
		return
	}
	attrs := append(w.Logged("status", status), web.ActorAttrs(w.Request)...)
	if skipped > 0 {
		attrs = append(attrs, "notLogged", skipped)
	}
	s.opts.Logger.InfoContext(ctx, "request refused", append(attrs, "error", err)...)
}

// logAccess logs an answered request. The status aborted means that the client left, or the
// connection broke, before the answer began.
func (s *Server) logAccess(w *web.Tracker, r *http.Request) {
	status := "aborted"
	if w.Begun {
		status = strconv.Itoa(w.Status)
	}
	attrs := append(w.Logged("method", r.Method, "status", status, "duration", time.Since(w.Came).Round(time.Microsecond)), web.ActorAttrs(w.Request)...)
	s.opts.Logger.InfoContext(r.Context(), "request", attrs...)
}
