package httpapi

import (
	"context"
	"log/slog"
	"net/http"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/helixd/helixd/agentloop/quota"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/auth"
	"github.com/helixd/helixd/snapshot"
)

// gate lets requests in. It has what it is asked about all of them: who calls and what
// the caller may do, what a caller may hold of this node, and how answers are written.
type gate struct {
	states *snapshot.Store
	logger *slog.Logger
	quota  *quota.Quota // nil: tenants have no limits
	meter  meter        // nil: nothing is counted

	heartbeat     time.Duration
	writeTimeout  time.Duration
	bodyTimeout   time.Duration // of a body that no handler reads
	authenticated bool          // whether callers have to show who they are
	settings      atomic.Pointer[settings]
	admission     *admission
	bodies        *budget
	answers       *budget // those of more than pieceBytes
	parses        *turns  // of large bodies

	ctx  context.Context // ends with http.ErrServerClosed
	stop context.CancelCauseFunc
}

// meter counts what happens at a gate.
type meter interface {
	// streaming counts a client while it has a stream of a route open, until done is
	// called.
	streaming(route string) (done func())
	// tenantStreams adds to the streams of a tenant, whose label may be empty.
	tenantStreams(tenant string, n float64)
}

// gateOptions configure a gate.
type gateOptions struct {
	states     *snapshot.Store
	logger     *slog.Logger
	quota      *quota.Quota
	meter      meter
	auth       auth.Authenticator // nil: everybody may do everything
	identify   auth.Identifier
	heartbeat  time.Duration
	maxStreams int
}

func newGate(o gateOptions) *gate {
	g := &gate{
		states: o.states, logger: o.logger, quota: o.quota, meter: o.meter, heartbeat: o.heartbeat,
		writeTimeout: api.WriteTimeout, bodyTimeout: defaultBodyTimeout, authenticated: o.auth != nil,
		admission: newAdmission(o.quota, o.maxStreams),
		bodies:    newBudget(api.MaxCallerBodies, api.MaxBodies), answers: newBudget(api.MaxCallerBodies, api.MaxBodies),
		parses: newTurns(max(atOnce, runtime.GOMAXPROCS(0)/2), false),
	}
	g.ctx, g.stop = context.WithCancelCause(context.Background())
	g.settings.Store(newSettings(o.auth, o.identify))
	return g
}

// reconfigure has other settings count from now on, for open streams too.
func (g *gate) reconfigure(authenticate auth.Authenticator, identify auth.Identifier) {
	g.settings.Swap(newSettings(authenticate, identify)).replace()
}

// close ends the streams of all clients, and refuses new ones.
func (g *gate) close() { g.stop(http.ErrServerClosed) }

// closed returns why the gate is closed, or nil.
func (g *gate) closed() error { return context.Cause(g.ctx) }

// admit finds out who sends a request, and lets it in if the caller may do the
// operation. A public route is everybody's.
func (g *gate) admit(w *tracker, r *http.Request, op auth.Operation, session string, public bool) (*request, error) {
	now := g.settings.Load()
	r, err := now.identified(r)
	r = acting(r)
	caller := auth.CallerOf(r.Context())
	w.request, w.tenant = r, caller.Tenant
	if !public {
		if err == nil {
			err = g.admission.request(caller)
		}
		if err == nil {
			err = now.allow(r, op, session)
		}
		if err != nil {
			return nil, err
		}
		w.allowed = true
	}
	if err := skipBody(w, r, public); err != nil {
		return nil, err
	}
	if r.Method == http.MethodGet { // a refused answer to another one would hide what was done
		w.payer = caller.Share()
	}
	return &request{Request: r, gate: g, op: op, out: w, began: now, body: holding{of: g.bodies, caller: caller.Share()}}, nil
}

// guard lets a request in whose caller may do an operation on all sessions.
func (g *gate) guard(r *http.Request, op auth.Operation) (*http.Request, error) {
	now := g.settings.Load()
	r, err := now.identified(r)
	if err == nil {
		err = now.allow(r, op, auth.AllSessions)
	}
	return r, err
}
