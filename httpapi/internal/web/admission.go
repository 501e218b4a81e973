package web

import (
	"fmt"
	"math"
	"net"
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/helixd/helixd/agentloop/quota"
	"github.com/helixd/helixd/httpapi/auth"
)

// admission limits the requests a second and the open streams of callers and tenants on
// this node.
type admission struct {
	quota   *quota.Quota // nil: tenants have no limits
	streams int          // of a caller; 0: any number

	mu      sync.Mutex
	rates   map[string]*rate.Limiter // by tenant
	sweepAt int                      // how many rates there may be before full ones are removed
	open    map[string]int           // streams, by caller and by tenant
}

// leastRates is how many tenants' limiters are always kept.
const leastRates = 1024

func newAdmission(q *quota.Quota, streams int) *admission {
	return &admission{quota: q, streams: streams, rates: map[string]*rate.Limiter{}, sweepAt: leastRates, open: map[string]int{}}
}

// RateError: the tenant sends too many requests a second.
type RateError struct{ After time.Duration }

func (e *RateError) Error() string { return "httpapi: too many requests a second" }

// request counts a request, or returns a *RateError.
func (a *admission) request(c auth.Caller) error {
	each := a.quota.Of(c.Tenant).RequestsPerSecond
	if each <= 0 {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	l := a.rates[c.Tenant]
	if burst := max(1, int(math.Ceil(each))); l == nil {
		a.sweep()
		l = rate.NewLimiter(rate.Limit(each), burst)
		a.rates[c.Tenant] = l
	} else if l.Limit() != rate.Limit(each) { // the configuration has changed
		l.SetLimit(rate.Limit(each))
		l.SetBurst(burst)
	}
	if l.Allow() {
		return nil
	}
	return &RateError{time.Duration((1 - l.Tokens()) / each * float64(time.Second))}
}

// sweep removes the limiters of idle tenants: a new limiter allows the same. mu is held.
func (a *admission) sweep() {
	if len(a.rates) < a.sweepAt {
		return
	}
	for tenant, l := range a.rates {
		if l.Tokens() >= float64(l.Burst()) {
			delete(a.rates, tenant)
		}
	}
	a.sweepAt = max(leastRates, 2*len(a.rates))
}

// stream counts a stream until done is called, or returns a *quota.Exceeded.
func (a *admission) stream(r *http.Request) (done func(), err error) {
	c := auth.CallerOf(r.Context())
	caller, tenant := "caller "+callerName(c, r), "tenant "+c.Tenant
	keys := []string{caller}
	if c.Tenant != "" {
		keys = append(keys, tenant)
	}
	ofTenant := a.quota.Of(c.Tenant).Streams
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.streams > 0 && a.open[caller] >= a.streams:
		return nil, &quota.Exceeded{Limit: quota.Streams, Most: float64(a.streams)}
	case ofTenant > 0 && a.open[tenant] >= ofTenant:
		return nil, &quota.Exceeded{Limit: quota.Streams, Most: float64(ofTenant)}
	}
	for _, key := range keys {
		a.open[key]++
	}
	return sync.OnceFunc(func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		for _, key := range keys {
			if a.open[key]--; a.open[key] == 0 {
				delete(a.open, key)
			}
		}
	}), nil
}

// callerName returns a key for a caller. A caller without credentials is known by its
// address.
func callerName(c auth.Caller, r *http.Request) string {
	if c.Name == "" && c.Subject == "" && c.User == "" {
		host, _, err := net.SplitHostPort(r.RemoteAddr)
		if err != nil {
			host = r.RemoteAddr
		}
		return fmt.Sprintf("%q at %s", c.Tenant, host)
	}
	return fmt.Sprintf("%q %q %q %q", c.Tenant, c.Name, c.Subject, c.User)
}
