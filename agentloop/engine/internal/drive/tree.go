// Package drive performs what is decided in a session tree while this node holds
// its claim, until the tree is idle: it calls models and tools, begins sub-agents,
// opens workspaces, calls hooks, and appends what happened.
package drive

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine/internal/backlog"
	"github.com/helixd/helixd/agentloop/engine/internal/files"
	"github.com/helixd/helixd/agentloop/engine/internal/retrying"
	"github.com/helixd/helixd/agentloop/engine/internal/tracing"
	"github.com/helixd/helixd/agentloop/internal/decide"
	"github.com/helixd/helixd/agentloop/internal/locks"
	"github.com/helixd/helixd/agentloop/internal/plan"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
)

// Tree drives one tree while it holds the claim: all agents in it at once.
type Tree struct {
	host  *Host
	log   retrying.Log
	root  string
	agent string                 // the root's
	run   string                 // for which the tree was claimed
	defs  map[string]*plan.Agent // the agents of when it was claimed
	id    string                 // of the writer
	w     *eventlog.Writer

	mu     sync.RWMutex // guards what follows; the writer's observer changes the tree
	tree   *projector.Tree
	parked string           // a session of which the fold could not use a fact of ours
	ids    map[string]*task // call ids that were given, until the task ends
	hooks  *backlog.Queue   // events for hooks
	files  *files.Tree      // workspaces that are open here

	// notBefore is when the model of a session may be asked again, as its provider has asked for.
	notBefore map[string]time.Time

	// stopped are the remote agents to which an abort was sent, received
	// or not, by StopRemote's key.
	stopped map[string]bool

	probation *Probation // of a suspected tree, otherwise nil

	traces *tracing.Tree // nil: none

	hookLocks locks.Table // by session: held while a hook is being called

	// committing is held from reading the state to appending what was made
	// of it, so that the patches of parallel calls build on each other.
	committing sync.Mutex

	// others is the last fact of another writer, guarded by mu,
	// and decidedAt its value at the last decision.
	others, decidedAt uint64

	// The driver's alone.
	began time.Time // to drive the tree
	tasks map[string]*task
	ended chan outcome
}

// New returns what drives a tree for a run of the root, with the agents of
// now. request returns the hooks of the request that began a run; probation is nil if
// the tree is not suspected.
func New(h *Host, root string, t *projector.Tree, run string, defs map[string]*plan.Agent, request func(run string) *agentloop.Hooks, probation *Probation) *Tree {
	return &Tree{
		host: h, log: retrying.Log{Log: h.Log}, root: root, agent: t.AgentType, defs: defs, run: run, id: h.NewID(), tree: t,
		ids: map[string]*task{}, tasks: map[string]*task{},
		ended: make(chan outcome), hooks: backlog.New(t, defs, request), stopped: map[string]bool{}, notBefore: map[string]time.Time{}, probation: probation,
		traces: tracing.New(h.Tracer, h.TraceContent, h.Node, root), files: h.Files.NewTree(),
	}
}

// Claim makes this node the tree's writer.
func (r *Tree) Claim(ctx context.Context, attempt int) error {
	r.w = eventlog.NewWriter(r.log, r.root, eventlog.WriterOptions{
		ID: r.id, Head: r.tree.Head, Status: r.tree.StreamStatus, Observe: r.observe,
	})
	return r.w.Claim(ctx, &fact.RunClaimed{
		RunID: r.run, Node: r.host.Node, Attempt: attempt, Base: r.host.FactBase(r.root),
	})
}

// Close releases the writer and the tree's workspaces.
func (r *Tree) Close() {
	if r.w != nil {
		r.w.Stop()
	}
	r.files.Close()
}

// Drive drives the tree, which was claimed, until it is idle. fresh says
// that no process has worked on the run before.
func (r *Tree) Drive(ctx context.Context, fresh bool) (err error) {
	defer func() { r.traces.Release(releasedFor(err)) }()
	r.began = time.Now()
	r.trace(r.run, fresh)
	if err := r.endPoison(ctx); err != nil {
		return err
	}
	if fresh {
		r.mu.Lock()
		if r.tree.CurrentRun().RunID == r.run { // otherwise its hooks know of another one already
			r.hooks.RunBegins(&r.tree.Session)
		}
		r.mu.Unlock()
	}
	err = r.untilIdle(ctx)
	if r.host.Shared && (errors.Is(err, agentloop.ErrStopping) || errors.Is(err, ErrHandedOver)) {
		r.release()
	}
	return err
}

// releasedFor is the reason in spans why a tree is not driven here any more.
func releasedFor(err error) string {
	switch {
	case err == nil:
		return "at_rest"
	case errors.Is(err, ErrHandedOver):
		return "handed_over"
	case errors.Is(err, agentloop.ErrStopping):
		return "stopping"
	case errors.Is(err, eventlog.ErrSuperseded):
		return "superseded"
	case errors.Is(err, eventlog.ErrSessionNotFound):
		return "erased"
	}
	return "broken_off"
}

// trace begins the spans of what continues in the claimed tree.
func (r *Tree) trace(run string, fresh bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if !fresh {
		run = ""
	}
	r.traces.Hold(r.tree, run)
}

