package httpapi

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/helixd/helixd/agentloop/quota"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/httpapi/auth"
)

// maxActor is the longest name or subject that is recorded of a caller, in bytes.
const maxActor = 256

// actorOf is the request's caller as records and log lines name it.
func actorOf(r *http.Request) eventlog.Actor {
	c := auth.CallerOf(r.Context())
	address, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		address = r.RemoteAddr
	}
	return eventlog.Actor{
		Token: cut(c.Name, maxActor), Subject: cut(c.Subject, maxActor), User: c.User, Address: cut(address, maxActor),
		Request: RequestID(r.Context()),
	}
}

// acting returns the request with its actor in its context: what it changes says
// who asked for it, and is admitted for the caller's tenant.
func acting(r *http.Request) *http.Request {
	ctx := eventlog.WithActor(r.Context(), actorOf(r))
	return r.WithContext(quota.WithCaller(ctx, auth.CallerOf(ctx).Tenant))
}

// audit logs what a caller has done that no record of the session says.
func (s *Server) audit(r *request, message string) {
	s.logger.InfoContext(r.Context(), message, r.out.logged(actorAttrs(r.Request)...)...)
}

// actorAttrs are the caller's log attributes.
func actorAttrs(r *http.Request) []any {
	a := actorOf(r)
	attrs := []any{eventlog.LogAddress, a.Address}
	if caller := cmp.Or(a.Token, a.Subject); caller != "" {
		attrs = append(attrs, eventlog.LogCaller, caller)
	}
	if a.User != "" {
		attrs = append(attrs, eventlog.LogUser, a.User)
	}
	return attrs
}

// Bounds of the log lines about refused requests, which anybody can cause.
const (
	refusalLines  = 20 // an interval
	refusalPeriod = 10 * time.Second
)

// refusals bounds how many refused requests are logged.
type refusals struct {
	mu      sync.Mutex
	since   time.Time
	logged  int
	skipped int
}

// take reports whether a refusal may be logged now, and how many have not been
// since the last one that was.
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

// keyFailures bounds how often it is logged that tokens can't be checked: anybody
// can send one.
type keyFailures struct {
	mu     sync.Mutex
	logged map[string]time.Time // by the cause
}

const (
	keyFailurePeriod = time.Minute // between two lines with the same cause
	maxKeyFailures   = 16          // causes in a period that are logged
)

// known reports whether an error is such a failure that has been logged a short
// time ago. If it has not, it is logged now.
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

// logRefusal logs that a caller was refused with a status.
func (s *Server) logRefusal(ctx context.Context, w *tracker, status int, err error) {
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
	attrs := append(w.logged("status", status), actorAttrs(w.request)...)
	if skipped > 0 {
		attrs = append(attrs, "notLogged", skipped)
	}
	s.logger.InfoContext(ctx, "request refused", append(attrs, "error", err)...)
}
