package httpapi

import (
	"cmp"
	"context"
	"crypto/cipher"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/cors"

	durablelog "github.com/helixd/helixd/agentloop/durable"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/memory"
	"github.com/helixd/helixd/agentloop/quota"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/httpapi/agui"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/auth"
	"github.com/helixd/helixd/httpapi/chat"
	"github.com/helixd/helixd/httpapi/durable"
	"github.com/helixd/helixd/httpapi/internal/control"
	"github.com/helixd/helixd/httpapi/internal/inspect"
	"github.com/helixd/helixd/httpapi/internal/operate"
	"github.com/helixd/helixd/httpapi/internal/stream"
	"github.com/helixd/helixd/httpapi/internal/web"
	"github.com/helixd/helixd/httpapi/responses"
	"github.com/helixd/helixd/projector/readmodel"
	"github.com/helixd/helixd/snapshot"
	"github.com/helixd/helixd/snapshot/backup"
)

// Times of the server.
const (
	// DefaultHeartbeat is the silence after which /sse sends a comment.
	DefaultHeartbeat = 15 * time.Second
	// DefaultInterruptDeadline is how long /interrupt and /abort wait for the run to stop.
	DefaultInterruptDeadline = 5 * time.Second
)

// Options configure a server.
type Options struct {
	Log  eventlog.Log // required
	Loop *engine.Loop // required
	// States folds the log; nil: a store without saved folds.
	States *snapshot.Store
	// ReadModels answer questions about all sessions. nil: GET /sessions folds each
	// session, and other questions are NOT_IMPLEMENTED.
	ReadModels readmodel.Models
	// AccessLog: a line is logged for each request when its answer ends.
	AccessLog bool
	// Degraded returns what is not well, for GET /readyz. It must answer at once; nil: not known.
	Degraded func() []api.Degradation
	// Memories are what agents remember; nil: the routes of /memories answer
	// NOT_IMPLEMENTED.
	Memories *memory.Manager
	// Prices are the prices of tokens, by the model's name. Without prices, answers have
	// no costs. See [Server.SetPrices].
	Prices map[string]readmodel.Price
	// Auth decides about every request other than those of health.
	Auth auth.Authenticator
	// Identify returns the caller of a request. It is called once for each request, before
	// Auth; see [auth.CallerOf]. nil: the caller is in the request's context.
	Identify auth.Identifier
	// AllowUnauthenticated serves everybody if there is no Auth. Without
	// either, New fails.
	AllowUnauthenticated bool
	// TicketKey encrypts stream tickets. It has at least [MinTicketKey] bytes, and is the
	// same on all nodes of a deployment. nil: a random key.
	TicketKey []byte
	// Origins are the origins whose web pages may use the server (CORS), such as
	// "https://app.example"; none by default. "*" allows all origins: it needs Auth, and
	// pages must send a bearer token with each request other than GET.
	Origins []string
	// Hosts are the names under which clients reach the server; see [ValidateHost].
	// Requests with another name in Host are refused. Addresses and localhost are always
	// allowed. "*" allows all names, and needs Auth.
	Hosts []string
	// Public are routes that answer without authentication: any of
	// [PublicRoutes]; none by default.
	Public []string
	// Chat configures the routes of /chat. nil: they answer NOT_IMPLEMENTED, other than
	// those of histories.
	Chat *chat.Options
	// Protocols are the protocols of others that the server speaks beside its own.
	Protocols Protocols
	// Subscribe makes the right of a NATS client to receive the records of a session that
	// exists. ttl is between [api.MinSubscription] and [api.MaxSubscription]; if it is 0,
	// Subscribe chooses. nil: the route answers NOT_IMPLEMENTED.
	Subscribe func(ctx context.Context, session string, ttl time.Duration) (api.Subscription, error)
	// Unsubscribe revokes all rights that Subscribe has made for a session. nil: only the
	// operator of the NATS servers can, and the route answers NOT_IMPLEMENTED.
	Unsubscribe func(ctx context.Context, session string) error
	// Reload reads the configuration again, for POST /admin/reload, and passes it to
	// [Server.Reconfigure]. A *ReloadError refuses the configuration. Its context does not
	// end when the client leaves, and has no deadline. nil: the route answers NOT_IMPLEMENTED.
	Reload func(context.Context) (api.Reloaded, error)
	// InterruptObservationDeadline is how long /interrupt and /abort wait for
	// the run to stop; 0: DefaultInterruptDeadline.
	InterruptObservationDeadline time.Duration
	// SubmitToolResultSchema is a JSON Schema for submissions of tool results and approvals,
	// on all routes. nil: any submission is valid. The server's own limits hold in addition.
	SubmitToolResultSchema json.RawMessage
	// ServiceName is the server's name in the first line of the log. Empty: there is no
	// such line.
	ServiceName string
	// VerboseValidationErrors makes /submit-tool-result say what is wrong with a
	// submission.
	VerboseValidationErrors bool
	Logger                  *slog.Logger  // nil: silent
	Heartbeat               time.Duration // 0: DefaultHeartbeat
	Version                 string        // shown by /readyz
	// Beside is what backups have apart from the sessions; nil: nothing.
	Beside []backup.Beside
	// Gatherer has the metrics of GET /metrics. nil: the route answers NOT_IMPLEMENTED.
	Gatherer prometheus.Gatherer
	Metrics  *Metrics // measure the server itself; nil: nothing does
	// Quota has the limits of tenants; nil: there are none.
	Quota *quota.Quota
	// MaxStreams is how many streams one caller may have open at a time, including answers
	// of POST /chat and requests that wait for their response; 0: any number. A caller without credentials is known by its address.
	MaxStreams int
}

