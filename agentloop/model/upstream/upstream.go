// Package upstream says why a server that an agent depends on, a model's or a tool's, could not be
// reached, or what it answers: in words for records, logs and answers, without the passwords and
// keys that a URL or an answer may contain.
package upstream

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Error is a request that got no answer, or one that is a failure.
type Error struct {
	Host string // and the port, if the URL has one; empty: not known
	// Program is a server that is a command, in place of Host.
	Program string
	Status  int    // of the answer; 0: there was none, or it began well
	Reason  string // why there was no connection, such as "no such host"; empty: not known
	Check   string // the setting to look at, such as "model.baseURL"; empty: none
	Cause   error  // may hold secrets: it is for errors.Is and errors.As
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

// Error has the form "dial HOST: REASON (check SETTING)" or "HOST answered 401 Unauthorized
// (check SETTING)".
func (e *Error) Error() string { return e.what() + e.check() }

// Saying returns the error with a message of the server's, or about its answer, which must hold
// no secret: "HOST answered 401 Unauthorized: MESSAGE (check SETTING)". The message is cut so
// that all of it has at most n bytes.
func (e *Error) Saying(message string, n int) string {
	before, after := "", e.check()
	switch {
	case e.Status != 0:
		before = e.what() + ": "
	case e.Host != "":
		before = e.Host + ": "
	}
	return before + Cut(message, max(n-len(before)-len(after), 0)) + after
}

func (e *Error) what() string {
	switch {
	case e.Status != 0:
		text := strconv.Itoa(e.Status)
		if name := http.StatusText(e.Status); name != "" {
			text += " " + name
		}
		return cmp.Or(e.Host, "the server") + " answered " + text
	case e.Program != "":
		return e.Program + ": " + cmp.Or(e.Reason, "it is down")
	case e.Reason != "":
		return "dial " + e.Host + ": " + e.Reason
	case e.Host != "":
		return "no connection to " + e.Host + ", or it was lost"
	}
	return noConnection
}

// noConnection is the reason if there is no better one.
const noConnection = "no connection, or it was lost"

func (e *Error) check() string {
	if e.Check == "" {
		return ""
	}
	return " (check " + e.Check + ")"
}

// Text returns what an error says of the server that has failed, for operators, or "": err is
// no such failure.
func Text(err error) string {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		return ""
	}
	return Cut(strings.ToValidUTF8(e.Error(), ""), maxText)
}

// maxText bounds what Text returns, in bytes: a URL's host may be long.
const maxText = 1 << 10

func (e *Error) Unwrap() error { return e.Cause }

// Attrs are the log attributes of a failed call: none unless err is a server's failure.
func Attrs(err error) []any {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		return nil
	}
	var attrs []any
	if e.Status != 0 {
		attrs = append(attrs, slog.Int("status", e.Status))
	} else {
		attrs = append(attrs, slog.String("reason", cmp.Or(e.Reason, noConnection)))
	}
	if host := cmp.Or(e.Host, e.Program); host != "" {
		attrs = append(attrs, slog.String("host", host))
	}
	if e.Check != "" {
		attrs = append(attrs, slog.String("check", e.Check))
	}
	return attrs
}

// NoRedirects returns a client that does what c does. Unless c says otherwise, it follows no redirects: they
// would take what is sent, keys included, to another server. nil: the zero client.
func NoRedirects(c *http.Client) *http.Client {
	var stays http.Client
	if c != nil {
		stays = *c
	}
	if stays.CheckRedirect == nil {
		stays.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	}
	return &stays
}

// RetryAfter reads the header of that name, which has seconds or a time: how long a server asks to
// wait; 0: it does not say.
func RetryAfter(h http.Header) time.Duration {
	header := h.Get("Retry-After")
	// What is too large to be parsed is as long as can be.
	if seconds, err := strconv.ParseUint(header, 10, 64); err == nil || errors.Is(err, strconv.ErrRange) {
		return time.Duration(min(seconds, math.MaxInt64/uint64(time.Second))) * time.Second
	}
	if at, err := http.ParseTime(header); err == nil {
		return max(time.Until(at), 0)
	}
	return 0
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
