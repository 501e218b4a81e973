package web

import (
	"context"
	"log/slog"
	"net/http"
	"regexp"

	"github.com/oklog/ulid/v2"
	"go.opentelemetry.io/otel/trace"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/httpapi/api"
)

// requestIDPattern: ids that clients may choose, which need no escaping in headers and logs.
var requestIDPattern = regexp.MustCompile(`^[A-Za-z0-9._-]{1,128}$`)

type requestIDKey struct{}

// RequestID returns the id of the request that the context belongs to, or "".
// An [auth.Authenticator] gets it from its request's context.
func RequestID(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey{}).(string)
	return id
}

// WithID gives a request its id: the client's if that is well formed, else the id of the trace
// that the request's context belongs to, else a new ULID. The answer's header has it.
func WithID(w http.ResponseWriter, r *http.Request) *http.Request {
	var id string
	if given := r.Header.Values(api.HeaderRequestID); len(given) == 1 && requestIDPattern.MatchString(given[0]) {
		id = given[0]
	} else if trace := trace.SpanContextFromContext(r.Context()).TraceID(); trace.IsValid() {
		id = trace.String()
	} else {
		id = ulid.Make().String()
	}
	w.Header().Set(api.HeaderRequestID, id)
	return r.WithContext(context.WithValue(r.Context(), requestIDKey{}, id))
}

// WithRequestID returns a handler that adds the request's id to each line that is logged
// with the request's context, in any package.
func WithRequestID(h slog.Handler) slog.Handler {
	if _, does := h.(requestLog); does {
		return h
	}
	return requestLog{h}
}

type requestLog struct{ slog.Handler }

func (h requestLog) Handle(ctx context.Context, line slog.Record) error {
	if id := RequestID(ctx); id != "" {
		line = line.Clone()
		line.AddAttrs(slog.String(eventlog.LogRequestID, id))
	}
	return h.Handler.Handle(ctx, line)
}

func (h requestLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	return requestLog{h.Handler.WithAttrs(attrs)}
}

func (h requestLog) WithGroup(name string) slog.Handler {
	return requestLog{h.Handler.WithGroup(name)}
}
