package agentloop

import (
	"context"
	"errors"
	"runtime/debug"
	"time"

	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
)

// callModel asks for one answer, streams it into the log and records it.
func (t *task) callModel(ctx context.Context, e CallModel) error {
	if err := wait(ctx, e.After); err != nil {
		return err
	}
	t.beforeModel(ctx, e)
	a := &answer{r: t, stepID: e.StepID, step: e.Step, calls: map[int]*callText{}, ids: map[string]bool{}}
	done, err := t.generate(ctx, a)
	if err == nil && a.err == nil {
		a.err = a.close(ctx, true)
	}
	// What has streamed is durable and folded before anything is made of it,
	// and also when the run is stopped.
	flushed := t.flush(ctx)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case a.err != nil:
		return a.err
	case flushed != nil:
		return flushed
	case err != nil:
		return t.modelFailed(ctx, e, asModelError(err))
	}
	return a.commit(ctx, t.fact(&eventlog.ModelTurn{
		RunID: t.runID, StepID: e.StepID, Step: e.Step, Model: done.Model, Parts: a.turnParts(),
		StopReason: done.StopReason, Usage: done.Usage, FactBase: t.factBase(),
	}))
}

// generate calls the model. A panic of its adapter is a failed call.
func (t *task) generate(ctx context.Context, a *answer) (done model.Answer, err error) {
	defer func() {
		if p := recover(); p != nil {
			t.l.opts.Logger.Error("model panicked", "session", t.session, "panic", p, "stack", string(debug.Stack()))
			err = &model.Error{Code: CodeInternal, Message: "the model's adapter failed"}
		}
	}()
	return t.def.Model.Generate(ctx, t.request(), func(ev model.Event) error {
		if a.err == nil {
			a.err = a.add(ctx, ev)
		}
		return a.err
	})
}

// asModelError classifies what an adapter should have classified.
func asModelError(err error) *model.Error {
	if failure, ok := errors.AsType[*model.Error](err); ok {
		return failure
	}
	return &model.Error{Code: model.CodeProvider, Message: cut(err.Error()), Cause: err}
}

func (t *task) modelFailed(ctx context.Context, e CallModel, failure *model.Error) error {
	attempt := 1
	t.look(func(s *projector.Session) {
		if step := s.Turn.Step; step != nil && step.ID == e.StepID {
			attempt += step.Attempts
		}
	})
	t.l.opts.Logger.Warn("model call failed", "session", t.session, "code", failure.Code, "attempt", attempt,
		"retryable", failure.Retryable)
	return t.append(ctx, t.fact(&eventlog.ModelFailed{
		RunID: t.runID, StepID: e.StepID, Step: e.Step, Attempt: attempt,
		Error: failure.Message, Code: failure.Code, Retryable: failure.Retryable, FactBase: t.factBase(),
	}))
}

func wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
