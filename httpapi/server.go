package httpapi

import (
	"context"
	"crypto/cipher"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/cors"

	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/memory"
	"github.com/helixd/helixd/agentloop/quota"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector/readmodel"
	"github.com/helixd/helixd/snapshot"
)

// Limits and times of the server.
const (
	// MaxBody is the largest request body, in bytes.
	MaxBody = 4 << 20
	// MaxMembers is how many members the JSON object has at most that is a body. The
	// objects in it have no such limit.
	MaxMembers = 1000
	// MaxSubmitBody is the same for POST /submit-tool-result.
	MaxSubmitBody = 1<<20 + 64<<10
	// MaxChunksBody is the same for POST /sessions/{id}/chunks.
	MaxChunksBody = 64 << 20
	// DefaultHeartbeat is the silence after which /sse sends a comment.
	DefaultHeartbeat = 15 * time.Second
	// DefaultInterruptDeadline is how long /interrupt and /abort wait for the
	// run to stop.
	DefaultInterruptDeadline = 5 * time.Second
	// WriteTimeout is how long a client may take to accept 64 KiB of an answer;
	// beside that it has to accept 64 KiB a second on average, over an answer or an
	// element of a stream.
	WriteTimeout = 30 * time.Second
	// bodyTimeout is how long a client may take to send a body, wanted or not.
	bodyTimeout = 30 * time.Second
	// chunksBodyTimeout is the same for POST /sessions/{id}/chunks.
	chunksBodyTimeout = 2 * time.Minute
	// appendTimeout bounds the appends of outside producers.
	appendTimeout = 30 * time.Second
	// startTimeout bounds what outlives its client: /start, /resume and all
	// else that changes a session.
	startTimeout = 30 * time.Second
	// readyTimeout is how long /readyz waits for the log.
	readyTimeout = 2 * time.Second
)

// Options configure a server.
type Options struct {
	Log  eventlog.Log // required
	Loop *engine.Loop // required
	// States folds the log; nil: a store without saved folds.
	States *snapshot.Store
	// ReadModels answer what is asked about all sessions. nil: GET /sessions
	// folds, what it can't tell so is NOT_IMPLEMENTED.
	ReadModels readmodel.Models
	// Memories are what agents remember; nil: the routes of /memories answer
	// NOT_IMPLEMENTED.
	Memories *memory.Manager
	// Prices are what models' tokens cost, by the model's name; none: costs are
	// not told. See [Server.SetPrices].
	Prices map[string]readmodel.Price
	// Auth decides about every request but those for health.
	Auth Authenticator
	// Identify returns who sends a request, once a request and before Auth is
	// asked; see [CallerOf]. nil: the caller is the one of the request's context.
	Identify Identifier
	// AllowUnauthenticated serves everybody if there is no Auth. Without
	// either, New fails (document 004).
	AllowUnauthenticated bool
	// TicketKey encrypts stream tickets, at least [MinTicketKey] bytes; all nodes of
	// a deployment need the same one. nil: a random one.
	TicketKey []byte
	// Origins are those whose web pages may use the server (CORS), such as
	// "https://app.example"; none by default. "*" is all of them: it needs
	// Auth, and pages must send a bearer token with what is no GET.
	Origins []string
	// Hosts are the names under which clients reach the server, as [ValidateHost]
	// has them. Requests with another name in Host are refused; addresses and
	// localhost are always taken. "*" takes all names, and needs Auth.
	Hosts []string
	// Public are routes that answer without authentication: any of
	// [PublicRoutes]; none by default.
	Public []string
	// Chat configures the routes of /chat; nil: but for histories they answer
	// NOT_IMPLEMENTED (document 004).
	Chat *ChatOptions
	// Subscribe makes the rights of NATS clients to hear a session that exists;
	// ttl 0 leaves to it how long they last, else it is between
	// MinSubscription and MaxSubscription. nil: there are none.
	Subscribe func(ctx context.Context, session string, ttl time.Duration) (Subscription, error)
	// Unsubscribe revokes all rights that Subscribe has made for a session. nil:
	// that is up to the NATS servers' operator, and the route answers
	// NOT_IMPLEMENTED.
	Unsubscribe func(ctx context.Context, session string) error
	// Reload reads the configuration anew, for POST /admin/reload, and gives it
	// to the server by Reconfigure; refused by a *ReloadError. nil: the route
	// answers NOT_IMPLEMENTED.
	Reload func(context.Context) (Reloaded, error)
	// InterruptObservationDeadline is how long /interrupt and /abort wait for
	// the run to stop; 0: DefaultInterruptDeadline.
	InterruptObservationDeadline time.Duration
	// SubmitToolResultSchema is a JSON Schema that each submission of a tool's
	// result or an approval must fit (document 002, SubmitToolResult), whichever
	// route it comes by; nil: any. The server's limits hold beside it.
	SubmitToolResultSchema json.RawMessage
	// ServiceName is what the log's first line calls the server; empty: there is
	// no such line.
	ServiceName string
	// VerboseValidationErrors has /submit-tool-result say what is wrong with
	// a submission that it refuses.
	VerboseValidationErrors bool
	Logger                  *slog.Logger  // nil: silent
	Heartbeat               time.Duration // 0: DefaultHeartbeat
	Version                 string        // shown by /readyz
	// Gatherer has what GET /metrics shows; nil: it answers NOT_IMPLEMENTED.
	Gatherer prometheus.Gatherer
	Metrics  *Metrics // measure the server itself; nil: nothing does
	// Quota has the limits of tenants; nil: there are none.
	Quota *quota.Quota
	// MaxStreams is how many streams one caller may have open at a time, answers
	// of POST /chat included; 0: any number. A caller of whom nothing is known is
	// its address.
	MaxStreams int
}

