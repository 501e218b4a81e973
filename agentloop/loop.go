package agentloop

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"

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
	Queue Queue
	// RetryDelay is the pause before a failed model call is repeated; it
	// doubles each time. 0: one second.
	RetryDelay time.Duration
}

// Loop runs the agents of one node.
type Loop struct {
	log    eventlog.Log
	states *snapshot.Store
	agents map[string]*definition
	opts   Options

	ctx  context.Context // ends with ErrStopping
	stop context.CancelCauseFunc
	wg   sync.WaitGroup
	mu   sync.Mutex
	live map[string]*liveRun
	// requested are the hooks of requests, by session.
	requested map[string]*runHooks
	// asked counts the requests that are being appended, by session.
	asked    map[string]int
	drains   chan struct{} // closed when the loop drains
	left     chan struct{} // tells Drain that a run has left
	suspects chan struct{} // places for suspected trees; see awaitTurn
	taking   chan struct{} // places for trees from the list that are being folded
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

// New returns a loop for the given agents. It fails if one is ill-defined.
func New(log eventlog.Log, agents []Agent, o *Options) (*Loop, error) {
	l := &Loop{
		log: log, agents: map[string]*definition{}, live: map[string]*liveRun{}, requested: map[string]*runHooks{},
		asked: map[string]int{}, drains: make(chan struct{}), left: make(chan struct{}, 1), suspects: newSuspects(), taking: make(chan struct{}, maxTaking),
	}
	if o != nil {
		l.opts = *o
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
		l.opts.RetryDelay = time.Second
	}
	for _, a := range agents {
		d, err := define(a)
		if err != nil {
			return nil, err
		}
		if l.agents[a.Name] != nil {
			return nil, fmt.Errorf("agentloop: agent %s: defined twice", a.Name)
		}
		l.agents[a.Name] = d
	}
	for name, d := range l.agents {
		if err := d.link(l.agents); err != nil {
			return nil, fmt.Errorf("agentloop: agent %s: %w", name, err)
		}
	}
	l.ctx, l.stop = context.WithCancelCause(context.Background())
	return l, nil
}

// AgentTypes returns the names of the agents, sorted.
func (l *Loop) AgentTypes() []string {
	names := make([]string, 0, len(l.agents))
	for name := range l.agents {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Stop ends all runs as a crash would, so that they can be resumed, and waits
// for their goroutines. It is idempotent. See Drain for a gentler way.
func (l *Loop) Stop() {
	l.mu.Lock()
	l.stop(ErrStopping)
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
		switch {
		case err == nil:
			rests = true
		case errors.Is(err, ErrStopping), l.ctx.Err() != nil:
		case errors.Is(err, errHeld):
			elsewhere = true
		case errors.Is(err, errHandedOver):
			elsewhere = true
			l.opts.Logger.Info("run handed over: this node drains", "session", session)
		case errors.Is(err, eventlog.ErrSuperseded):
			elsewhere = true
			l.opts.Logger.Info("run taken over by another node", "session", session)
			l.tellSuperseded(session)
		case errors.Is(err, eventlog.ErrSessionNotFound):
			rests = true
			l.opts.Logger.Info("run stopped: the session was erased", "session", session)
		case errors.Is(err, eventlog.ErrClosed), errors.Is(err, ErrUnknownAgent), errors.Is(err, eventlog.ErrStreamEnded),
			l.opts.Queue == nil && (errors.Is(err, errPanicked) || errors.Is(err, errStuck)):
			rests = errors.Is(err, eventlog.ErrStreamEnded) // only a new run changes that
			l.opts.Logger.Error("run stopped", "session", session, "error", err)
		default:
			retry = !l.Draining()
			if errors.Is(err, errPanicked) || errors.Is(err, errStuck) {
				pause = maxHoldPause // it will come again, most likely
			}
			l.opts.Logger.Error("run broke off and is taken up again", "session", session, "error", err, "pause", pause)
			if retry {
				l.pauses(run, true)
				l.rest(run, pause)
				l.pauses(run, false)
			}
		}
		l.mu.Lock()
		if l.ctx.Err() != nil || !retry && !run.again {
			delete(l.live, session)
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
				l.remove(session, run.tickets)
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
