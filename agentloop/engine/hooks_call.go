package engine

import (
	"context"
	"errors"
	"runtime/debug"
	"time"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/internal/decide"
	"github.com/helixd/helixd/projector"
)

// hookEvent is something that hooks are told.
type hookEvent struct {
	name string
	// of returns a hook's function for the event, or nil.
	of func(*agentloop.Hooks) func(context.Context, *agentloop.HookContext)
	// chain are the hooks that have one, in their order.
	chain []*agentloop.Hooks
}

// newHookEvent is the event with a payload; pick finds the function for it.
func newHookEvent[P any](name string, p P, pick func(*agentloop.Hooks) func(context.Context, *agentloop.HookContext, P)) hookEvent {
	return hookEvent{name: name, of: func(hooks *agentloop.Hooks) func(context.Context, *agentloop.HookContext) {
		f := pick(hooks)
		if f == nil {
			return nil
		}
		return func(ctx context.Context, h *agentloop.HookContext) { f(ctx, h, p) }
	}}
}

// told returns the event for those of the hooks that want to know of it, and
// whether there are any.
func (ev hookEvent) told(hooks []*agentloop.Hooks) (hookEvent, bool) {
	ev.chain = nil
	for _, one := range hooks {
		if ev.of(one) != nil {
			ev.chain = append(ev.chain, one)
		}
	}
	return ev, len(ev.chain) > 0
}

// hooksOf returns the hooks that concern a session of the tree, in their order.
// The caller holds the state.
func (r *runner) hooksOf(s *projector.Session) []*agentloop.Hooks {
	var hooks []*agentloop.Hooks
	for n := 0; s != nil && n <= len(r.tree.Children); n++ {
		if def := r.defs[s.AgentType]; def != nil && def.Hooks != nil {
			hooks = append([]*agentloop.Hooks{def.Hooks}, hooks...)
		}
		if s.Child == nil {
			break
		}
		s = r.tree.Get(s.Child.ParentSessionID)
	}
	if run := r.tree.CurrentRun(); run != nil {
		if extra := r.l.requestHooks(r.root, run.RunID); extra != nil {
			hooks = append(hooks, extra)
		}
	}
	return hooks
}

// tell calls the hooks of the task's session that want to know of an event.
func (t *task) tell(ctx context.Context, ev hookEvent) {
	var told bool
	t.look(func(s *projector.Session) { ev, told = ev.told(t.hooksOf(s)) })
	if told {
		t.fire(ctx, ev)
	}
}

// fire calls the hooks of an event, one at a time for each session.
func (t *task) fire(ctx context.Context, ev hookEvent) {
	turn := t.hookTurn()
	select {
	case turn <- struct{}{}:
	case <-ctx.Done():
		return
	}
	defer func() { <-turn }()
	for _, hooks := range ev.chain {
		if ctx.Err() != nil {
			return
		}
		t.callHook(ctx, ev.name, ev.of(hooks))
	}
}

// hookTurn is full while a hook of the session is being called.
func (t *task) hookTurn() chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	turn := t.hooks.turns[t.session]
	if turn == nil {
		turn = make(chan struct{}, 1)
		t.hooks.turns[t.session] = turn
	}
	return turn
}

var errHookTime = errors.New("the hook took too long")

// callHook calls one function. One that does not return when its context has
// ended is left alone.
func (t *task) callHook(ctx context.Context, name string, f func(context.Context, *agentloop.HookContext)) {
	ctx, cancel := context.WithTimeoutCause(ctx, agentloop.MaxHookTime, errHookTime)
	defer cancel()
	host := &hookHost{t: t, ctx: ctx}
	h := newHookContext(t, host)
	defer host.end()
	log := t.logger().With("hook", name)
	done := make(chan struct{})
	t.l.wg.Go(func() {
		defer close(done)
		defer func() {
			if p := recover(); p != nil {
				log.Error("hook panicked", "panic", p, "stack", string(debug.Stack()))
			}
		}()
		f(ctx, h)
	})
	select {
	case <-done:
		return
	case <-ctx.Done():
	}
	grace := time.NewTimer(abandonAfter / 2)
	defer grace.Stop()
	select {
	case <-done:
	case <-grace.C:
		log.Warn("a hook does not end and is left alone", "cause", context.Cause(ctx))
	}
}

// beforeExecution tells of a call that is about to be executed. Calls that
// began together tell in the model's order.
func (t *task) beforeExecution(ctx context.Context, ev hookEvent) {
	defer t.pass()
	if t.after != nil {
		select {
		case <-t.after:
		case <-ctx.Done():
			return
		}
	}
	t.tell(ctx, ev)
}

// pass lets the next call of the step begin.
func (t *task) pass() { t.passOnce.Do(func() { close(t.passed) }) }

// runHooks is known for the time in which this process drives the run.
type runHooks struct {
	run   string
	hooks *agentloop.Hooks
	seen  bool // a runner has looked for it
}

// attach keeps the hooks of a request until its run has been driven.
func (l *Loop) attach(session, run string, hooks *agentloop.Hooks) {
	if hooks == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.requested[session] = &runHooks{run: run, hooks: hooks}
}

// detach forgets the hooks of a request that has come to nothing.
func (l *Loop) detach(session, run string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if kept := l.requested[session]; kept != nil && kept.run == run {
		delete(l.requested, session)
	}
}

func (l *Loop) requestHooks(session, run string) *agentloop.Hooks {
	l.mu.Lock()
	defer l.mu.Unlock()
	kept := l.requested[session]
	if kept == nil || kept.run != run {
		return nil
	}
	kept.seen = true
	return kept.hooks
}

// forgetRequest forgets the hooks of a run that is driven elsewhere.
func (l *Loop) forgetRequest(session string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.requested, session)
}

// forgetHooks forgets the hooks of a run that is not driven here any more. The
// caller holds l.mu.
func (l *Loop) forgetHooks(session string) {
	if kept := l.requested[session]; kept != nil && kept.seen {
		delete(l.requested, session)
	}
}

func (t *task) beforeSubAgent(ctx context.Context, agent string, call projector.Call) {
	t.beforeExecution(ctx, newHookEvent("beforeSubAgent",
		agentloop.BeforeSubAgentPayload{Agent: agent, ToolCallID: call.ID, Input: call.Arguments},
		func(h *agentloop.Hooks) func(context.Context, *agentloop.HookContext, agentloop.BeforeSubAgentPayload) {
			return h.BeforeSubAgent
		}))
}

// beforeModel tells of a model call that is about to be made.
func (t *task) beforeModel(ctx context.Context, e decide.CallModel) {
	p := agentloop.BeforeLLMCallPayload{StepID: e.StepID, Step: e.Step, Attempt: 1}
	told := false
	t.look(func(s *projector.Session) {
		if s.Turn != nil && s.Turn.Step != nil && s.Turn.Step.ID == e.StepID {
			p.Attempt += s.Turn.Step.Attempts
		}
		told = len(t.hooksOf(s)) > 0
	})
	if !told {
		return
	}
	p.Request = t.request()
	t.tell(ctx, newHookEvent("beforeLLMCall", p,
		func(h *agentloop.Hooks) func(context.Context, *agentloop.HookContext, agentloop.BeforeLLMCallPayload) {
			return h.BeforeLLMCall
		}))
	t.mu.Lock()
	t.hooks.began[e.Key()] = t.l.now()
	t.mu.Unlock()
}
