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
}

// liveRun is a tree that this node is driving.
type liveRun struct{ again bool }

// New returns a loop for the given agents. It fails if one is ill-defined.
func New(log eventlog.Log, agents []Agent, o *Options) (*Loop, error) {
	l := &Loop{log: log, states: snapshot.New(log), agents: map[string]*definition{}, live: map[string]*liveRun{}}
	if o != nil {
		l.opts = *o
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
	l.wg.Go(func() {
		for {
			err := l.hold(l.ctx, session)
			if err != nil && !errors.Is(err, ErrStopping) {
				l.opts.Logger.Error("run stopped", "session", session, "error", err)
			}
			l.mu.Lock()
			if !run.again || err != nil {
				delete(l.live, session)
				l.mu.Unlock()
				return
			}
			run.again = false
			l.mu.Unlock()
		}
	})
}
