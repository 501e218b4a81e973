package agentloop

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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
}

// liveRun is a tree that this node is driving.
type liveRun struct {
	again bool // somebody has asked for it since
	// held is the head behind which this node has claimed the tree, 0 if it
	// has not. It is the driving goroutine's.
	held uint64
}

// New returns a loop for the given agents. It fails if one is ill-defined.
func New(log eventlog.Log, agents []Agent, o *Options) (*Loop, error) {
	l := &Loop{log: log, agents: map[string]*definition{}, live: map[string]*liveRun{}, requested: map[string]*runHooks{}}
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
// for their goroutines. It is idempotent.
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
// decide.
func (l *Loop) drive(session string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if run := l.live[session]; run != nil {
		run.again = true
		return
	}
	if l.ctx.Err() != nil {
		return
	}
	run := &liveRun{}
	l.live[session] = run
	l.wg.Go(func() { l.keep(session, run) })
}

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
		err := l.hold(l.ctx, session, run)
		retry := false
		switch {
		case err == nil, errors.Is(err, ErrStopping), l.ctx.Err() != nil:
		case errors.Is(err, eventlog.ErrSuperseded):
			l.opts.Logger.Info("run taken over by another node", "session", session)
			l.tellSuperseded(session)
		case errors.Is(err, eventlog.ErrSessionNotFound):
			l.opts.Logger.Info("run stopped: the session was erased", "session", session)
		case errors.Is(err, eventlog.ErrClosed), errors.Is(err, ErrUnknownAgent), errors.Is(err, eventlog.ErrStreamEnded),
			errors.Is(err, errPanicked), errors.Is(err, errStuck):
			l.opts.Logger.Error("run stopped", "session", session, "error", err)
		default:
			retry = true
			l.opts.Logger.Error("run broke off and is taken up again", "session", session, "error", err, "pause", pause)
			if wait(l.ctx, pause) != nil {
				retry = false
			}
		}
		l.mu.Lock()
		if l.ctx.Err() != nil || !retry && !run.again {
			delete(l.live, session)
			l.forgetHooks(session)
			l.mu.Unlock()
			return
		}
		if run.again {
			run.again, run.held, pause = false, 0, minHoldPause
		}
		l.mu.Unlock()
	}
}
