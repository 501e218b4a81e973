// Package tracing makes the spans of a session tree while a node holds it.
package tracing

import (
	"context"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/helixd/helixd/agentloop/internal/shorten"
)

// Attributes of spans that the conventions have no name for.
const (
	attrSession = attribute.Key("helix.session.id") // the agent's own; gen_ai.conversation.id is the root's
	attrRun     = attribute.Key("helix.run.id")
	attrRequest = attribute.Key("helix.request.id")
	attrMode    = attribute.Key("helix.run.mode")
	attrStatus  = attribute.Key("helix.run.status")
	attrAttempt = attribute.Key("helix.attempt") // of a run: its claims; of a model call: its tries; from 1
	attrNode    = attribute.Key("helix.node")
	attrStep    = attribute.Key("helix.step")
	attrReason  = attribute.Key("helix.reason")   // of an event
	attrFound   = attribute.Key("helix.memories") // of which an agent is reminded
	attrCalls   = attribute.Key("helix.calls")    // that a suspended run waits for
)

// Events of spans. A run that waits is suspended, and the run or the call that
// continues is resumed, maybe on another node; a run that this node does not end
// is released.
const (
	eventSuspended = "suspended"
	eventResumed   = "resumed"
	eventReleased  = "released"
	eventCancelled = "cancelled"
	eventRecalled  = "recalled" // when a turn begins
)

type tracedRoot struct{}

// RootOf returns the root session that a span belongs to, if it belongs to one.
func RootOf(ctx context.Context) (root string, ok bool) {
	root, ok = ctx.Value(tracedRoot{}).(string)
	return root, ok
}

// Tree are the spans of a tree while this node holds it. Spans of runs and of
// calls begin and end with the records that this node folds, so they cover every event,
// however it came about. A nil *Tree traces nothing.
type Tree struct {
	tracer  trace.Tracer
	content bool
	node    string
	root    string

	mu    sync.Mutex
	held  bool                // the tree is claimed
	runs  map[string]openSpan // by session
	calls map[string]openSpan // by call id, which is unique in the tree
}

type openSpan struct {
	trace.Span
	session string
}

// New returns the spans of a tree; nil if there is no tracer. With content,
// prompts, answers, arguments and results are recorded in them, shortened.
func New(tracer trace.Tracer, content bool, node, root string) *Tree {
	if tracer == nil {
		return nil
	}
	return &Tree{
		tracer: tracer, content: content, node: node, root: root, runs: map[string]openSpan{}, calls: map[string]openSpan{},
	}
}

// Context gives what a session's tasks do its place in the trace.
func (tr *Tree) Context(ctx context.Context, session string) context.Context {
	if tr == nil {
		return ctx
	}
	tr.mu.Lock()
	defer tr.mu.Unlock()
	ctx = context.WithValue(ctx, tracedRoot{}, tr.root)
	if run, ok := tr.runs[session]; ok {
		ctx = trace.ContextWithSpan(ctx, run)
	}
	return ctx
}

// start begins a span below the context's.
func (tr *Tree) start(ctx context.Context, name string, kind trace.SpanKind, attrs ...attribute.KeyValue) (context.Context, trace.Span) {
	attrs = append(attrs, semconv.GenAIConversationID(tr.root), semconv.SessionID(tr.root))
	return tr.tracer.Start(ctx, name, trace.WithSpanKind(kind), trace.WithAttributes(attrs...))
}

// failed marks a span. The text of an error may be a person's or a provider's,
// and is content.
func (tr *Tree) failed(span trace.Span, code, message string) {
	span.SetAttributes(semconv.ErrorTypeKey.String(code))
	if !tr.content {
		message = code
	}
	span.SetStatus(codes.Error, shorten.Text(message, maxTracedText))
}

// Release ends what is open: this node does not hold the tree any more, for a
// reason.
func (tr *Tree) Release(reason string) {
	if tr == nil {
		return
	}
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.held = false
	for id := range tr.calls {
		tr.endCall(id, eventReleased, attrReason.String(reason))
	}
	for session, run := range tr.runs {
		run.AddEvent(eventReleased, trace.WithAttributes(attrReason.String(reason)))
		run.End()
		delete(tr.runs, session)
	}
}
