package httpapi

import (
	"errors"
	"fmt"

	"github.com/helixd/helixd/eventlog"
)

// Errors of the routes that change a session.
var (
	errNotStopped = errors.New("httpapi: the run has not stopped in time")
	errMismatch   = errors.New("httpapi: idempotency key of another request")
	errKeyExpired = errors.New("httpapi: idempotency key used too long ago")
	errNoMemories = errors.New("httpapi: no memories here")
)

// chunkError tells which chunk of a body is not valid, from 0.
type chunkError struct {
	index   int
	problem *eventlog.ValidationError
}

func (e *chunkError) Error() string { return fmt.Sprintf("httpapi: chunk %d: %v", e.index, e.problem) }
