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
func (r *runner) callModel(ctx context.Context, e CallModel) error {
	if err := wait(ctx, e.After); err != nil {
		return err
	}
	a := &answer{r: r, stepID: e.StepID, step: e.Step, calls: map[int]*callText{}, ids: map[string]bool{}}
	done, err := r.generate(ctx, a)
	if err == nil && a.err == nil {
		a.err = a.close(ctx, true)
	}
	// What has streamed is durable and folded before anything is made of it,
	// and also when the run is stopped.
	flushed := r.flush(ctx)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case a.err != nil:
		return a.err
	case flushed != nil:
		return flushed
	case err != nil:
		return r.modelFailed(ctx, e, asModelError(err))
	}
	run := r.runID()
	return a.commit(ctx, fact{run: run, f: &eventlog.ModelTurn{
		RunID: run, StepID: e.StepID, Step: e.Step, Model: done.Model, Parts: a.turnParts(),
		StopReason: done.StopReason, Usage: done.Usage, FactBase: r.l.factBase(r.session),
	}})
}

// generate calls the model. A panic of its adapter is a failed call.
func (r *runner) generate(ctx context.Context, a *answer) (done model.Answer, err error) {
	defer func() {
		if p := recover(); p != nil {
			r.l.opts.Logger.Error("model panicked", "session", r.session, "panic", p, "stack", string(debug.Stack()))
			err = &model.Error{Code: CodeInternal, Message: "the model's adapter failed"}
		}
	}()
	return r.def.Model.Generate(ctx, r.request(), func(ev model.Event) error {
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

func (r *runner) modelFailed(ctx context.Context, e CallModel, failure *model.Error) error {
	r.mu.RLock()
	run, attempt := r.tree.Turn.RunID, 1
	if step := r.tree.Turn.Step; step != nil && step.ID == e.StepID {
		attempt += step.Attempts
	}
	r.mu.RUnlock()
	r.l.opts.Logger.Warn("model call failed", "session", r.session, "code", failure.Code, "attempt", attempt,
		"retryable", failure.Retryable)
	return r.append(ctx, fact{run: run, f: &eventlog.ModelFailed{
		RunID: run, StepID: e.StepID, Step: e.Step, Attempt: attempt,
		Error: failure.Message, Code: failure.Code, Retryable: failure.Retryable, FactBase: r.l.factBase(r.session),
	}})
}

// request is the conversation so far, as a model takes it.
func (r *runner) request() model.Request {
	r.mu.RLock()
	defer r.mu.RUnlock()
	req := model.Request{System: r.def.SystemPrompt, Tools: r.def.specs}
	for _, m := range r.tree.Messages {
		switch m.Role {
		case projector.RoleUser:
			req.Messages = append(req.Messages, model.Message{Role: model.RoleUser, Content: m.Content, Files: m.Files})
		case projector.RoleAssistant:
			out := model.Message{Role: model.RoleAssistant, Content: m.Content}
			for _, p := range m.Parts {
				out.Reasoning += p.Reasoning
				if p.ToolCall != nil {
					out.ToolCalls = append(out.ToolCalls, *p.ToolCall)
				}
			}
			req.Messages = append(req.Messages, out)
		case projector.RoleTool:
			content := string(m.Result)
			if m.Error != "" {
				content = "Error: " + m.Error
			}
			req.Messages = append(req.Messages, model.Message{
				Role: model.RoleTool, Content: content, ToolCallID: m.ToolCallID, ToolName: m.ToolName,
			})
		}
	}
	return req
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