func (r *Tree) observe(rec eventlog.Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	parked := len(r.tree.Parked)
	projector.Apply(r.tree, rec)
	r.traces.Note(r.tree, rec)
	r.hooks.Note(rec)
	if rec.Writer == r.id && rec.Kind == eventlog.KindFact {
		s := r.tree.Get(rec.Agent)
		var def *plan.Agent
		if s != nil {
			def = r.defs[s.AgentType]
		}
		r.host.Metrics.Count(rec, s, def)
	}
	if c := r.tree.Claim; r.probation != nil && c != nil && c.Writer == r.id && (c.Spoke || c.Progress) {
		r.probation.Clear()
	}
	switch {
	case rec.Kind != eventlog.KindFact: // at worst a patch that another writer's has made useless
	case rec.Writer != r.id:
		r.others = rec.Sequence
	case len(r.tree.Parked) > parked:
		r.parked = rec.Agent
	}
}

func (r *Tree) head() uint64 {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.tree.Head
}

// Decide returns what is to be done. A state that it can't cope with is no end
// of the process.
func (r *Tree) Decide() (effects []decide.Effect, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer func() {
		if p := recover(); p != nil {
			effects, err = nil, fmt.Errorf("%w: deciding: %v\n%s", ErrPanicked, p, debug.Stack())
		}
	}()
	r.decidedAt = r.others
	d := decide.Decider{
		Agents: r.defs, RetryDelay: r.host.RetryDelay, Stopped: r.stopped,
		Busy: func(key string) bool { return r.tasks[key] != nil },
	}
	return r.hooks.Order(d.Decide(r.tree), d.Busy), nil
}

// untilIdle decides and performs until the tree is idle. What others write
// wakes it.
func (r *Tree) untilIdle(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	news, lost := make(chan struct{}, 1), make(chan error, 1)
	var watcher sync.WaitGroup
	head := r.head() // from here: what is folded before the first look is decided about
	drains := r.host.Drains
	var survived <-chan time.Time
	if r.probation != nil {
		survived = r.probation.Over
	}
	watcher.Go(func() { lost <- r.watch(ctx, head, news) })
	defer watcher.Wait()
	defer r.stopAll()
	defer cancel(errUnwanted)
	for {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		effects, err := r.Decide()
		if err != nil {
			return err
		}
		r.cancelUnwanted(effects)
		handsOver := r.host.HandsOver(r.agent)
		if handsOver {
			effects = r.underWay(effects)
		} else if r.movable(effects) && r.host.Spread(r.root, r.agent) {
			return ErrSpread
		}
		appended, err := r.next(ctx, effects)
		if err != nil {
			return err
		}
		switch {
		case appended:
			continue
		case handsOver && r.onlyDeadlines(effects):
			return ErrHandedOver
		case len(effects) == 0 && len(r.tasks) == 0:
			return nil
		}
		select {
		case o := <-r.ended:
			if err := r.settle(ctx, o); err != nil {
				return err
			}
		case <-news:
			if err := r.w.Sync(ctx); err != nil {
				return err
			}
		case <-drains:
			drains = nil // it is decided again, once
		case <-survived:
			if err := r.settleClaim(ctx, fact.ClaimSurvived); err != nil {
				return err
			}
		case err := <-lost:
			if cause := context.Cause(ctx); cause != nil {
				return cause
			}
			return err
		case <-ctx.Done():
		}
	}
}

// leastStay is how long a node drives a tree, at least, before it hands it over to one that is
// less busy: until then nodes may not know of each other what they drive.
const leastStay = time.Second

// movable reports whether another node could begin all that is to be done now, without
// loss: between two steps, and if no files belong to this node.
func (r *Tree) movable(effects []decide.Effect) bool {
	if len(effects) == 0 || len(r.tasks) > 0 || r.probation != nil || time.Since(r.began) < leastStay {
		return false
	}
	for _, e := range effects {
		if _, model := e.(decide.CallModel); !model {
			return false
		}
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	return MayMove(r.tree)
}

// MayMove reports whether no session of a tree has files that may belong to a node.
func MayMove(t *projector.Tree) bool {
	return !slices.ContainsFunc(t.Sessions(), func(s *projector.Session) bool { return s.Workspace != nil })
}

// underWay are the effects without those that would begin something long: another node is to begin that. Hooks are
// still called here, and the files of a step are saved.
func (r *Tree) underWay(effects []decide.Effect) []decide.Effect {
	return slices.DeleteFunc(effects, func(e decide.Effect) bool {
		switch e.(type) {
		case decide.CallHooks, decide.SaveWorkspace: // files are kept where they are
			return false
		}
		return e.Key() != "" && r.tasks[e.Key()] == nil
	})
}

// onlyDeadlines reports whether nothing is left to do here but to wait for calls' deadlines.
// They are in the log: the next node waits for them itself.
func (r *Tree) onlyDeadlines(effects []decide.Effect) bool {
	waits := map[string]bool{}
	for _, e := range effects {
		if _, deadline := e.(decide.AwaitDeadline); !deadline {
			return false
		}
		waits[e.Key()] = true
	}
	for key := range r.tasks {
		if !waits[key] {
			return false // it is not wanted any more, and ends
		}
	}
	return true
}

// watch wakes the driver when another writer appends to the tree: so
// a run learns of a submitted result, of a stop, of a further request.
func (r *Tree) watch(ctx context.Context, head uint64, news chan<- struct{}) error {
	for _, err := range r.log.Follow(eventlog.WithoutWriter(ctx, r.id), r.root, head) {
		if err != nil {
			return err
		}
		select {
		case news <- struct{}{}:
		default:
		}
	}
	return context.Cause(ctx)
}
