package remote

import (
	"errors"
	"fmt"
	"time"
)

// Errors that callers branch on.
var (
	// ErrUnreachable: a request was not answered, or not to the end. It may
	// have been carried out.
	ErrUnreachable = errors.New("remote: the agent server does not answer")
	// ErrStreamDropped: a stream broke off, or was silent for too long,
	// before its last event.
	ErrStreamDropped = errors.New("remote: the stream broke off")
	// ErrOutOfOrder: the sequences of one connection go back.
	ErrOutOfOrder = errors.New("remote: the stream is out of order")
	// ErrMalformed: an answer or event is not of the protocol's form; perhaps
	// it is not an agent server that answers.
	ErrMalformed = errors.New("remote: not an agent server's answer")
	// ErrTooLarge: an answer or event has more bytes than are accepted.
	ErrTooLarge = errors.New("remote: the answer is too large")
)

// Codes of refusals.
const (
	codeAlreadyCompleted = "ALREADY_COMPLETED"
	codeAlreadyRunning   = "ALREADY_RUNNING"
)

// Error is an error answer of the server.
type Error struct {
	Status  int    // of HTTP
	Code    string // empty if the answer has none
	Message string // fit to be shown; may be empty

	RetryAfter time.Duration // how long the server asks to wait; 0: it does not say
}

func (e *Error) Error() string {
	text := fmt.Sprintf("remote: status %d", e.Status)
	if e.Code != "" {
		text += " " + e.Code
	}
	if e.Message != "" {
		text += ": " + e.Message
	}
	return text
}

// IsNotFound reports whether the server does not know the session or the
// agent type, or is not at this address.
func IsNotFound(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Status == 404
}

// IsAlreadyCompleted reports whether the session has completed or failed.
func IsAlreadyCompleted(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Code == codeAlreadyCompleted
}

// IsAlreadyRunning reports whether the session's run continues. helixd answers a resume
// without a message with that run; other servers may refuse it.
func IsAlreadyRunning(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Code == codeAlreadyRunning
}

// Retryable reports whether the same request may succeed later: the server
// had its own error (5xx) or could not be reached.
func Retryable(err error) bool {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Status >= 500
	}
	return errors.Is(err, ErrUnreachable) || errors.Is(err, ErrStreamDropped)
}
