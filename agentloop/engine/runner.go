package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/internal/decide"
	"github.com/helixd/helixd/agentloop/internal/plan"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
)

// runner drives one tree while it holds the claim: all agents in it at once.
type runner struct {
	l     *Loop
	log   patientLog
	root  string
	agent string                 // the root's
	run   string                 // for which the tree was claimed
	defs  map[string]*plan.Agent // the agents of when it was claimed
	id    string                 // of the writer
	w     *eventlog.Writer

	mu     sync.RWMutex // guards what follows; the writer's observer changes the tree
	tree   *projector.Tree
	parked string            // a session of which the fold could not use a fact of ours
	ids    map[string]*task  // call ids that were given, until the task ends
	hooks  hookQueue         // what hooks are to be told
	spaces map[string]*space // workspaces that are open here, by session

	// stopped are the remote agents that were told to abort, whether they
	// have heard it or not, by StopRemote's key.
	stopped map[string]bool

	turn *turn // of a suspected tree, else nil

	traces *traces // nil: none

	// committing is held from reading the state to appending what was made
	// of it, so that the patches of parallel calls build on each other.
	committing sync.Mutex

	// others is the last fact that somebody else has written, guarded by mu,
	// and decidedAt what it was at the last decision.
	others, decidedAt uint64

	// The driver's alone.
	tasks map[string]*task
	ended chan outcome
}

// hold claims the session's tree and drives it until it is at rest. Without a
// queue it takes the tree from whoever has it when somebody has asked for it,
// with one only from a node that is silent; and it only takes up again what no
// other node has claimed since.
func (l *Loop) hold(ctx context.Context, session string, run *liveRun) (err error) {
	t, err := l.states.Head(ctx, session)
	if err != nil {
		return err
	}
	var turn *turn
	for turn == nil && suspected(t.Claim) && !decide.Aborting(&t.Session) {
		if turn, err = l.awaitTurn(run); err != nil {
			return err
		}
		if turn != nil {
			defer turn.leave()
		}
		if t, err = l.states.Head(ctx, session); err != nil {
			return err
		}
	}
	if c := t.Claim; run.held > 0 && c != nil && c.Sequence > run.held && c.Node != l.opts.Node {
		return eventlog.ErrSuperseded
	}
	defs, leave := l.useAgents()
	defer leave()
	id, attempt := openRun(t)
	run.held, run.agent, run.id = t.Head, t.AgentType, id
	r := &runner{
		l: l, log: patientLog{l.log}, root: session, agent: t.AgentType, defs: defs, run: id, id: l.opts.NewID(), tree: t,
		ids: map[string]*task{}, tasks: map[string]*task{},
		ended: make(chan outcome), hooks: newHookQueue(), stopped: map[string]bool{}, turn: turn,
		traces: l.newTraces(session), spaces: map[string]*space{},
	}
	defer r.closeSpaces()
	if effects, err := r.decide(); err != nil || len(effects) == 0 {
		return err
	}
	if t.Turn != nil && defs[t.AgentType] == nil && !decide.Aborting(&t.Session) {
		return fmt.Errorf("%w: %q", agentloop.ErrUnknownAgent, t.AgentType)
	}
	switch {
	case l.leaves(t.AgentType):
		return errHandedOver
	case l.heldElsewhere(ctx, t, run):
		return errHeld
	}
	r.w = eventlog.NewWriter(r.log, session, eventlog.WriterOptions{
		ID: r.id, Head: t.Head, Status: t.StreamStatus, Observe: r.observe,
	})
	defer r.w.Stop()
	before := t.Claim
	fresh := attempt == 1 && t.Running() && t.CurrentRun().RunID == id
	err = r.w.Claim(ctx, &eventlog.RunClaimed{
		RunID: id, Node: l.opts.Node, Attempt: attempt, FactBase: l.factBase(session),
	})
	if err != nil {
		return err
	}
	l.opts.Metrics.claimed(attempt > 1 && before != nil && before.Node != l.opts.Node)
	l.agree(run)
	run.underWay(l)
	defer func() { r.traces.release(err) }()
	r.trace(id, fresh)
	if err := r.endPoison(ctx); err != nil {
		return err
	}
	if fresh {
		r.mu.Lock()
		if r.tree.CurrentRun().RunID == id { // else it is told of another one already
			r.runBegins(&r.tree.Session)
		}
		r.mu.Unlock()
	}
	err = r.drive(ctx)
	if l.opts.Queue != nil && (errors.Is(err, agentloop.ErrStopping) || errors.Is(err, errHandedOver)) {
		r.letGo()
	}
	return err
}

