package control

import (
	"errors"
	"fmt"

	"github.com/helixd/helixd/eventlog"
)

// Errors of the routes that change a session.
var (
	ErrNotStopped = errors.New("httpapi: the run has not stopped in time")
	ErrMismatch   = errors.New("httpapi: idempotency key of another request")
	ErrKeyExpired = errors.New("httpapi: idempotency key used too long ago")
	ErrNoMemories = errors.New("httpapi: no memories here")
)

// ChunkError: the chunk at Index of the body, from 0, is not valid.
type ChunkError struct {
	Index   int
	Problem *eventlog.ValidationError
}

func (e *ChunkError) Error() string { return fmt.Sprintf("httpapi: chunk %d: %v", e.Index, e.Problem) }
