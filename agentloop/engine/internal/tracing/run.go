package tracing

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/helixd/helixd/agentloop/engine/internal/runs"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
)

// Hold begins the spans of the runs that continue in a tree which this node has
// claimed. fresh is a run that no process has worked on. The caller holds the state.
func (tr *Tree) Hold(t *projector.Tree, fresh string) {
	if tr == nil {
		return
	}
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.held = true
	for _, s := range t.Sessions() {
		if _, begun := tr.runs[s.SessionID]; s.Running() && !begun && !remotely(s) {
			tr.begin(s, s.CurrentRun().RunID != fresh)
		}
	}
}

func remotely(s *projector.Session) bool { return s.Child != nil && s.Child.Remote }

// Note follows what was folded. The caller holds the state.
func (tr *Tree) Note(t *projector.Tree, rec eventlog.Record) {
	if tr == nil || rec.Kind != eventlog.KindFact || !ofTraces(rec.Type) {
		return
	}
	f, err := rec.Fact()
	if err != nil {
		return
	}
	tr.mu.Lock()
	defer tr.mu.Unlock()
	if !tr.held {
		return
	}
	switch f := f.(type) {
	case *fact.RunRequested:
		if s := t.Get(rec.Agent); s != nil && s.Running() && s.CurrentRun().RunID == f.RunID && !remotely(s) {
			tr.begin(s, false)
		}
	case *fact.RunEnded:
		tr.runEnded(t.Get(rec.Agent), rec.Agent, f)
	case *fact.CallSuspended:
		if f.Kind != fact.PendingChild {
			tr.endCall(f.ToolCallID, eventSuspended, attrReason.String(string(f.Kind)))
		}
	case *fact.ToolResult:
		tr.callResult(f)
	case *fact.MemoryRecalled:
		tr.recalled(rec.Agent, f)
	}
}

func ofTraces(typ string) bool {
	switch typ {
	case (*fact.RunRequested)(nil).Type(), (*fact.RunEnded)(nil).Type(),
		(*fact.CallSuspended)(nil).Type(), (*fact.ToolResult)(nil).Type(), (*fact.MemoryRecalled)(nil).Type():
		return true
	}
	return false
}

// recalled records of how many memories a run's agent was reminded, not their texts.
func (tr *Tree) recalled(session string, f *fact.MemoryRecalled) {
	run, ok := tr.runs[session]
	if !ok {
		return
	}
	attrs := []attribute.KeyValue{attrFound.Int(len(f.Memories))}
	if f.Error != "" {
		attrs = append(attrs, semconv.ErrorTypeOther)
	}
	run.AddEvent(eventRecalled, trace.WithAttributes(attrs...))
}

// begin begins the span of a session's last run; taken is one that was begun
// before, here or at another node.
func (tr *Tree) begin(s *projector.Session, taken bool) {
	tr.endRun(s.SessionID) // one that died without a word
	run := s.CurrentRun()
	ctx := context.WithValue(context.Background(), tracedRoot{}, tr.root)
	if c := s.Child; c != nil { // below the call that made it, otherwise below its parent's run
		if call, ok := tr.calls[c.CallID]; ok {
			ctx = trace.ContextWithSpan(ctx, call)
		} else if parent, ok := tr.runs[c.ParentSessionID]; ok {
			ctx = trace.ContextWithSpan(ctx, parent)
		}
	}
	attrs := []attribute.KeyValue{
		semconv.GenAIOperationNameInvokeAgent, semconv.GenAIAgentName(s.AgentType), semconv.GenAIConversationID(tr.root),
		semconv.SessionID(tr.root), attrSession.String(s.SessionID), attrRun.String(run.RunID), attrMode.String(string(run.Mode)),
		attrNode.String(tr.node),
	}
	if run.Claims > 0 { // a sub-agent's run is claimed with its root's
		attrs = append(attrs, attrAttempt.Int(run.Claims))
	}
	if run.RequestID != "" {
		attrs = append(attrs, attrRequest.String(run.RequestID))
	}
	options := []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindInternal), trace.WithAttributes(attrs...)}
	if from := linkOf(run.TraceParent); from.IsValid() {
		options = append(options, trace.WithLinks(trace.Link{SpanContext: from}))
	}
	_, span := tr.tracer.Start(ctx, "invoke_agent "+s.AgentType, options...)
	switch {
	case taken:
		span.AddEvent(eventResumed, trace.WithAttributes(attrReason.String("takeover")))
	case run.Mode != fact.ModeStart:
		span.AddEvent(eventResumed, trace.WithAttributes(attrReason.String(runs.SuspendedFor(s)), attrMode.String(string(run.Mode))))
	}
	if tr.content && span.IsRecording() {
		span.SetAttributes(inputOf(s, run))
	}
	tr.runs[s.SessionID] = openSpan{Span: span, session: s.SessionID}
}

// runEnded ends a run's span, and those of calls that have not come to an end.
func (tr *Tree) runEnded(s *projector.Session, session string, f *fact.RunEnded) {
	run, ok := tr.runs[session]
	if !ok {
		return
	}
	run.SetAttributes(attrStatus.String(string(f.Status)))
	switch f.Status {
	case fact.RunCompleted:
		if tr.content && run.IsRecording() {
			run.SetAttributes(outputOf(f.Output))
		}
	case fact.RunFailed:
		tr.failed(run, f.ErrorCode, f.Error)
	default:
		attrs := []attribute.KeyValue{attrReason.String(runs.SuspensionReason(f.Status))}
		if calls := awaitedOf(s); len(calls) > 0 {
			attrs = append(attrs, attrCalls.StringSlice(calls))
		}
		run.AddEvent(eventSuspended, trace.WithAttributes(attrs...))
	}
	tr.endRun(session)
}

// awaitedOf are the calls of a session that wait for a person.
func awaitedOf(s *projector.Session) (calls []string) {
	if s == nil {
		return nil
	}
	for c := range s.OpenCalls() {
		if c.Awaited() {
			calls = append(calls, c.ID)
		}
	}
	return calls
}

// endRun ends what is open of a session.
func (tr *Tree) endRun(session string) {
	for id, call := range tr.calls {
		if call.session == session {
			tr.endCall(id, eventSuspended)
		}
	}
	if run, ok := tr.runs[session]; ok {
		run.End()
		delete(tr.runs, session)
	}
}

// Parent is a request's place in its caller's trace, as the header
// traceparent has it (W3C Trace Context), or "". The trace of a session links
// to it.
func Parent(ctx context.Context) string {
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier.Get("traceparent")
}

func linkOf(parent string) trace.SpanContext {
	carrier := propagation.MapCarrier{"traceparent": parent}
	return trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), carrier))
}
