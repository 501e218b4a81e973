package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"regexp"

	"github.com/helixd/helixd/agentloop/remote"
	"github.com/helixd/helixd/agentloop/remote/remotehttp"
	"github.com/helixd/helixd/httpapi/api"
)

// Errors that callers branch on, beside [*Error] and the cause of a context
// that has ended.
var (
	// ErrUnreachable: a request was not answered, or not to the end. It may
	// have been carried out.
	ErrUnreachable = remote.ErrUnreachable
	// ErrStreamDropped: a stream broke off, or was silent for too long.
	ErrStreamDropped = remote.ErrStreamDropped
	// ErrOutOfOrder: the sequences of one connection go back.
	ErrOutOfOrder = remote.ErrOutOfOrder
	// ErrMalformed: an answer is not of the server's form; perhaps it is not
	// a helixd that answers.
	ErrMalformed = remote.ErrMalformed
	// ErrTooLarge: an answer or event has more bytes than are accepted.
	ErrTooLarge = remote.ErrTooLarge
)

// Error is an error answer of the server.
type Error struct {
	Status    int             // of HTTP
	Code      api.Code        // such as api.CodeNotFound; empty if the answer has none
	Message   string          // fit to be shown; may be empty
	Detail    json.RawMessage // what depends on the code, fit to be shown; nil: none
	RequestID string          // by which the server's log names the request; may be empty

	cause *remote.Error
}

func (e *Error) Error() string {
	text := fmt.Sprintf("client: status %d", e.Status)
	if e.Code != "" {
		text += " " + string(e.Code)
	}
	if e.Message != "" {
		text += ": " + e.Message
	}
	if e.RequestID != "" {
		text += " (request " + e.RequestID + ")"
	}
	return text
}

// Unwrap returns the error as package remote has it.
func (e *Error) Unwrap() error { return e.cause }

var requestIDPattern = regexp.MustCompile(`^[A-Za-z0-9._-]{1,128}$`)

// refusal returns the error that an answer other than 2xx is.
func refusal(ctx context.Context, a *remotehttp.Response) error {
	cause, raw := a.Refusal()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	e := &Error{
		Status: cause.Status, Code: api.Code(cause.Code), Message: cause.Message,
		RequestID: a.Header().Get(api.HeaderRequestID), cause: cause,
	}
	var body struct{ Detail json.RawMessage }
	if json.Unmarshal(raw, &body) == nil && fitToShow(a, body.Detail) {
		e.Detail = body.Detail
	}
	if !requestIDPattern.MatchString(e.RequestID) {
		e.RequestID = ""
	}
	return e
}

// fitToShow reports whether a detail is neither too long nor quotes what must
// not be shown. A part of it would be no JSON.
func fitToShow(a *remotehttp.Response, detail json.RawMessage) bool {
	if len(detail) > remotehttp.MaxErrorText || bytes.Equal(detail, []byte("null")) {
		return false
	}
	for d := json.NewDecoder(bytes.NewReader(detail)); ; {
		t, err := d.Token()
		if err != nil {
			return true // its end: it is valid
		}
		if text, ok := t.(string); ok && a.Hide(text) != text {
			return false
		}
	}
}

// again reports whether a request may be repeated that failed with err; safe
// is whether it could have been carried out twice without harm.
func again(err error, safe bool) bool {
	if !safe {
		return neverSent(err)
	}
	e, ok := errors.AsType[*Error](err)
	return remote.Retryable(err) && !(ok && e.Status == http.StatusNotImplemented) // the route is switched off
}

// neverSent reports whether there was no connection to send a request by.
func neverSent(err error) bool {
	e, ok := errors.AsType[*net.OpError](err)
	return ok && e.Op == "dial" && errors.Is(err, ErrUnreachable)
}
