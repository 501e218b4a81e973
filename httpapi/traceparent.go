package httpapi

import (
	"net/http"

	"go.opentelemetry.io/otel/propagation"
)

// traced gives a request the place in its caller's trace that its header
// traceparent tells (W3C Trace Context): the traces of the runs that it asks
// for link to it.
func traced(r *http.Request) *http.Request {
	if r.Header.Get("traceparent") == "" {
		return r
	}
	return r.WithContext(propagation.TraceContext{}.Extract(r.Context(), propagation.HeaderCarrier(r.Header)))
}
