package agentloop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
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

// Input is a user's message.
type Input struct {
	Content  string
	Files    []eventlog.MessageFile
	Metadata json.RawMessage // an object, or nil
}

// StartRequest begins a session (document 004, RemoteStartRequest).
type StartRequest struct {
	SessionID string
	AgentType string
	Messages  []Input // at least one
	State     json.RawMessage
	Metadata  map[string]string
}

// ResumeRequest continues a session (document 004, RemoteResumeRequest).
type ResumeRequest struct {
	SessionID string
	Messages  []Input // none: go on as it is
}

// Started names the run that a request began or found.
type Started struct {
	SessionID string `json:"sessionId"`
	StreamID  string `json:"streamId"`
	RunID     string `json:"runId"`
}

// Start begins the first run of a session. It is idempotent: a session whose
// run goes on, or died without an end, answers with that run, which is driven
// on if nobody does. When it returns, the request is durable.
//
// Errors: ErrUnknownAgent, ErrAlreadyCompleted, ErrAlreadyRunning for another
// agent, ErrUseResume, *eventlog.ValidationError, and what the log returns.
func (l *Loop) Start(ctx context.Context, req StartRequest) (Started, error) {
	def := l.agents[req.AgentType]
	if def == nil {
		return Started{}, ErrUnknownAgent
	}
	return l.request(ctx, req.SessionID, func(t *projector.Tree) ([]fact, string, error) {
		base := l.factBase(req.SessionID)
		if t == nil {
			state := req.State
			if state == nil {
				state = def.InitialState
			}
			return append([]fact{{f: &eventlog.SessionCreated{
				AgentType: req.AgentType, State: state, Metadata: req.Metadata, FactBase: base,
			}}}, l.newRun(req.SessionID, eventlog.ModeStart, req.Messages)...), "", nil
		}
		switch {
		case t.Status == projector.SessionCompleted || t.Status == projector.SessionFailed:
			return nil, "", ErrAlreadyCompleted
		case t.AgentType != req.AgentType:
			return nil, "", ErrAlreadyRunning
		case len(t.Runs) == 0: // only outside producers wrote
			return l.newRun(req.SessionID, eventlog.ModeStart, req.Messages), "", nil
		case t.Status != projector.SessionActive:
			return nil, "", ErrUseResume
		}
		return nil, t.Turn.RunID, nil
	})
}

// Resume continues a session's open turn in a new run: after a crash, an
// interruption or a pause. On a live run without a message it answers with
// that run.
//
// Errors: eventlog.ErrSessionNotFound, ErrAlreadyCompleted, ErrAlreadyRunning,
// ErrNothingToResume, ErrUnknownAgent, and what the log returns.
func (l *Loop) Resume(ctx context.Context, req ResumeRequest) (Started, error) {
	return l.request(ctx, req.SessionID, func(t *projector.Tree) ([]fact, string, error) {
		switch {
		case t == nil:
			return nil, "", eventlog.ErrSessionNotFound
		case t.Status == projector.SessionCompleted || t.Status == projector.SessionFailed:
			return nil, "", ErrAlreadyCompleted
		case t.Turn == nil:
			return nil, "", ErrNothingToResume
		case l.agents[t.AgentType] == nil:
			return nil, "", ErrUnknownAgent
		case l.Live(req.SessionID) && len(req.Messages) > 0:
			return nil, "", ErrAlreadyRunning
		case l.Live(req.SessionID):
			return nil, t.Turn.RunID, nil
		}
		mode := eventlog.ModeContinue
		if len(req.Messages) > 0 {
			mode = eventlog.ModeWithMessage
		}
		facts := l.newRun(req.SessionID, mode, req.Messages)
		resumed := &eventlog.RunResumed{
			RunID: facts[0].run, FromStepCount: t.StepCount, Mode: string(mode),
			Base: eventlog.Base{
				AgentID: t.SessionID, AgentType: t.AgentType, Timestamp: l.now(), Step: t.StepCount,
			},
		}
		if cp := t.LatestCheckpoint(); cp != nil {
			resumed.FromCheckpointID = &cp.ID
		}
		return append(facts, fact{c: resumed, run: facts[0].run}), "", nil
	})
}

// fact is a record to be appended: f or c.
type fact struct {
	f    eventlog.Fact
	c    eventlog.Chunk
	run  string
	call string
}

// newRun returns the records of a request: the messages, then the run.
func (l *Loop) newRun(session string, mode eventlog.RunMode, messages []Input) []fact {
	run := "run-" + l.opts.NewID()
	var facts []fact
	for _, m := range messages {
		facts = append(facts, fact{run: run, f: &eventlog.UserMessage{
			Content: m.Content, Files: m.Files, Metadata: m.Metadata, FactBase: l.factBase(session),
		}})
	}
	return append(facts, fact{run: run, f: &eventlog.RunRequested{RunID: run, Mode: mode, FactBase: l.factBase(session)}})
}

// request appends what plan makes of the session's state (nil: there is none),
// and has the run driven. If somebody else writes in between, it plans anew.
func (l *Loop) request(ctx context.Context, session string, plan func(*projector.Tree) ([]fact, string, error)) (Started, error) {
	if err := eventlog.ValidateSessionID(session); err != nil {
		return Started{}, err
	}
	for {
		if l.ctx.Err() != nil {
			return Started{}, ErrStopping
		}
		t, err := l.states.Head(ctx, session)
		if errors.Is(err, eventlog.ErrSessionNotFound) {
			t = nil
		} else if err != nil {
			return Started{}, err
		}
		facts, run, err := plan(t)
		if err != nil {
			return Started{}, err
		}
		if len(facts) > 0 {
			run = facts[len(facts)-1].run
			head := uint64(0)
			if t != nil {
				head = t.Head
			}
			entries, err := entriesOf(session, facts)
			if err != nil {
				return Started{}, err
			}
			_, err = eventlog.AppendOnce(ctx, l.log, session, l.opts.NewID(), head, entries)
			if _, conflict := errors.AsType[*eventlog.ConflictError](err); conflict {
				continue
			}
			if err != nil {
				return Started{}, err
			}
		}
		l.drive(session)
		return Started{SessionID: session, StreamID: session, RunID: run}, nil
	}
}

func entriesOf(session string, facts []fact) ([]eventlog.Entry, error) {
	entries := make([]eventlog.Entry, len(facts))
	for i, x := range facts {
		var err error
		if x.c != nil {
			entries[i], err = eventlog.NewChunk(x.c, eventlog.Labels{Run: x.run, Call: x.call})
		} else {
			entries[i], err = eventlog.NewFact(session, x.f, eventlog.Labels{Run: x.run, Call: x.call})
		}
		if err != nil {
			return nil, err
		}
	}
	return entries, nil
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
