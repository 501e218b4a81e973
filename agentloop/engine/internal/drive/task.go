package drive

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine/internal/record"
	"github.com/helixd/helixd/agentloop/internal/decide"
	"github.com/helixd/helixd/agentloop/internal/plan"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
)

// task performs one effect, for one session of the tree. What it appends goes
// through it, so that nothing follows when it has been left alone.
type task struct {
	*Tree
	name    string // the effect's key
	session string
	def     *plan.Agent // nil if no agent of the session's type is here
	runID   string      // the run that drives the session
	// requestID is the HTTP request that asked for the root's run; empty: not known.
	requestID string
	ctx       context.Context
	cancel    context.CancelCauseFunc
	gone      chan struct{} // closed when nothing waits for it any more

	cancelled *time.Timer // the driver's: since it is not wanted

	// Of a call: its hooks come after those of the call before it.
	after    <-chan struct{} // closed when the hooks of that call were called; nil: there is none
	passed   chan struct{}   // closed when those of this one were
	passOnce sync.Once

	// still reports, if set, whether the entries are still to be appended: a decision
	// is void when others have written facts since, and a model's answer when
	// another run drives the session.
	still func() bool

	appendLock sync.Mutex
	abandoned  bool
}

func (r *Tree) newTask(ctx context.Context, e decide.Effect) *task {
	t := &task{Tree: r, name: e.Key(), session: e.About(), gone: make(chan struct{}), passed: make(chan struct{})}
	t.ctx, t.cancel = context.WithCancelCause(r.traces.Context(ctx, t.session))
	r.mu.RLock()
	defer r.mu.RUnlock()
	if s := r.tree.Get(t.session); s != nil {
		t.def = r.defs[s.AgentType]
		if s.Turn != nil {
			t.runID = s.Turn.RunID
			t.def = t.def.With(s.Turn.Tools)
		}
	}
	if run := r.tree.CurrentRun(); run != nil { // the root's: nobody asks for a sub-agent's
		t.requestID = run.RequestID
	}
	decidedAt := r.decidedAt
	current := func() bool {
		r.mu.RLock()
		defer r.mu.RUnlock()
		return r.others == decidedAt
	}
	switch e := e.(type) {
	case decide.CallModel, decide.Recall:
		t.still = t.drives
	case decide.AwaitDeadline:
		t.still = func() bool { return t.waits(e.Call.ID) }
	case decide.CloseCall:
		t.still = func() bool { return current() && t.waits(e.Call.ID) }
	case decide.CommitStep: // it may have been appended with the step's last record meanwhile, see appendOn
		t.still = func() bool { return current() && t.openStep(e.Step.ID) }
	case decide.Finish: // as above
		t.still = func() bool { return current() && t.drives() }
	default:
		if t.name == "" {
			t.still = current
		}
	}
	return t
}

// of reports whether the task may continue for an effect with its key: an answer
// is its run's.
func (t *task) of(e decide.Effect) bool {
	switch e := e.(type) {
	case decide.CallModel:
		return e.RunID == t.runID
	case decide.Recall:
		return e.RunID == t.runID
	}
	return true
}

// drives reports whether the task's run is still the one that drives the
// session.
func (t *task) drives() (drives bool) {
	t.look(func(s *projector.Session) { drives = s != nil && s.Turn != nil && s.Turn.RunID == t.runID })
	return drives
}

// openStep reports whether a step is the last one and not final yet.
func (t *task) openStep(id string) (open bool) {
	t.look(func(s *projector.Session) {
		open = s != nil && s.Turn != nil && s.Turn.Step != nil && s.Turn.Step.ID == id && !s.Turn.Step.Committed
	})
	return open
}

// waits reports whether a call of the open step has no result yet: its deadline
// and what it waited for may come at once.
func (t *task) waits(call string) (waits bool) {
	t.look(func(s *projector.Session) {
		if s != nil && s.Turn != nil && s.Turn.Step != nil {
			waits = slices.ContainsFunc(s.Turn.Step.Pending(), func(c projector.Call) bool { return c.ID == call })
		}
	})
	return waits
}

