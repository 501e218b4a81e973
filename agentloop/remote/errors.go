package remote

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
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

var (
	errSilent  = errors.New("silent for too long")
	errHeaders = errors.New("remote: there are no headers to send")

	errUnusable = errors.New("remote: the agent server's URL is unusable")
)

// Codes of [Error] that callers branch on (document 004).
const (
	CodeNotFound         = "NOT_FOUND"
	CodeAlreadyRunning   = "ALREADY_RUNNING"
	CodeAlreadyCompleted = "ALREADY_COMPLETED"
	CodeTruncated        = "TRUNCATED" // the sequence to read from is below what the server still has
)

// Error is an error answer of the server.
type Error struct {
	Status  int    // of HTTP
	Code    string // empty if the answer has none
	Message string // fit to be shown; may be empty

	after time.Duration // how long the server asks to wait; 0: it does not say
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
func IsAlreadyCompleted(err error) bool { return hasCode(err, CodeAlreadyCompleted) }

// IsAlreadyRunning reports whether the session runs, or waits to be resumed.
func IsAlreadyRunning(err error) bool { return hasCode(err, CodeAlreadyRunning) }

func hasCode(err error, code string) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Code == code
}

// Retryable reports whether the same request may succeed later: the server
// had an error of its own (5xx) or could not be reached.
func Retryable(err error) bool {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Status >= 500
	}
	return errors.Is(err, ErrUnreachable) || errors.Is(err, ErrStreamDropped)
}

// lost is an error of this package with its cause. The cause may name
// addresses: errors.As finds it, the text tells only of which kind it is.
type lost struct{ kind, cause error }

func (e *lost) Error() string {
	if why := reason(e.cause); why != "" {
		return e.kind.Error() + ": " + why
	}
	return e.kind.Error()
}

func (e *lost) Unwrap() []error {
	if errors.Is(e.cause, context.Canceled) || errors.Is(e.cause, context.DeadlineExceeded) {
		return []error{e.kind} // the client's own time limit, not the caller's context
	}
	return []error{e.kind, e.cause}
}

// reason says in a few words why a connection failed.
func reason(err error) string {
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		return "timed out"
	}
	if number, ok := errors.AsType[syscall.Errno](err); ok {
		return number.Error()
	}
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return "its name can't be resolved"
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return "its certificate is not trusted"
	}
	switch {
	case errors.Is(err, errSilent):
		return errSilent.Error()
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the connection was closed"
	}
	return ""
}
