package web

import (
	"errors"
	"net/http"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/httpapi/api"
)

// IdempotencyKey returns the key of a request that may be repeated, or "". The error is a
// *eventlog.ValidationError.
func IdempotencyKey(h http.Header) (string, error) {
	v := h.Values(api.HeaderIdempotency)
	switch {
	case len(v) == 0:
		return "", nil
	case len(v) > 1:
		return "", Invalid(api.HeaderIdempotency, "is given twice")
	}
	if problem, bad := errors.AsType[*eventlog.ValidationError](eventlog.ValidateID(v[0])); bad {
		return "", Invalid(api.HeaderIdempotency, problem.Reason)
	}
	return v[0], nil
}