// perform performs the effect. A panic in a tool's or a model's code is the
// run's failure, not the process's.
func (t *task) perform(e decide.Effect) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v\n%s", ErrPanicked, p, debug.Stack())
		}
	}()
	switch e := e.(type) {
	case decide.CallModel:
		return t.callModel(t.ctx, e)
	case decide.Recall:
		return t.recall(t.ctx)
	case decide.RunCall:
		return t.runCall(t.ctx, e)
	case decide.RunCompanion:
		return t.runCall(t.ctx, decide.RunCall(e))
	case decide.SaveWorkspace:
		return t.saveWorkspace(t.ctx)
	case decide.AwaitDeadline:
		return t.awaitDeadline(t.ctx, e)
	case decide.StopRemote:
		t.stopRemote(t.ctx, e)
		return nil
	case decide.CallHooks:
		return t.callHooks(t.ctx)
	case decide.Truncate:
		return t.truncate(t.ctx, e)
	case decide.CloseCall:
		return t.closeCall(t.ctx, e)
	case decide.CommitStep:
		return t.append(t.ctx, t.stepEnd(e)...)
	case decide.Tell:
		return t.append(t.ctx, t.fact(&fact.UserMessage{Content: e.Text, Metadata: e.Metadata, Base: t.factBase()}))
	case decide.ResumeChild:
		return t.resumeChild(t.ctx)
	case decide.StopChild:
		return t.append(t.ctx, t.fact(&fact.InterruptRequested{
			RunID: t.runID, Kind: e.Stop.Kind, Reason: e.Stop.Reason, Code: e.Stop.Code, ByParent: e.Stop.ByParent,
			Base: t.factBase(),
		}))
	case decide.Suspend:
		return t.suspend(t.ctx, e)
	case decide.Interrupt:
		return t.interrupt(t.ctx, e)
	case decide.Finish:
		return t.finish(t.ctx, e)
	case decide.Fail:
		return t.fail(t.ctx, e)
	default:
		panic(fmt.Sprintf("agentloop: effect %T", e))
	}
}

// abandon leaves the task alone: its appends fail from now on.
func (t *task) abandon() {
	t.appendLock.Lock()
	defer t.appendLock.Unlock()
	t.abandoned = true
}

// outcome is what has become of a task.
type outcome struct {
	*task
	err error
}

// report hands the outcome to the driver, if that still waits for it.
func (t *task) report(err error) {
	select {
	case t.ended <- outcome{task: t, err: err}:
	case <-t.gone:
	}
}

// append appends facts, all or none. It outlives the task's context for a
// while: an append that is given up has an unknown outcome.
func (t *task) append(ctx context.Context, facts ...record.Draft) error {
	return t.appendIf(ctx, t.still, facts...)
}

// appendIf is append of what is void if still, which may be nil, says no.
func (t *task) appendIf(ctx context.Context, still func() bool, facts ...record.Draft) error {
	entries, err := record.Entries(t.session, facts)
	if err != nil {
		return err
	}
	return t.appendEntries(ctx, still, entries)
}

// appendEntries is appendIf of what was encoded.
func (t *task) appendEntries(ctx context.Context, still func() bool, entries []eventlog.Entry) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	t.appendLock.Lock()
	defer t.appendLock.Unlock()
	if t.abandoned {
		return errAbandoned
	}
	ctx, cancel := t.log.Patience(t.ctx, context.WithoutCancel(ctx))
	defer cancel()
	return t.w.AppendIf(ctx, still, entries...)
}

// write queues facts, all or none; if the log lags so far that there is no room, it
// waits. flush returns their outcome.
func (t *task) write(ctx context.Context, facts ...record.Draft) error {
	entries, err := record.Entries(t.session, facts)
	if err != nil {
		return err
	}
	t.appendLock.Lock()
	defer t.appendLock.Unlock()
	if t.abandoned {
		return errAbandoned
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if queued, err := t.w.TryWrite(entries...); queued || err != nil { // there nearly always is room, and patience sets a timer
		return err
	}
	ctx, cancel := t.log.Patience(t.ctx, ctx)
	defer cancel()
	return t.w.Write(ctx, entries...)
}

// flush waits until all that was written is durable and folded. Like append,
// it outlives the task's context.
func (t *task) flush(ctx context.Context) error {
	ctx, cancel := t.log.Patience(t.ctx, context.WithoutCancel(ctx))
	defer cancel()
	return t.w.Flush(ctx)
}

// logger returns a logger with the task's session, its run and the request that asked for the run.
func (t *task) logger() *slog.Logger {
	return t.requestLogger().With(eventlog.LogSession, t.session, eventlog.LogRun, t.runID)
}

// requestLogger returns a logger with the request that asked for the root's run, if that is known.
func (t *task) requestLogger() *slog.Logger {
	if t.requestID == "" {
		return t.host.Logger
	}
	return t.host.Logger.With(eventlog.LogRequestID, t.requestID)
}

// chunk labels a chunk of the current run, fact a fact.
func (t *task) chunk(c eventlog.Chunk) record.Draft { return record.Draft{Chunk: c, Run: t.runID} }
func (t *task) fact(f fact.Fact) record.Draft       { return record.Draft{Fact: f, Run: t.runID} }

func (t *task) factBase() fact.Base { return t.host.FactBase(t.session) }

func (t *task) base(step int) eventlog.Base {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return eventlog.Base{AgentID: t.session, AgentType: t.tree.Get(t.session).AgentType, Timestamp: t.host.Millis(), Step: step}
}

// look calls f with the session's state, which must not be kept.
func (t *task) look(f func(s *projector.Session)) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	f(t.tree.Get(t.session))
}

