package httpapi

import (
	"net/http"

	"go.opentelemetry.io/otel/propagation"
)

// traced puts the span of the header traceparent (W3C Trace Context) into the request's
// context: the traces of the runs that the request begins link to it.
func traced(r *http.Request) *http.Request {
	if r.Header.Get("traceparent") == "" {
		return r
	}
	return r.WithContext(propagation.TraceContext{}.Extract(r.Context(), propagation.HeaderCarrier(r.Header)))
}