// trace begins the spans of what goes on in the claimed tree.
func (r *runner) trace(run string, fresh bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if !fresh {
		run = ""
	}
	r.traces.hold(r.tree, run)
}

// openRun returns the run for which a tree is claimed, the root's if its turn
// is open, and how often it will have been claimed.
func openRun(t *projector.Tree) (run string, attempt int) {
	for _, s := range t.Sessions() {
		if last := s.CurrentRun(); s.Turn != nil && last != nil {
			return last.RunID, last.Claims + 1
		}
	}
	return "none", 1
}

func (r *runner) observe(rec eventlog.Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	parked := len(r.tree.Parked)
	projector.Apply(r.tree, rec)
	r.traces.note(r.tree, rec)
	r.noteHooks(rec)
	r.count(rec)
	if c := r.tree.Claim; r.turn != nil && c != nil && c.Writer == r.id && (c.Spoke || c.Progress) {
		r.turn.innocent()
	}
	switch {
	case rec.Kind != eventlog.KindFact: // at worst a patch that somebody else's made useless
	case rec.Writer != r.id:
		r.others = rec.Sequence
	case len(r.tree.Parked) > parked:
		r.parked = rec.Agent
	}
}

func (r *runner) head() uint64 {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.tree.Head
}

// decide returns what is to be done. A state that it can't cope with is no end
// of the process.
func (r *runner) decide() (effects []decide.Effect, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer func() {
		if p := recover(); p != nil {
			effects, err = nil, fmt.Errorf("%w: deciding: %v\n%s", errPanicked, p, debug.Stack())
		}
	}()
	r.decidedAt = r.others
	d := decide.Decider{
		Agents: r.defs, RetryDelay: r.l.opts.RetryDelay, Stopped: r.stopped,
		Busy: func(key string) bool { return r.tasks[key] != nil },
	}
	return r.withHooks(d.Decide(r.tree)), nil
}

