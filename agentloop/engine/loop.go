package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oklog/ulid/v2"
	"go.opentelemetry.io/otel/trace"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/internal/plan"
	"github.com/helixd/helixd/agentloop/quota"
	"github.com/helixd/helixd/agentloop/workspace"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/snapshot"
)

// Options configure a loop; zero values mean the defaults.
type Options struct {
	Node   string           // names this process in claims; empty: a fresh id
	Logger *slog.Logger     // nil: silent
	Now    func() time.Time // nil: time.Now
	NewID  func() string    // unique for all time; nil: ULIDs
	// States folds the log; nil: a store without saved folds.
	States *snapshot.Store
	// Queue, if set, is shared by the nodes of one log: runs of a node that dies
	// go on at another one, or here after a restart. Without it a run goes on
	// when somebody asks for it, here, whoever had it.
	Queue agentloop.Queue
	// RetryDelay is the pause before a failed model call is repeated; it
	// doubles each time, up to 30 s. 0: DefaultRetryDelay.
	RetryDelay time.Duration
	// Metrics measure what the loop does; nil: nothing does.
	Metrics *Metrics
	// ExpireAfter is how long after it was asked for its last run a session
	// expires; see Sweep. 0: never.
	ExpireAfter time.Duration
	// Quota limits what tenants use; nil: nothing does.
	Quota *quota.Quota
	// Tracer, if set, makes spans of runs, model calls and tool calls, by
	// OpenTelemetry's conventions for generative AI. Its provider should take
	// its ids from [TraceIDs], and must not export within a span's end: a batch
	// processor does not.
	Tracer trace.Tracer
	// Workspaces are the providers of agents' workspaces, each of another kind:
	// what document 004 calls workspaceProviderKinds. An agent that wants a kind
	// which is not there is refused, *WorkspaceWiringError.
	Workspaces []workspace.Provider
	// TraceContent has prompts, answers, arguments and results recorded in the
	// spans, shortened.
	TraceContent bool
}

// Loop runs the agents of one node.
type Loop struct {
	log    eventlog.Log
	states *snapshot.Store
	agents atomic.Pointer[agentSet]
	opts   Options
	// workspaces are the providers, by kind.
	workspaces plan.Providers

	ctx  context.Context // ends with ErrStopping
	stop context.CancelCauseFunc
	wg   sync.WaitGroup
	mu   sync.Mutex
	live map[string]*liveRun
	// requested are the hooks of requests, by session.
	requested map[string]*runHooks
	// gates are those of workspaces that are in use, by session.
	gates map[string]*gate
	// asked counts the requests that are being appended, by session.
	asked    map[string]int
	drains   chan struct{} // closed when the loop drains
	left     chan struct{} // tells Drain that a run has left
	suspects chan struct{} // places for suspected trees; see awaitTurn
	taking   chan struct{} // places for trees from the list that are being folded

	sweeping chan struct{}       // holds one while there is a sweep
	lookedAt map[string]lookedAt // by the last sweep, by session; the sweep's

	tidying chan struct{}        // holds one while Tidy goes on
	useless map[string]time.Time // since when files are, by provider and root; Tidy's
}

// liveRun is a tree that this node is driving. What the loop's lock guards is
// marked so.
type liveRun struct {
	again   bool     // guarded: somebody has asked for it since
	pauses  bool     // guarded: it broke off, and is taken up again after a pause
	agreed  bool     // guarded: what its tickets announced is in the log, or never will be
	tickets []uint64 // guarded: places on the list that this node answers for
	force   bool     // guarded: it is taken also from a node that lives
	taken   bool     // it was found on the list, and nobody asked for it here
	// asked tells the driving goroutine that ask was called.
	asked chan struct{}
	// held is the head behind which this node has claimed the tree, 0 if it
	// has not. It is the driving goroutine's.
	held  uint64
	agent string // the root's, the driving goroutine's
	id    string // of the run that it was held for last, the driving goroutine's
}