// Server is the HTTP handler.
type Server struct {
	opts         Options
	log          eventlog.Log
	loop         *engine.Loop
	states       *snapshot.Store
	logger       *slog.Logger
	settings     atomic.Pointer[settings] // Auth and Chat, which are not in opts any more
	prices       atomic.Pointer[map[string]readmodel.Price]
	bodies       *budget
	answers      *budget // those of more than pieceBytes
	searches     *turns
	diffs        *turns               // of two states
	patches      *turns               // that are checked and may be much work
	parses       *turns               // of large bodies
	submitSchema *jsonschema.Resolved // nil: the server has none
	admission    *admission
	live         liveEvents
	writeTimeout time.Duration
	bodyTimeout  time.Duration // of a body that no handler reads
	eraseTimeout time.Duration
	// origins refuses what a web page of another origin makes a browser
	// send: without tokens nothing else would.
	origins   *http.CrossOriginProtection
	anyOrigin bool       // all are trusted
	cors      *cors.Cors // nil: no other origin is
	hosts     []string   // as Options.Hosts

	ctx  context.Context // ends with http.ErrServerClosed
	stop context.CancelCauseFunc

	authenticated bool     // whether callers have to show who they are
	refusals      refusals // of callers who are known
	strangers     refusals // of others, who must not hide those
	keyFailures   keyFailures
	tickets       cipher.AEAD
	now           func() time.Time // of tickets
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
	if err := o.Chat.check(o.Loop); err != nil {
		return nil, err
	}
	if o.States == nil {
		o.States = snapshot.New(o.Log, nil)
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
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
	authenticated := o.Auth != nil
	if !authenticated {
		o.Logger.Warn("UNAUTHENTICATED: everybody who reaches this server may do everything")
	}
	s := &Server{
		opts: o, log: o.Log, loop: o.Loop, states: o.States, logger: o.Logger,
		admission:    newAdmission(o.Quota, o.MaxStreams),
		writeTimeout: WriteTimeout, bodyTimeout: bodyTimeout, eraseTimeout: eraseTimeout,
		origins: http.NewCrossOriginProtection(), authenticated: authenticated, now: time.Now,
		bodies: newBudget(MaxCallerBodies, MaxBodies), answers: newBudget(MaxCallerBodies, MaxBodies),
		searches: newTurns(atOnce, true), diffs: newTurns(atOnce, true), patches: newTurns(atOnce, false), parses: newTurns(max(atOnce, runtime.GOMAXPROCS(0)/2), false),
	}
	var err error
	if s.tickets, err = newTicketCipher(o.TicketKey); err != nil {
		return nil, err
	}
	s.opts.TicketKey = nil
	if o.SubmitToolResultSchema != nil {
		var schema jsonschema.Schema
		err := json.Unmarshal(o.SubmitToolResultSchema, &schema)
		if err == nil {
			s.submitSchema, err = schema.Resolve(nil)
		}
		if err != nil {
			return nil, fmt.Errorf("httpapi: the schema of submissions can't be used: %w", err)
		}
	}
	if err := errors.Join(s.trust(o.Origins, authenticated), s.answerTo(o.Hosts, authenticated), checkPublic(o.Public)); err != nil {
		return nil, err
	}
	s.ctx, s.stop = context.WithCancelCause(context.Background())
	s.settings.Store(newSettings(o.Auth, o.Identify, o.Chat))
	s.SetPrices(o.Prices)
	s.opts.Auth, s.opts.Identify, s.opts.Chat, s.opts.Prices = nil, nil, nil, nil // the settings have them, as they are now
	return s, nil
}

// Close ends the streams of all clients, who reconnect elsewhere, and refuses
// new ones. It does not wait: http.Server.Shutdown does, within its deadline,
// and needs this first, since it does not end streams. Close is idempotent.
func (s *Server) Close() { s.stop(http.ErrServerClosed) }

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r = traced(identified(w, r))
	s.limitBody(w, r)
	out := &tracker{ResponseWriter: w, came: time.Now(), request: r}
	defer s.opts.Metrics.answered(out, r)
	defer func() {
		switch p := recover(); p {
		case nil:
		case http.ErrAbortHandler:
			panic(p)
		default:
			s.logger.ErrorContext(r.Context(), "handler panicked", out.logged("panic", fmt.Sprint(p), "stack", string(debug.Stack()))...)
			s.fail(out, r, errPanicked)
		}
	}()
	answer := func(_ http.ResponseWriter, r *http.Request) {
		if err := s.dispatch(out, r); err != nil {
			if !out.allowed {
				s.dropBody(out, r)
			}
			s.fail(out, r, err)
		}
	}
	if err := s.checkHost(r); err != nil {
		s.dropBody(out, r)
		s.fail(out, r, err)
		return
	}
	if r.Method == http.MethodOptions { // no route has it
		s.dropBody(out, r)
	}
	if s.cors == nil {
		answer(out, r)
		return
	}
	s.cors.ServeHTTP(out, r, answer) // preflights end there
}

// tracker knows which route answers, about which session, and whether it has
// begun to.
type tracker struct {
	http.ResponseWriter
	route   string
	session string        // empty: not known, or none
	request *http.Request // with its caller, as far as that is known
	tenant  string        // the caller's; empty: none, or not known
	payer   string        // whose budget a large answer uses; empty: nobody's
	allowed bool          // its caller may use the route
	came    time.Time     // when the request came
	begun   bool
	began   time.Time // when the answer did
	status  int
}

// logged is what log lines say of the request beside its id.
func (t *tracker) logged(more ...any) []any {
	attrs := []any{"route", t.route}
	if t.session != "" {
		attrs = append(attrs, eventlog.LogSession, t.session)
	}
	return append(attrs, more...)
}

func (t *tracker) WriteHeader(status int) {
	t.begin(status)
	t.ResponseWriter.WriteHeader(status)
}

func (t *tracker) Write(p []byte) (int, error) {
	t.begin(http.StatusOK)
	return t.ResponseWriter.Write(p)
}

// Unwrap lets http.ResponseController reach the connection.
func (t *tracker) Unwrap() http.ResponseWriter { return t.ResponseWriter }