// drive decides and performs until the tree is at rest. What others write
// wakes it.
func (r *runner) drive(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	news, lost := make(chan struct{}, 1), make(chan error, 1)
	var watcher sync.WaitGroup
	head := r.head() // from here: what is folded before the first look is decided about
	drains := r.l.drains
	var survived <-chan time.Time
	if r.turn != nil {
		survived = r.turn.over
	}
	watcher.Go(func() { lost <- r.watch(ctx, head, news) })
	defer watcher.Wait()
	defer r.stopAll()
	defer cancel(errUnwanted)
	for {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		effects, err := r.decide()
		if err != nil {
			return err
		}
		r.cancelUnwanted(effects)
		leaves := r.l.leaves(r.agent)
		if leaves {
			effects = r.underWay(effects)
		}
		appended, err := r.next(ctx, effects)
		if err != nil {
			return err
		}
		switch {
		case appended:
			continue
		case len(effects) == 0 && len(r.tasks) == 0 && leaves:
			return errHandedOver
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
			drains = nil // it is decided anew, once
		case <-survived:
			if err := r.settleClaim(ctx, eventlog.ClaimSurvived); err != nil {
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

// underWay are the effects without those that would begin something that takes
// its time: another node shall begin that. Hooks are told here, and what a step has
// done to its files is saved.
func (r *runner) underWay(effects []decide.Effect) []decide.Effect {
	return slices.DeleteFunc(effects, func(e decide.Effect) bool {
		switch e.(type) {
		case decide.CallHooks, decide.SaveWorkspace: // files are kept where they are
			return false
		}
		return e.Key() != "" && r.tasks[e.Key()] == nil
	})
}

// next performs the first of the effects that are appends, or begins those
// that take their time and are not under way. Then it reports false.
func (r *runner) next(ctx context.Context, effects []decide.Effect) (appended bool, err error) {
	if parked := r.takeParked(); parked != "" {
		return true, r.settled(ctx, r.newTask(ctx, decide.Fail{Session: parked}), errParked)
	}
	for _, e := range effects {
		if e.Key() == "" {
			t := r.newTask(ctx, e)
			return true, r.settled(ctx, t, t.perform(e))
		}
	}
	began := map[string]*task{} // by session, the call that has begun last
	for _, e := range effects {
		if r.tasks[e.Key()] == nil {
			t := r.newTask(ctx, e)
			r.tasks[e.Key()] = t
			if _, call := e.(decide.RunCall); call {
				if last := began[t.session]; last != nil {
					t.after = last.passed
				}
				began[t.session] = t
			}
			r.l.wg.Go(func() {
				err := t.perform(e)
				t.pass()
				t.report(err)
			})
		}
	}
	return false, nil
}

// takeParked returns a session with an open turn of which the fold could not use
// a fact of ours: deciding anew would write the same again, for ever.
func (r *runner) takeParked() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	parked := r.parked
	r.parked = ""
	if s := r.tree.Get(parked); s == nil || s.Turn == nil {
		return ""
	}
	return parked
}

// cancelUnwanted ends what decide does not want to be under way any more.
func (r *runner) cancelUnwanted(effects []decide.Effect) {
	for key, t := range r.tasks {
		wanted := slices.ContainsFunc(effects, func(e decide.Effect) bool {
			return e.Key() == key && t.of(e)
		})
		if !wanted && t.cancelled == nil {
			t.cancel(errUnwanted)
			t.cancelled = time.AfterFunc(abandonAfter, func() {
				t.abandon()
				t.report(errAbandoned)
			})
		}
	}
}

// abandonAfter is how long something that was cancelled may go on. Then it is
// left alone: what it does is not recorded any more.
const abandonAfter = 2 * time.Second

// settle takes note of a task that has ended.
func (r *runner) settle(ctx context.Context, o outcome) error {
	if r.tasks[o.name] != o.task {
		return nil
	}
	r.drop(o.task)
	return r.settled(ctx, o.task, o.err)
}

func (r *runner) drop(t *task) {
	delete(r.tasks, t.name)
	r.mu.Lock()
	maps.DeleteFunc(r.ids, func(_ string, by *task) bool { return by == t })
	r.mu.Unlock()
	close(t.gone)
	if t.cancelled != nil {
		t.cancelled.Stop()
	}
	t.cancel(nil)
}

// settled judges how something ended that was to be performed.
func (r *runner) settled(ctx context.Context, t *task, err error) error {
	cause := context.Cause(ctx)
	switch {
	case err == nil, errors.Is(err, eventlog.ErrStale), // it is decided anew
		t.cancelled != nil && (errors.Is(err, errUnwanted) || errors.Is(err, errAbandoned)):
		return nil
	case cause != nil:
		return cause
	case !unrecordable(err):
		return err
	}
	t.logger().Error("run failed", "error", err)
	fail := decide.Fail{Session: t.session, Code: agentloop.CodeInternal, Message: "the run failed for an internal reason"}
	err = r.newTask(ctx, fail).perform(fail)
	switch {
	case errors.Is(err, eventlog.ErrStale):
		return nil
	case err != nil && unrecordable(err):
		return fmt.Errorf("%w: %w", errStuck, err)
	}
	return err
}

var (
	errParked    = errors.New("agentloop: a record of the run can't be folded")
	errPanicked  = errors.New("agentloop: panic")
	errStuck     = errors.New("agentloop: not even the run's failure can be recorded")
	errUnwanted  = errors.New("agentloop: not wanted any more")
	errAbandoned = errors.New("agentloop: abandoned")
)

// unrecordable reports an error that would come again however often the work
// is done anew: what a model or a tool produced can't be a record.
func unrecordable(err error) bool {
	_, invalid := errors.AsType[*eventlog.ValidationError](err)
	return invalid || errors.Is(err, eventlog.ErrTooLarge) || errors.Is(err, errParked) || errors.Is(err, errPanicked)
}

// stopAll ends what is under way and waits for it, but for what does not end.
func (r *runner) stopAll() {
	r.cancelUnwanted(nil)
	for len(r.tasks) > 0 {
		if o := <-r.ended; r.tasks[o.name] == o.task {
			r.drop(o.task)
		}
	}
}

// watch has the driver look whenever somebody else writes into the tree: that
// is how a run hears of a submitted result, of a stop, of a further request.
func (r *runner) watch(ctx context.Context, head uint64, news chan<- struct{}) error {
	for rec, err := range r.log.Follow(ctx, r.root, head) {
		if err != nil {
			return err
		}
		if rec.Writer == r.id {
			continue
		}
		select {
		case news <- struct{}{}:
		default:
		}
	}
	return context.Cause(ctx)
}
