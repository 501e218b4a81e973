package engine

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/internal/shorten"
	"github.com/helixd/helixd/eventlog"
)

// Attributes of spans that the conventions have no name for.
const (
	attrSession = attribute.Key("helix.session.id") // the agent's own; gen_ai.conversation.id is the root's
	attrRun     = attribute.Key("helix.run.id")
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
// goes on is resumed, maybe on another node; a run that this node does not end
// is released.
const (
	eventSuspended = "suspended"
	eventResumed   = "resumed"
	eventReleased  = "released"
	eventCancelled = "cancelled"
	eventRecalled  = "recalled" // when a turn begins
)

// TraceID is the id of a root session's trace: the first 16 bytes of the
// SHA-256 of its id. So a conversation is one trace, whichever nodes work on
// it and however long it takes.
func TraceID(root string) trace.TraceID {
	sum := sha256.Sum256([]byte(root))
	return trace.TraceID(sum[:16])
}

// TraceIDs gives the spans of a loop the trace id of their root session; other
// spans get random ones. It is an IDGenerator of OpenTelemetry's SDK, for
// sdktrace.WithIDGenerator.
type TraceIDs struct{}

// NewIDs returns the ids of a span that has no parent.
func (ids TraceIDs) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	var id trace.TraceID
	if root, ok := ctx.Value(tracedRoot{}).(string); ok {
		id = TraceID(root)
	} else {
		rand.Read(id[:]) //nolint:errcheck // never fails
	}
	return id, ids.NewSpanID(ctx, id)
}

// NewSpanID returns the id of a further span of a trace.
func (TraceIDs) NewSpanID(context.Context, trace.TraceID) (id trace.SpanID) {
	rand.Read(id[:]) //nolint:errcheck // never fails
	return id
}

type tracedRoot struct{}

// traces are the spans of a tree while this node holds it. Spans of runs and of
// calls begin and end with the records that this node folds, so whatever way a
// thing came about, it is seen. A nil *traces traces nothing.
type traces struct {
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

func (l *Loop) newTraces(root string) *traces {
	if l.opts.Tracer == nil {
		return nil
	}
	return &traces{
		tracer: l.opts.Tracer, content: l.opts.TraceContent, node: l.opts.Node, root: root,
		runs: map[string]openSpan{}, calls: map[string]openSpan{},
	}
}

// context gives what a session's tasks do its place in the trace.
func (tr *traces) context(ctx context.Context, session string) context.Context {
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
func (tr *traces) start(ctx context.Context, name string, kind trace.SpanKind, attrs ...attribute.KeyValue) (context.Context, trace.Span) {
	attrs = append(attrs, semconv.GenAIConversationID(tr.root), semconv.SessionID(tr.root))
	return tr.tracer.Start(ctx, name, trace.WithSpanKind(kind), trace.WithAttributes(attrs...))
}

// failed marks a span. The text of an error may be a person's or a provider's,
// and is content.
func (tr *traces) failed(span trace.Span, code, message string) {
	span.SetAttributes(semconv.ErrorTypeKey.String(code))
	if !tr.content {
		message = code
	}
	span.SetStatus(codes.Error, shorten.Text(message, maxTracedText))
}

// release ends what is open: this node does not hold the tree any more.
func (tr *traces) release(err error) {
	if tr == nil {
		return
	}
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.held = false
	for id := range tr.calls {
		tr.endCall(id, eventReleased, attrReason.String(releasedFor(err)))
	}
	for session, run := range tr.runs {
		run.AddEvent(eventReleased, trace.WithAttributes(attrReason.String(releasedFor(err))))
		run.End()
		delete(tr.runs, session)
	}
}

func releasedFor(err error) string {
	switch {
	case err == nil:
		return "at_rest"
	case errors.Is(err, errHandedOver):
		return "handed_over"
	case errors.Is(err, agentloop.ErrStopping):
		return "stopping"
	case errors.Is(err, eventlog.ErrSuperseded):
		return "superseded"
	case errors.Is(err, eventlog.ErrSessionNotFound):
		return "erased"
	}
	return "broken_off"
}
