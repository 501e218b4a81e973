package remotehttp

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"syscall"
)

var (
	errSilent  = errors.New("silent for too long")
	errHeaders = errors.New("remote: there are no headers to send")

	errUnusable = errors.New("remote: the agent server's URL is unusable")
)

// lost is an error of this package with its cause. The cause may name
// addresses: errors.As finds it, the text has only its kind.
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
