// Package upstream says why a server that an agent depends on, a model's or a tool's, could not be
// reached, or what it answers: in words for records, logs and answers, without the passwords and
// keys that a URL or an answer may contain.
package upstream

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"net"
	"net/url"
	"syscall"
)

// Error is a request that got no answer.
type Error struct {
	Host   string // and the port, if the URL has one; empty: not known
	Reason string // such as "no such host"; empty: not known
	Check  string // the setting to look at, such as "model.baseURL"; empty: none
	Cause  error  // may hold secrets: it is for errors.Is and errors.As
}

// Explain returns the error of a request to a URL; empty: the one that err names.
func Explain(rawURL, check string, err error) *Error {
	if sent, ok := errors.AsType[*url.Error](err); ok && rawURL == "" {
		rawURL = sent.URL
	}
	e := &Error{Reason: reason(err), Check: check, Cause: err}
	if u, bad := url.Parse(rawURL); bad == nil {
		e.Host = u.Host
	}
	return e
}

// Error has the form "dial HOST: REASON (check SETTING)".
func (e *Error) Error() string {
	text := "no connection, or it was lost"
	if e.Reason != "" {
		text = "dial " + e.Host + ": " + e.Reason
	}
	if e.Check != "" {
		text += " (check " + e.Check + ")"
	}
	return text
}

func (e *Error) Unwrap() error { return e.Cause }

// Attrs are the log attributes of a failed call: none unless err is a server that was
// not reached.
func Attrs(err error) []any {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		return nil
	}
	reason := e.Reason
	if reason == "" {
		reason = "no connection, or it was lost"
	}
	attrs := []any{slog.String("reason", reason)}
	if e.Host != "" {
		attrs = append(attrs, slog.String("host", e.Host))
	}
	if e.Check != "" {
		attrs = append(attrs, slog.String("check", e.Check))
	}
	return attrs
}

// reason is why there was no connection, in words that hold nothing of the
// request; empty: unknown, or the connection stood.
func reason(err error) string {
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		if dns.IsNotFound {
			return "no such host"
		}
		return "the name could not be looked up"
	}
	for errno, text := range map[syscall.Errno]string{
		syscall.ECONNREFUSED: "connection refused", syscall.EHOSTUNREACH: "no route to host", syscall.ENETUNREACH: "network is unreachable",
	} {
		if errors.Is(err, errno) {
			return text
		}
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" && op.Timeout() {
		return "no answer in time"
	}
	if bad, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		if authority, ok := errors.AsType[x509.UnknownAuthorityError](bad); ok {
			return authority.Error()
		}
		return "the server's certificate is not valid for it"
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return "the server does not speak TLS"
	}
	return ""
}
