package quota

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/helixd/helixd/agentloop/internal/locks"
	"github.com/helixd/helixd/projector/readmodel"
)

// Limits are what one tenant may use. What is 0 is not limited.
type Limits struct {
	Sessions          int     // root sessions in the log
	Bytes             int64   // payloads of its sessions' records in the log
	Runs              int     // runs of root sessions that continue at a time
	RequestsPerSecond float64 // at one node; as many may come at once as in one second, at least 1
	Streams           int     // that are open at a time, at one node
	TokensPerDay      int64   // of model calls, on a day of UTC
	USDPerDay         float64 // by the prices of models, on a day of UTC
}

// Tenants are the limits of all tenants.
type Tenants struct {
	Default Limits            // of those without limits by their name
	Named   map[string]Limits // by the tenant's name; the map must not be changed
	// Prices are what models' tokens cost, by model; the map must not be changed.
	Prices map[string]readmodel.Price

	labels []string // sorted
}

// Names of limits, as [Exceeded] has them.
const (
	Sessions     = "sessions"
	Bytes        = "bytes"
	Runs         = "runs"
	Streams      = "streams"
	TokensPerDay = "tokensPerDay"
	USDPerDay    = "usdPerDay"
)

// Exceeded is the error of a request that would take a tenant, or a caller, over
// a limit. Nothing has changed.
type Exceeded struct {
	Limit string  // its name, such as [Sessions]
	Most  float64 // what it is
	// After is the time until all of the limit is there again; 0: not known.
	After time.Duration
	// InFlight: what is under way may use all that is left, and may leave some of it.
	InFlight bool
}

func (e *Exceeded) Error() string { return fmt.Sprintf("quota: %s: the limit is %v", e.Limit, e.Most) }

// ErrNoTenant is the error of a request that would add to a session without a tenant,
// by a caller whose tenant has limits: the usage of that session counts for no tenant.
var ErrNoTenant = errors.New("quota: the session has no tenant, and the caller's tenant has limits")

type callerKey struct{}

// WithCaller returns a context for what a caller of a tenant has asked for. The
// empty name is of callers without a tenant.
func WithCaller(ctx context.Context, tenant string) context.Context {
	return context.WithValue(ctx, callerKey{}, tenant)
}

// Quota knows the limits of tenants, and what they use. A nil one limits
// nothing.
type Quota struct {
	tenants atomic.Pointer[Tenants]
	counts  Counts
	days    Days
	locks   locks.Table // by the key of a day: held while it is changed

	mu      sync.Mutex
	stocks  map[string]*stock // by tenant
	sweepAt int               // how many stocks there may be before idle ones are removed
	failed  map[string]failed // by the hash of the session's id: its last reservation, if that failed
}

// New returns a quota with these limits. Without counts, sessions, bytes and runs
// are not limited; without days, nothing is that is counted by the day.
func New(t Tenants, counts Counts, days Days) *Quota {
	q := &Quota{counts: counts, days: days, stocks: map[string]*stock{}, failed: map[string]failed{}, sweepAt: leastStocks}
	q.Set(t)
	return q
}

// Set replaces the limits. Requests from then on are judged by them.
func (q *Quota) Set(t Tenants) {
	t.labels = labelsOf(t.Named)
	q.tenants.Store(&t)
}

// Of returns the limits of a tenant. The empty name is of callers without a
// tenant, who have none.
func (q *Quota) Of(tenant string) Limits {
	if q == nil || tenant == "" {
		return Limits{}
	}
	t := q.tenants.Load()
	if limits, ok := t.Named[tenant]; ok {
		return limits
	}
	return t.Default
}

// Limited reports whether [Quota.Admit] may refuse what a session of a tenant adds. If
// the session has none, it may if the caller's tenant in ctx has limits.
func (q *Quota) Limited(ctx context.Context, tenant string) bool {
	if tenant == "" {
		tenant, _ = ctx.Value(callerKey{}).(string)
	}
	return q.Of(tenant) != (Limits{})
}