// Server is the HTTP handler.
type Server struct {
	opts   Options
	gate   *web.Gate
	prices *inspect.Prices

	stream  *stream.Routes
	inspect *inspect.Routes
	control *control.Routes
	operate *operate.Routes
	chat    *chat.Routes
	durable *durable.Routes
	// responses is nil unless the server speaks the protocol.
	responses *responses.Routes
	agui      *agui.Routes // the same

	// origins refuses requests that web pages of other origins make browsers send. Without
	// tokens nothing else would.
	origins   *http.CrossOriginProtection
	anyOrigin bool       // all are trusted
	cors      *cors.Cors // nil: no other origin is
	hosts     []string   // as Options.Hosts

	refusals    refusals // of callers who are known
	strangers   refusals // of others, who must not hide those
	keyFailures keyFailures
	tickets     cipher.AEAD
	now         func() time.Time // of tickets
}

// New returns a server. It fails without a log, a loop, or a decision about
// authentication.
func New(o Options) (*Server, error) {
	switch {
	case o.Log == nil || o.Loop == nil:
		return nil, errors.New("httpapi: a log and a loop are required")
	case o.Auth == nil && !o.AllowUnauthenticated:
		return nil, errors.New("httpapi: refusing to serve without authentication; allow it explicitly")
	}
	if err := o.Chat.Check(o.Loop); err != nil {
		return nil, err
	}
	if o.States == nil {
		o.States = snapshot.New(o.Log, nil)
	}
	o.Metrics = cmp.Or(o.Metrics, NewMetrics(nil))
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	o.Logger = slog.New(WithRequestID(o.Logger.Handler()))
	if o.Heartbeat <= 0 {
		o.Heartbeat = DefaultHeartbeat
	}
	if o.InterruptObservationDeadline <= 0 {
		o.InterruptObservationDeadline = DefaultInterruptDeadline
	}
	if o.ServiceName != "" {
		o.Logger.Info("agent server", "service", o.ServiceName, "version", o.Version)
	}
	if o.Auth == nil {
		o.Logger.Warn("UNAUTHENTICATED: everybody who reaches this server may do everything")
	}
	s := &Server{opts: o, origins: http.NewCrossOriginProtection(), now: time.Now, prices: inspect.NewPrices(o.Prices)}
	var err error
	if s.tickets, err = newTicketCipher(o.TicketKey); err != nil {
		return nil, err
	}
	if err := s.route(); err != nil {
		return nil, err
	}
	if err := errors.Join(s.trust(o.Origins), s.answerTo(o.Hosts), checkPublic(o.Public)); err != nil {
		return nil, err
	}
	// Options that can change, and secrets, are elsewhere.
	s.opts.TicketKey, s.opts.Auth, s.opts.Identify, s.opts.Chat, s.opts.Prices = nil, nil, nil, nil, nil
	return s, nil
}

