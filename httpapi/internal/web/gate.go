package web

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

// Gate admits requests and writes answers. It knows who calls and what the caller may do,
// and limits what each caller holds of this node.
type Gate struct {
	states *snapshot.Store
	logger *slog.Logger
	quota  *quota.Quota // nil: tenants have no limits
	meter  Meter

	heartbeat     time.Duration
	WriteTimeout  time.Duration
	BodyTimeout   time.Duration // of a body that no handler reads
	Authenticated bool          // whether callers have to show who they are
	settings      atomic.Pointer[settings]
	admission     *admission
	Bodies        *budget
	Answers       *budget // those of more than pieceBytes
	Parses        *Turns  // of large bodies
	Encodes       *Turns  // of large answers

	ctx  context.Context // ends with http.ErrServerClosed
	stop context.CancelCauseFunc
}

// Meter counts the streams of a gate.
type Meter interface {
	// Streaming counts a client while it has a stream of a route open, until done is
	// called.
	Streaming(route string) (done func())
	// TenantStreams adds to the streams of a tenant, whose label may be empty.
	TenantStreams(tenant string, n float64)
}

// GateOptions configure a gate.
type GateOptions struct {
	States     *snapshot.Store
	Logger     *slog.Logger
	Quota      *quota.Quota // nil: tenants have no limits
	Meter      Meter
	Auth       auth.Authenticator // nil: everybody may do everything
	Identify   auth.Identifier
	Heartbeat  time.Duration
	MaxStreams int
}

// NewGate returns an open gate.
func NewGate(o GateOptions) *Gate {
	large := max(AtOnce, runtime.GOMAXPROCS(0)/2) // bodies or answers at a time
	g := &Gate{
		states: o.States, logger: o.Logger, quota: o.Quota, meter: o.Meter, heartbeat: o.Heartbeat,
		WriteTimeout: api.WriteTimeout, BodyTimeout: DefaultBodyTimeout, Authenticated: o.Auth != nil,
		admission: newAdmission(o.Quota, o.MaxStreams),
		Bodies:    NewBudget(api.MaxCallerBodies, api.MaxBodies), Answers: NewBudget(api.MaxCallerBodies, api.MaxBodies),
		Parses: NewTurns(large, false), Encodes: NewTurns(large, false),
	}
	g.ctx, g.stop = context.WithCancelCause(context.Background())
	g.settings.Store(newSettings(o.Auth, o.Identify))
	return g
}

// Reconfigure replaces the settings. Streams that they do not allow end.
func (g *Gate) Reconfigure(authenticate auth.Authenticator, identify auth.Identifier) {
	g.settings.Swap(newSettings(authenticate, identify)).replace()
}

// Close ends the streams of all clients, and refuses new ones.
func (g *Gate) Close() { g.stop(http.ErrServerClosed) }

// Closed returns http.ErrServerClosed if the gate is closed, else nil.
func (g *Gate) Closed() error { return context.Cause(g.ctx) }

// Admit identifies the caller of a request, and admits the request if the caller may do
// the operation on the session, which may be "". A public route admits everybody.
func (g *Gate) Admit(w *Tracker, r *http.Request, op auth.Operation, session string, public bool) (*Request, error) {
	now := g.settings.Load()
	r, err := now.identified(r)
	r = acting(r)
	caller := auth.CallerOf(r.Context())
	w.Request, w.Tenant = r, caller.Tenant
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
		w.Allowed = true
	}
	if err := skipBody(w, r, public); err != nil {
		return nil, err
	}
	if r.Method == http.MethodGet { // a refused answer to another one would hide what was done
		w.payer = caller.Share()
	}
	return &Request{Request: r, Gate: g, Op: op, Out: w, began: now, Held: Holding{of: g.Bodies, caller: caller.Share()}}, nil
}

// Guard identifies the caller of a request, and returns an error unless the caller may do
// the operation on all sessions.
func (g *Gate) Guard(r *http.Request, op auth.Operation) (*http.Request, error) {
	now := g.settings.Load()
	r, err := now.identified(r)
	if err == nil {
		err = now.allow(r, op, auth.AllSessions)
	}
	return r, err
}