func newRun() *liveRun { return &liveRun{asked: make(chan struct{}, 1)} }

// ask has the tree looked at once more. The ticket may be 0.
func (run *liveRun) ask(ticket uint64) {
	run.again, run.agreed = true, true
	if ticket > 0 {
		run.tickets = append(run.tickets, ticket)
	}
	select {
	case run.asked <- struct{}{}:
	default:
	}
}

// New returns a loop for the given agents. It fails if one is ill-defined; with
// a *WorkspaceWiringError if one's workspace is of a kind that there is none of,
// and with a *WorkspaceFailedError if that offers less than the agent wants.
func New(log eventlog.Log, agents []agentloop.Agent, o *Options) (*Loop, error) {
	set, err := newAgentSet(agents)
	if err != nil {
		return nil, err
	}
	l := &Loop{
		log: log, live: map[string]*liveRun{}, requested: map[string]*runHooks{},
		asked: map[string]int{}, gates: map[string]*gate{}, drains: make(chan struct{}), left: make(chan struct{}, 1), suspects: newSuspects(), taking: make(chan struct{}, maxTaking),
		sweeping: make(chan struct{}, 1), tidying: make(chan struct{}, 1),
	}
	l.agents.Store(set)
	if o != nil {
		l.opts = *o
	}
	if l.workspaces, err = plan.ProvidersOf(l.opts.Workspaces); err == nil {
		err = l.workspaces.Check(set.defs)
	}
	if err != nil {
		return nil, err
	}
	if l.states = l.opts.States; l.states == nil {
		l.states = snapshot.New(log, nil)
	}
	if l.opts.Now == nil {
		l.opts.Now = time.Now
	}
	if l.opts.NewID == nil {
		l.opts.NewID = func() string { return ulid.Make().String() }
	}
	if l.opts.Node == "" {
		l.opts.Node = "node-" + l.opts.NewID()
	}
	if l.opts.Logger == nil {
		l.opts.Logger = slog.New(slog.DiscardHandler)
	}
	if l.opts.RetryDelay == 0 {
		l.opts.RetryDelay = agentloop.DefaultRetryDelay
	}
	l.ctx, l.stop = context.WithCancelCause(context.Background())
	return l, nil
}

// Stop ends all runs as a crash would, so that they can be resumed, and waits
// for their goroutines. It is idempotent. See Drain for a gentler way.
func (l *Loop) Stop() {
	l.mu.Lock()
	l.stop(agentloop.ErrStopping)
	l.mu.Unlock()
	l.wg.Wait()
}

// Live reports whether this node is driving the session.
func (l *Loop) Live(session string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.live[session] != nil
}

func (l *Loop) now() int64 { return l.opts.Now().UnixMilli() }

func (l *Loop) factBase(session string) eventlog.FactBase {
	return eventlog.FactBase{SessionID: session, Timestamp: l.now()}
}

// drive has the session's tree driven by this node until nothing is left to
// decide, unless another node that lives does.
func (l *Loop) drive(session string, ticket uint64) { l.take(session, ticket, false) }

// take is drive; by force also a tree that another node which lives drives.
func (l *Loop) take(session string, ticket uint64, force bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	run := l.live[session]
	if run != nil {
		run.force = run.force || force
		run.ask(ticket)
		return
	}
	run = newRun()
	run.force = force
	run.ask(ticket)
	run.again = false
	l.launch(session, run)
}

// launch begins to drive. The caller has the lock.
func (l *Loop) launch(session string, run *liveRun) {
	if l.ctx.Err() != nil {
		return
	}
	l.live[session] = run
	l.opts.Metrics.drives(1)
	l.wg.Go(func() { l.keep(session, run) })
}

// maxTaking is how many trees from the list are folded and claimed at once:
// after a restart there may be thousands.
const maxTaking = 32