// route gives the handlers what they need.
func (s *Server) route() (err error) {
	o := &s.opts
	s.gate = web.NewGate(web.GateOptions{
		States: o.States, Logger: o.Logger, Quota: o.Quota, Auth: o.Auth, Identify: o.Identify, Heartbeat: o.Heartbeat, MaxStreams: o.MaxStreams,
		Meter: o.Metrics,
	})
	s.stream = stream.New(o.Log, o.States)
	s.inspect = inspect.New(o.Log, o.Loop, o.States, o.ReadModels, s.prices, o.Quota, o.Logger)
	s.control, err = control.New(control.Options{
		Log: o.Log, Loop: o.Loop, States: o.States, Quota: o.Quota, Memories: o.Memories, ReadModels: o.ReadModels, Logger: o.Logger,
		Deadline: o.InterruptObservationDeadline, Submissions: o.SubmitToolResultSchema, Verbose: o.VerboseValidationErrors,
	})
	s.operate = &operate.Routes{
		Log: o.Log, Loop: o.Loop, States: o.States, Logger: o.Logger, ReadModels: o.ReadModels, Version: o.Version, Degraded: o.Degraded, Beside: o.Beside,
		PublicReady: slices.Contains(o.Public, readyRoute), Grant: o.Subscribe, Revoke: o.Unsubscribe, Reread: o.Reload,
	}
	s.chat = chat.New(o.Log, o.Loop, o.States, s.control, s.prices, o.Chat)
	s.durable = durable.New(durablelog.New(o.Log, o.States, o.Quota))
	if p := o.Protocols.Responses; p != nil {
		s.responses = responses.New(o.Log, o.Loop, o.States, o.Logger, newSessionID, o.InterruptObservationDeadline, *p)
	}
	if o.Protocols.AGUI {
		s.agui = agui.New(o.Log, o.Loop, o.States)
	}
	return err
}

// newSessionID names a session for a client that does not.
func newSessionID() string { return strings.ToLower(ulid.Make().String()) }

// Close ends the streams of all clients, who reconnect elsewhere, and refuses
// new ones. It does not wait: http.Server.Shutdown does, within its deadline,
// and needs this first, since it does not end streams. Close is idempotent.
func (s *Server) Close() { s.gate.Close() }

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r = web.WithID(w, traced(r))
	s.gate.LimitBody(w, r)
	if strings.HasPrefix(r.URL.Path, durable.Prefix) {
		durable.Protect(w.Header())
	}
	out := web.NewTracker(w, r)
	defer s.opts.Metrics.answered(out, r)
	if s.opts.AccessLog {
		defer s.logAccess(out, r)
	}
	defer func() {
		switch p := recover(); p {
		case nil:
		case http.ErrAbortHandler:
			panic(p)
		default:
			s.opts.Logger.ErrorContext(r.Context(), "handler panicked", out.Logged("panic", fmt.Sprint(p), "stack", string(debug.Stack()))...)
			s.fail(out, r, web.ErrPanicked)
		}
	}()
	answer := func(_ http.ResponseWriter, r *http.Request) {
		if err := s.dispatch(out, r); err != nil {
			if !out.Allowed {
				s.gate.DropBody(out, r)
			}
			s.fail(out, r, err)
		}
	}
	if err := s.checkHost(r); err != nil {
		s.gate.DropBody(out, r)
		s.fail(out, r, err)
		return
	}
	if r.Method == http.MethodOptions { // no route has it
		s.gate.DropBody(out, r)
	}
	if s.cors == nil {
		answer(out, r)
		return
	}
	s.cors.ServeHTTP(out, r, answer) // preflights end there
}

// ReloadError refuses a configuration. Nothing has changed.
type ReloadError struct {
	// Problems are all problems of the configuration, with file, line and key where they
	// are known. They have no secrets.
	Problems []string
}

func (e *ReloadError) Error() string { return strings.Join(e.Problems, "\n") }

// RequestID returns the id of the request that the context belongs to, or "".
// An [auth.Authenticator] gets it from its request's context.
func RequestID(ctx context.Context) string { return web.RequestID(ctx) }

// WithRequestID returns a handler that adds the request's id to each line that is logged
// with the request's context, in any package. A [Server]'s own logger does so already.
func WithRequestID(h slog.Handler) slog.Handler { return web.WithRequestID(h) }
