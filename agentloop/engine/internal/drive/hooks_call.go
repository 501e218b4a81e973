package drive

import (
	"context"
	"errors"
	"runtime/debug"
	"time"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine/internal/backlog"
	"github.com/helixd/helixd/agentloop/internal/decide"
	"github.com/helixd/helixd/projector"
)

// tell calls the hooks of the task's session for an event.
func (t *task) tell(ctx context.Context, ev backlog.Event) {
	var handled bool
	t.look(func(s *projector.Session) { ev, handled = ev.For(t.hooks.Of(s)) })
	if handled {
		t.fire(ctx, ev)
	}
}

// callHooks says what is due, and what becomes due meanwhile.
func (t *task) callHooks(ctx context.Context) error {
	for ctx.Err() == nil {
		t.mu.Lock()
		ev, ok := t.hooks.Next(t.session)
		t.mu.Unlock()
		if !ok {
			return nil
		}
		t.fire(ctx, ev)
	}
	return context.Cause(ctx)
}

// fire calls the hooks of an event, one at a time for each session.
func (t *task) fire(ctx context.Context, ev backlog.Event) {
	unlock, err := t.hookLocks.Lock(ctx, t.session)
	if err != nil {
		return
	}
	defer unlock()
	for _, hooks := range ev.Chain {
		if ctx.Err() != nil {
			return
		}
		t.callHook(ctx, ev.Name, ev.Of(hooks))
	}
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
	t.host.Goroutines.Go(func() {
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

// beforeExecution calls the hooks for a call that is about to be executed. For calls that
// began together, it does so in the model's order.
func (t *task) beforeExecution(ctx context.Context, ev backlog.Event) {
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

// beforeModel calls the hooks for a model call that is about to be made.
func (t *task) beforeModel(ctx context.Context, e decide.CallModel) {
	handled := false
	t.look(func(s *projector.Session) { handled = len(t.hooks.Of(s)) > 0 })
	if !handled {
		return
	}
	t.tell(ctx, backlog.BeforeLLMCall(agentloop.BeforeLLMCallPayload{
		StepID: e.StepID, Step: e.Step, Attempt: t.attempt(e.StepID), Request: t.request(),
	}))
	t.mu.Lock()
	t.hooks.Begins(e.Key(), t.host.Millis())
	t.mu.Unlock()
}
