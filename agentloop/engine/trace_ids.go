package engine

import (
	"context"
	"crypto/rand"
	"crypto/sha256"

	"go.opentelemetry.io/otel/trace"

	"github.com/helixd/helixd/agentloop/engine/internal/tracing"
)

// TraceID is the id of a root session's trace: the first 16 bytes of the
// SHA-256 of its id. So a conversation is one trace, on any number of
// nodes and for any time.
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
	if root, ok := tracing.RootOf(ctx); ok {
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
