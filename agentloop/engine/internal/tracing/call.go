package tracing

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
)

// Agent is the agent that a span is about.
type Agent struct{ Session, Run, Name string } // agent: its name; empty: it is not here

func (a Agent) attributes() []attribute.KeyValue {
	attrs := []attribute.KeyValue{attrSession.String(a.Session), attrRun.String(a.Run)}
	if a.Name != "" {
		attrs = append(attrs, semconv.GenAIAgentName(a.Name))
	}
	return attrs
}

// ModelSpan is the span of one call of a model.
type ModelSpan struct {
	trace.Span
	tr *Tree
}

// Model begins the span of a model call. An attempt counts from 1.
func (tr *Tree) Model(ctx context.Context, of Agent, m model.Model, step, attempt int, req model.Request) (context.Context, ModelSpan) {
	if tr == nil || of.Name == "" {
		return ctx, ModelSpan{Span: noop.Span{}}
	}
	name := model.NameOf(m)
	attrs := append(of.attributes(), semconv.GenAIOperationNameChat, attrStep.Int(step), attrAttempt.Int(attempt))
	title := "chat"
	if name != "" {
		title += " " + name
		attrs = append(attrs, semconv.GenAIRequestModel(name))
	}
	if provider := model.ProviderOf(m); provider != "" {
		attrs = append(attrs, semconv.GenAIProviderNameKey.String(provider))
	}
	ctx, span := tr.start(ctx, title, trace.SpanKindClient, attrs...)
	if tr.content && span.IsRecording() {
		span.SetAttributes(requestContent(req)...)
	}
	return ctx, ModelSpan{Span: span, tr: tr}
}

// Answered records the model's answer.
func (m ModelSpan) Answered(done model.Answer, parts []fact.TurnPart) {
	if m.tr == nil {
		return
	}
	u := done.Usage
	m.SetAttributes(
		semconv.GenAIResponseModel(done.Model), semconv.GenAIResponseFinishReasons(string(eventlog.FinishReasonOf(done.StopReason))),
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

// Fail marks a call that has failed.
func (m ModelSpan) Fail(code, message string) {
	if m.tr != nil {
		m.tr.failed(m, code, message)
	}
}

// Cancelled records that the answer is not needed any more.
func (m ModelSpan) Cancelled() {
	if m.tr != nil {
		m.AddEvent(eventCancelled)
	}
}

// Released says that this node does not wait for the answer any more, for a reason.
func (m ModelSpan) Released(reason string) {
	if m.tr != nil {
		m.AddEvent(eventReleased, trace.WithAttributes(attrReason.String(reason)))
	}
}

// Call begins the span of a tool call, which ends when its result is recorded, or
// when it waits for a person.
func (tr *Tree) Call(ctx context.Context, of Agent, step int, call projector.Call) context.Context {
	if tr == nil {
		return ctx
	}
	tr.mu.Lock()
	defer tr.mu.Unlock()
	if open, ok := tr.calls[call.ID]; ok && call.Pending != nil { // what it waited for has come
		return trace.ContextWithSpan(ctx, open)
	}
	tr.endCall(call.ID, eventCancelled) // it is made again
	ctx, span := tr.start(ctx, "execute_tool "+call.Name, trace.SpanKindInternal, append(of.attributes(),
		semconv.GenAIOperationNameExecuteTool, semconv.GenAIToolName(call.Name), semconv.GenAIToolCallID(call.ID), attrStep.Int(step),
	)...)
	if call.Pending != nil {
		span.AddEvent(eventResumed, trace.WithAttributes(attrReason.String(string(call.Pending.Kind))))
	}
	if tr.content && span.IsRecording() {
		span.SetAttributes(semconv.GenAIToolCallArgumentsKey.String(tracedText(string(call.Arguments))))
	}
	tr.calls[call.ID] = openSpan{Span: span, session: of.Session}
	return ctx
}

// callResult ends a call's span. The caller has the lock.
func (tr *Tree) callResult(f *fact.ToolResult) {
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
func (tr *Tree) endCall(id, event string, attrs ...attribute.KeyValue) {
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