// Pauses before a run that broke off is taken up again.
const (
	minHoldPause = 100 * time.Millisecond
	maxHoldPause = 30 * time.Second
)

// keep holds the tree until nothing is left to decide, another node has taken
// it over, or the loop stops. A log that is out of reach for a while is no end:
// a new claim finds out what became of the last append.
func (l *Loop) keep(session string, run *liveRun) {
	for pause := minHoldPause; ; pause = min(2*pause, maxHoldPause) {
		began := time.Now()
		err := l.holdSafely(session, run)
		if time.Since(began) > maxHoldPause { // it went well for a while
			pause = minHoldPause
		}
		retry, rests, elsewhere := false, false, false
		log := l.opts.Logger.With(eventlog.LogSession, session, eventlog.LogRun, run.id)
		switch {
		case err == nil:
			rests = true
		case errors.Is(err, agentloop.ErrStopping), l.ctx.Err() != nil:
		case errors.Is(err, errHeld):
			elsewhere = true
		case errors.Is(err, errHandedOver):
			elsewhere = true
			l.opts.Metrics.lostTo("drained")
			log.Info("run handed over: this node drains")
		case errors.Is(err, eventlog.ErrSuperseded):
			elsewhere = true
			l.opts.Metrics.lostTo("superseded")
			log.Info("run taken over by another node")
			l.tellSuperseded(session, run.id)
		case errors.Is(err, eventlog.ErrSessionNotFound):
			rests = true
			log.Info("run stopped: the session was erased")
		case errors.Is(err, eventlog.ErrClosed), errors.Is(err, agentloop.ErrUnknownAgent), errors.Is(err, eventlog.ErrStreamEnded),
			l.opts.Queue == nil && (errors.Is(err, errPanicked) || errors.Is(err, errStuck)):
			rests = errors.Is(err, eventlog.ErrStreamEnded) // only a new run changes that
			log.Error("run stopped", "error", err)
		default:
			retry = !l.Draining()
			if errors.Is(err, errPanicked) || errors.Is(err, errStuck) {
				pause = maxHoldPause // it will come again, most likely
			}
			log.Error("run broke off and is taken up again", "error", err, "pause", pause)
			if retry {
				l.pauses(run, true)
				l.rest(run, pause)
				l.pauses(run, false)
			}
		}
		l.mu.Lock()
		if l.ctx.Err() != nil || !retry && !run.again {
			delete(l.live, session)
			l.opts.Metrics.drives(-1)
			if l.forgetHooks(session); elsewhere {
				delete(l.requested, session)
			}
			l.mu.Unlock()
			select {
			case l.left <- struct{}{}:
			default:
			}
			switch {
			case rests && run.agreed:
				l.remove(session, run)
			case errors.Is(err, errHandedOver):
				l.opts.Queue.Wake(run.agent, session)
			}
			return
		}
		if run.again {
			run.again, run.held, pause = false, 0, minHoldPause
		}
		l.mu.Unlock()
	}
}

// rest waits, unless somebody asks for the tree or the loop drains.
func (l *Loop) rest(run *liveRun, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-run.asked:
	case <-l.drains:
	case <-l.ctx.Done():
	}
}

// holdSafely is hold, whose panics are errors: a state that can't be folded is
// no end of the process.
func (l *Loop) holdSafely(session string, run *liveRun) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v\n%s", errPanicked, p, debug.Stack())
		}
	}()
	if run.taken {
		select {
		case l.taking <- struct{}{}:
		case <-l.ctx.Done():
			return context.Cause(l.ctx)
		}
		defer run.underWay(l)
	}
	return l.hold(l.ctx, session, run)
}

// underWay lets a further tree be taken up from the list.
func (run *liveRun) underWay(l *Loop) {
	if run.taken {
		run.taken = false
		<-l.taking
	}
}

func (l *Loop) pauses(run *liveRun, yes bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	run.pauses = yes
}
