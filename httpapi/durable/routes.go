package durable

import (
	"errors"
	"net/http"
	"strings"

	"github.com/helixd/helixd/agentloop/durable"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/httpapi/auth"
	"github.com/helixd/helixd/httpapi/internal/web"
	"github.com/helixd/helixd/projector"
)

// Prefix is where the paths of streams begin.
const Prefix = "/v1/stream/"

// Routes answer the requests of the protocol.
type Routes struct {
	streams *durable.Streams
}

// New returns the routes of the streams of a log.
func New(streams *durable.Streams) *Routes {
	return &Routes{streams: streams}
}

// Headers of the protocol.
const (
	headerNextOffset    = "Stream-Next-Offset"
	headerUpToDate      = "Stream-Up-To-Date"
	headerClosed        = "Stream-Closed"
	headerCursor        = "Stream-Cursor"
	headerTTL           = "Stream-TTL"
	headerExpiresAt     = "Stream-Expires-At"
	headerSeq           = "Stream-Seq"
	headerForkedFrom    = "Stream-Forked-From"
	headerForkOffset    = "Stream-Fork-Offset"
	headerForkSubOffset = "Stream-Fork-Sub-Offset"
	headerSSEEncoding   = "Stream-SSE-Data-Encoding"

	headerProducerID       = "Producer-Id"
	headerProducerEpoch    = "Producer-Epoch"
	headerProducerSeq      = "Producer-Seq"
	headerProducerExpected = "Producer-Expected-Seq"
	headerProducerReceived = "Producer-Received-Seq"
)

// RequestHeaders are those that web pages may send; AnswerHeaders are those that they may
// read.
func RequestHeaders() []string {
	return []string{
		"If-None-Match", headerClosed, headerTTL, headerExpiresAt, headerSeq, headerForkedFrom, headerForkOffset, headerForkSubOffset,
		headerProducerID, headerProducerEpoch, headerProducerSeq,
	}
}

// AnswerHeaders: see [RequestHeaders].
func AnswerHeaders() []string {
	return []string{
		"ETag", "Location", headerNextOffset, headerUpToDate, headerClosed, headerCursor, headerTTL, headerExpiresAt, headerSSEEncoding,
		headerProducerEpoch, headerProducerSeq, headerProducerExpected, headerProducerReceived,
	}
}

// Protect sets the headers that keep a browser from taking a stream for a page of the server,
// on every answer below [Prefix].
func Protect(h http.Header) {
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cross-Origin-Resource-Policy", "cross-origin")
	h.Set("Content-Security-Policy", "sandbox; default-src 'none'")
}

// reserved are the first segments of names that streams can't have: sessions are read there,
// and the protocol keeps the other for subscriptions.
var reserved = []string{"sessions", "__ds"}

// LogID returns the log of the stream with a name, as the path has it after [Prefix].
func LogID(name string) (string, error) {
	first, _, _ := strings.Cut(name, "/")
	for _, r := range reserved {
		if first == r {
			return "", web.Invalid("stream", "must not begin with "+r+"/")
		}
	}
	if len(name) > eventlog.MaxDurableName {
		return "", web.Invalid("stream", "is too long")
	}
	id := eventlog.DurableLogID(name)
	if problem, bad := errors.AsType[*eventlog.ValidationError](eventlog.ValidateSessionID(id)); bad {
		return "", web.Invalid("stream", problem.Reason)
	}
	return id, nil
}

// owner is the caller of a request.
func owner(r *web.Request) durable.Owner {
	c := auth.CallerOf(r.Context())
	return durable.Owner{User: c.OnlyUser(), Tenant: c.Tenant, May: func(t *projector.Tree) bool { return c.MayUse(t) }}
}

// Delete answers DELETE.
func (s *Routes) Delete(w http.ResponseWriter, r *web.Request) error {
	ctx, cancel := r.Detached() // a client that leaves does not stop it halfway
	defer cancel()
	if err := s.streams.Delete(ctx, r.Session, owner(r)); err != nil {
		return err
	}
	r.Audit("durable stream deleted")
	return r.Nothing(w)
}

func setClosed(h http.Header, closed bool) {
	if closed {
		h.Set(headerClosed, "true")
	}
}
