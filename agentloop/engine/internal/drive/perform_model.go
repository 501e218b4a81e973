package drive

import (
	"context"
	"errors"
	"runtime/debug"
	"time"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/conversation"
	"github.com/helixd/helixd/agentloop/engine/internal/metrics"
	"github.com/helixd/helixd/agentloop/engine/internal/tracing"
	"github.com/helixd/helixd/agentloop/internal/decide"
	"github.com/helixd/helixd/agentloop/internal/shorten"
	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/upstream"
	"github.com/helixd/helixd/agentloop/quota"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
)

// callModel asks for one answer, streams it into the log and records it.
func (t *task) callModel(ctx context.Context, e decide.CallModel) error {
	if again, err := t.backOff(ctx, t.pause(e)); !again {
		return err
	}
	t.beforeModel(ctx, e)
	a := &modelAnswer{r: t, stepID: e.StepID, step: e.Step, calls: map[int]*callText{}, ids: map[string]bool{}}
	req := t.request()
	held, err := t.reserve(ctx, req)
	if spent, is := errors.AsType[*quota.Exceeded](err); is {
		return t.modelFailed(ctx, e, overBudget(spent))
	} else if err != nil {
		return err
	}
	ctx, span := t.traces.Model(ctx, t.traced(), t.def.Model, e.Step, t.attempt(e.StepID), req)
	defer span.End()
	measured := t.host.Metrics.ModelCall(t.def)
	done, err := t.generate(ctx, req, a, measured)
	measured.Ended(modelOutcome(ctx, a, err))
	// Before the answer is recorded: no step has a record and an open reservation.
	t.settleBudget(ctx, held, a.spent(ctx, req, done, err), done.Model)
	if err == nil && a.err == nil {
		a.err = a.close(ctx)
	}
	// What has streamed is durable and folded before anything is made of it,
	// and also when the run is stopped.
	flushed := t.flush(ctx)
	switch {
	case ctx.Err() != nil:
		brokeOff(span, context.Cause(ctx))
		return context.Cause(ctx)
	case a.err != nil:
		brokeOff(span, a.err)
		return a.err
	case flushed != nil:
		brokeOff(span, flushed)
		return flushed
	case err != nil:
		failure := asModelError(err)
		span.Fail(failure.Code, failure.Message)
		return t.modelFailed(ctx, e, failure)
	}
	span.Answered(done, a.turnParts(done.StopReason))
	return a.commit(ctx, t.fact(&fact.ModelTurn{
		RunID: t.runID, StepID: e.StepID, Step: e.Step, Model: done.Model, Parts: a.turnParts(done.StopReason),
		StopReason: done.StopReason, Usage: done.Usage, Base: t.factBase(),
	}))
}

// pause is how long to wait before a model call: longer than was decided if the provider has asked for
// that, which this node alone knows.
func (t *task) pause(e decide.CallModel) time.Duration {
	if e.After == 0 { // it is no repetition
		return 0
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	return max(e.After, time.Until(t.notBefore[t.session]))
}

// backOff waits before a model call. It reports false if the call should not be made here: the node
// drains, and another one makes it after the same pause.
func (t *task) backOff(ctx context.Context, d time.Duration) (again bool, err error) {
	if d <= 0 {
		return true, nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	for drains := t.host.Drains; ; drains = nil {
		select {
		case <-timer.C:
			return true, nil
		case <-drains:
			if t.host.HandsOver(t.agent) {
				return false, nil // the driver decides again, and hands over
			}
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
}

// request is the conversation so far, as a model takes it.
func (t *task) request() model.Request {
	t.mu.RLock()
	defer t.mu.RUnlock()
	s := t.tree.Get(t.session)
	system := t.def.SystemPrompt
	if s.SystemPrompt != nil {
		system = *s.SystemPrompt
	}
	if s.Turn != nil {
		system = conversation.System(system, s.Turn.Instructions, s.Messages)
	}
	return model.Request{Session: t.session, System: system, Tools: t.def.Specs, Messages: conversation.ForModel(s.Messages)}
}

// generate calls the model. A panic of its adapter is a failed call.
func (t *task) generate(ctx context.Context, req model.Request, a *modelAnswer, measured *metrics.ModelCall) (done model.Answer, err error) {
	defer func() {
		if p := recover(); p != nil {
			t.logger().Error("model panicked", "panic", p, "stack", string(debug.Stack()))
			err = &model.Error{Code: agentloop.CodeInternal, Message: "the model's adapter failed"}
		}
	}()
	done, err = t.def.Model.Generate(ctx, req, func(ev model.Event) error {
		measured.Speaks()
		if a.err == nil {
			a.err = a.add(ctx, ev)
		}
		return a.err
	})
	if refused, is := errors.AsType[*model.Error](a.err); is {
		a.err, err = nil, refused
	}
	return done, err
}

// modelOutcome says what has become of a model's call, for Metrics.
func modelOutcome(ctx context.Context, a *modelAnswer, err error) string {
	switch {
	case ctx.Err() == nil && a.err != nil && unrecordable(a.err): // the adapter's mistake
		return metrics.Outcome(agentloop.CodeInternal)
	case ctx.Err() != nil, a.err != nil:
		return "cut_off"
	case err != nil:
		return metrics.Outcome(asModelError(err).Code)
	}
	return metrics.Outcome("")
}

// asModelError classifies what an adapter should have classified.
func asModelError(err error) *model.Error {
	if failure, ok := errors.AsType[*model.Error](err); ok {
		return failure
	}
	return &model.Error{Code: model.CodeProvider, Message: shorten.Error(err.Error()), Cause: err}
}

func (t *task) modelFailed(ctx context.Context, e decide.CallModel, failure *model.Error) error {
	attempt := t.attempt(e.StepID)
	if failure.RetryAfter > 0 {
		t.mu.Lock()
		t.notBefore[t.session] = time.Now().Add(failure.RetryAfter)
		t.mu.Unlock()
	}
	t.logger().Warn("model call failed", append([]any{"model", model.NameOf(t.def.Model), "code", failure.Code, "attempt", attempt,
		"retryable", failure.Retryable}, upstream.Attrs(failure)...)...)
	return t.append(ctx, t.fact(&fact.ModelFailed{
		RunID: t.runID, StepID: e.StepID, Step: e.Step, Attempt: attempt,
		Error: failure.Message, Code: failure.Code, Retryable: failure.Retryable, Base: t.factBase(),
	}))
}

// attempt is the number of a model call's next try, from 1.
func (t *task) attempt(stepID string) int {
	n := 1
	t.look(func(s *projector.Session) {
		if s != nil && s.Turn != nil && s.Turn.Step != nil && s.Turn.Step.ID == stepID {
			n += s.Turn.Step.Attempts
		}
	})
	return n
}

// traced is the agent that a span of the task is about.
func (t *task) traced() tracing.Agent {
	of := tracing.Agent{Session: t.session, Run: t.runID}
	if t.def != nil {
		of.Name = t.def.Name
	}
	return of
}

// brokeOff says that nothing was made of a model's answer.
func brokeOff(span tracing.ModelSpan, err error) {
	switch {
	case errors.Is(err, errUnwanted):
		span.Cancelled()
	case errors.Is(err, agentloop.ErrStopping):
		span.Released(releasedFor(err))
	default:
		span.Fail(agentloop.CodeInternal, agentloop.CodeInternal)
	}
}