func (t *task) sessionInfo() agentloop.SessionInfo {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return agentloop.SessionInfo{
		RootSessionID: t.root, SessionID: t.session, AgentType: t.tree.Get(t.session).AgentType, UserID: t.tree.UserID,
		Tenant: t.tree.Tenant,
	}
}

func (t *task) step() (n int) {
	t.look(func(s *projector.Session) {
		if s.Turn != nil && s.Turn.Step != nil {
			n = s.Turn.Step.Number
		}
	})
	return n
}

func (t *task) customState() json.RawMessage {
	state, _ := t.patchable()
	return state
}

// patchable returns the custom state, and how much work a patch of it may be.
func (t *task) patchable() (state json.RawMessage, left int64) {
	t.look(func(s *projector.Session) { state, left = s.CustomState.Bytes(), t.tree.PatchWorkLeft() })
	return state, left
}

// next performs the first of the effects that are appends, or begins those
// that take their time and are not under way. Then it reports false.
func (r *Tree) next(ctx context.Context, effects []decide.Effect) (appended bool, err error) {
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
			r.host.Goroutines.Go(func() {
				err := t.perform(e)
				t.pass()
				t.report(err)
			})
		}
	}
	return false, nil
}

// takeParked returns a session with an open turn of which the fold could not use
// a fact of ours: deciding again would write the same again, for ever.
func (r *Tree) takeParked() string {
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
func (r *Tree) cancelUnwanted(effects []decide.Effect) {
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

// abandonAfter is how long something that was cancelled may continue. Then it is
// left alone: what it does is not recorded any more.
const abandonAfter = 2 * time.Second

// settle handles a task that has ended.
func (r *Tree) settle(ctx context.Context, o outcome) error {
	if r.tasks[o.name] != o.task {
		return nil
	}
	r.drop(o.task)
	return r.settled(ctx, o.task, o.err)
}

func (r *Tree) drop(t *task) {
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
func (r *Tree) settled(ctx context.Context, t *task, err error) error {
	cause := context.Cause(ctx)
	switch {
	case err == nil, errors.Is(err, eventlog.ErrStale), // it is decided again
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
		return fmt.Errorf("%w: %w", ErrStuck, err)
	}
	return err
}

var (
	// ErrHandedOver: this node drains, and another one continues with the tree.
	ErrHandedOver = errors.New("agentloop: handed over to another node")
	// ErrSpread is an ErrHandedOver: the other node is less busy.
	ErrSpread    = fmt.Errorf("%w, which is less busy", ErrHandedOver)
	errParked    = errors.New("agentloop: a record of the run can't be folded")
	ErrPanicked  = errors.New("agentloop: panic")
	ErrStuck     = errors.New("agentloop: not even the run's failure can be recorded")
	errUnwanted  = errors.New("agentloop: not wanted any more")
	errAbandoned = errors.New("agentloop: abandoned")
)

// unrecordable reports an error that would come again however often the work
// is done again: what a model or a tool produced can't be a record.
func unrecordable(err error) bool {
	_, invalid := errors.AsType[*eventlog.ValidationError](err)
	return invalid || errors.Is(err, eventlog.ErrTooLarge) || errors.Is(err, errParked) || errors.Is(err, ErrPanicked)
}

// stopAll ends what is under way and waits for it, but for what does not end.
func (r *Tree) stopAll() {
	r.cancelUnwanted(nil)
	for len(r.tasks) > 0 {
		if o := <-r.ended; r.tasks[o.name] == o.task {
			r.drop(o.task)
		}
	}
}
