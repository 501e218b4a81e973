package engine

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/internal/decide"
	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
)

// modelSpan is the span of one call of a model.
type modelSpan struct {
	trace.Span
	tr *traces
}

// traceModel begins the span of a model call.
func (t *task) traceModel(ctx context.Context, e decide.CallModel, req model.Request) (context.Context, modelSpan) {
	tr := t.traces
	if tr == nil || t.def == nil {
		return ctx, modelSpan{Span: noop.Span{}}
	}
	name := model.NameOf(t.def.Model)
	attrs := append(t.spanAttributes(), semconv.GenAIOperationNameChat, attrStep.Int(e.Step), attrAttempt.Int(t.attempt(e.StepID)))
	title := "chat"
	if name != "" {
		title += " " + name
		attrs = append(attrs, semconv.GenAIRequestModel(name))
	}
	if provider := model.ProviderOf(t.def.Model); provider != "" {
		attrs = append(attrs, semconv.GenAIProviderNameKey.String(provider))
	}
	ctx, span := tr.start(ctx, title, trace.SpanKindClient, attrs...)
	if tr.content && span.IsRecording() {
		span.SetAttributes(requestContent(req)...)
	}
	return ctx, modelSpan{Span: span, tr: tr}
}

// answered says what the model has said.
func (m modelSpan) answered(done model.Answer, parts []eventlog.TurnPart) {
	if m.tr == nil {
		return
	}
	u := done.Usage
	m.SetAttributes(
		semconv.GenAIResponseModel(done.Model), semconv.GenAIResponseFinishReasons(string(done.StopReason.FinishReason())),
		semconv.GenAIUsageInputTokens(int(u.Prompt)), semconv.GenAIUsageOutputTokens(int(u.Completion)),
	)
	for key, n := range map[attribute.Key]int64{
		semconv.GenAIUsageCacheReadInputTokensKey: u.Cached, semconv.GenAIUsageCacheCreationInputTokensKey: u.CacheWrite,
		semconv.GenAIUsageReasoningOutputTokensKey: u.Reasoning,
	} {
		if n > 0 {
			m.SetAttributes(key.Int64(n))
		}
	}
	if m.tr.content && m.IsRecording() {
		m.SetAttributes(answerContent(done, parts))
	}
}

func (m modelSpan) failed(failure *model.Error) {
	if m.tr != nil {
		m.tr.failed(m, failure.Code, failure.Message)
	}
}

// brokeOff says that nothing was made of the answer.
func (m modelSpan) brokeOff(err error) {
	switch {
	case m.tr == nil:
	case errors.Is(err, errUnwanted):
		m.AddEvent(eventCancelled)
	case errors.Is(err, agentloop.ErrStopping):
		m.AddEvent(eventReleased, trace.WithAttributes(attrReason.String(releasedFor(err))))
	default:
		m.tr.failed(m, agentloop.CodeInternal, agentloop.CodeInternal)
	}
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

// traceCall begins the span of a tool call, which ends when its result is
// recorded, or when it waits for a person.
func (t *task) traceCall(ctx context.Context, c *toolCall, call projector.Call) context.Context {
	tr := t.traces
	if tr == nil {
		return ctx
	}
	tr.mu.Lock()
	defer tr.mu.Unlock()
	if open, ok := tr.calls[c.ID]; ok && call.Pending != nil { // what it waited for has come
		return trace.ContextWithSpan(ctx, open)
	}
	tr.endCall(c.ID, eventCancelled) // it is made again
	ctx, span := tr.start(ctx, "execute_tool "+c.ToolName, trace.SpanKindInternal, append(t.spanAttributes(),
		semconv.GenAIOperationNameExecuteTool, semconv.GenAIToolName(c.ToolName), semconv.GenAIToolCallID(c.ID), attrStep.Int(c.step),
	)...)
	if call.Pending != nil {
		span.AddEvent(eventResumed, trace.WithAttributes(attrReason.String(string(call.Pending.Kind))))
	}
	if tr.content && span.IsRecording() {
		span.SetAttributes(semconv.GenAIToolCallArgumentsKey.String(tracedText(string(call.Arguments))))
	}
	tr.calls[c.ID] = openSpan{Span: span, session: t.session}
	return ctx
}

// spanAttributes name the agent and its run.
func (t *task) spanAttributes() []attribute.KeyValue {
	attrs := []attribute.KeyValue{attrSession.String(t.session), attrRun.String(t.runID)}
	if t.def != nil {
		attrs = append(attrs, semconv.GenAIAgentName(t.def.Name))
	}
	return attrs
}

// callResult ends a call's span. The caller has the lock.
func (tr *traces) callResult(f *eventlog.ToolResult) {
	call, ok := tr.calls[f.ToolCallID]
	if !ok {
		return
	}
	switch {
	case f.ErrorCode != "" || f.Error != "":
		tr.failed(call, f.ErrorCode, f.Error)
	case tr.content && call.IsRecording():
		call.SetAttributes(semconv.GenAIToolCallResultKey.String(tracedText(string(f.Result))))
	}
	tr.endCall(f.ToolCallID, "")
}

// endCall ends a call's span if it is open, with an event unless that is "".
// The caller has the lock.
func (tr *traces) endCall(id, event string, attrs ...attribute.KeyValue) {
	call, ok := tr.calls[id]
	if !ok {
		return
	}
	if event != "" {
		call.AddEvent(event, trace.WithAttributes(attrs...))
	}
	call.End()
	delete(tr.calls, id)
}
