// Package remotehttp speaks the agent server's protocol over HTTP and server-sent
// events.
//
// [Transport.Send] makes one attempt of a request to any other route, for clients
// that do more: they read the [Response] and wait by [remote.Retries].
package remotehttp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"time"

	"github.com/helixd/helixd/agentloop/model/upstream"
	"github.com/helixd/helixd/agentloop/remote"
	"github.com/helixd/helixd/eventlog"
)

// Defaults of [Options].
const (
	DefaultMaxRetries     = 3
	DefaultRetryBaseDelay = time.Second
	DefaultIdle           = 60 * time.Second
)

// maxAnswer is the largest event, and the largest body of an answer, in
// bytes: the largest output and the largest state, and what is around them.
const maxAnswer = 2*eventlog.MaxPayload + 64<<10

// Options configure a [Transport].
type Options struct {
	Headers map[string]string // sent with every request
	// HeaderFunc returns further headers, for instance a token that expires.
	// It is asked before every attempt; its errors are not retried.
	HeaderFunc func(context.Context) (map[string]string, error)
	// MaxRetries is how often a request is repeated that the server could
	// not be reached for or that it answered with 5xx; 0: 3, negative: never.
	MaxRetries int
	// RetryBaseDelay is the wait before the first repetition, doubled each
	// time up to 30 s; 0: 1 s.
	RetryBaseDelay time.Duration
	// Client sends the requests; nil: a new one. It follows no redirects,
	// which would take the headers to another host, unless it has a
	// CheckRedirect. A Timeout of it would also end streams.
	Client *http.Client
	// Idle is how long the server may send nothing, before an answer and
	// within it; 0: 60 s. Heartbeats come every 15 s, and a helixd takes up
	// to 30 s to answer a start.
	Idle time.Duration
}

// Transport is a [remote.Transport] over HTTP and server-sent events. It is safe for concurrent use and owns no
// goroutines. Requests are retried as [Options] say; see [remote.Retryable].
type Transport struct {
	base *url.URL // nil: unusable
	opts Options
}

// Host returns the host of the server's URL, with its port if the URL has one; empty: the URL is unusable.
func (h *Transport) Host() string {
	if h.base == nil {
		return ""
	}
	return h.base.Host
}

// New returns a transport to the server whose routes are below url. If
// url is not an http or https URL, every call returns an error.
func New(serverURL string, o *Options) *Transport {
	h := &Transport{}
	if u, err := url.Parse(serverURL); err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" {
		h.base = u
	}
	if o != nil {
		h.opts = *o
		h.opts.Headers = maps.Clone(o.Headers)
	}
	switch {
	case h.opts.MaxRetries == 0:
		h.opts.MaxRetries = DefaultMaxRetries
	case h.opts.MaxRetries < 0:
		h.opts.MaxRetries = 0
	}
	if h.opts.RetryBaseDelay <= 0 {
		h.opts.RetryBaseDelay = DefaultRetryBaseDelay
	}
	if h.opts.Idle <= 0 {
		h.opts.Idle = DefaultIdle
	}
	h.opts.Client = upstream.NoRedirects(h.opts.Client)
	return h
}

// Start implements [remote.Transport].
func (h *Transport) Start(ctx context.Context, req remote.StartRequest) (remote.Started, error) {
	return h.begin(ctx, "start", req)
}

// Resume implements [remote.Transport].
func (h *Transport) Resume(ctx context.Context, req remote.ResumeRequest) (remote.Started, error) {
	return h.begin(ctx, "resume", req)
}

func (h *Transport) begin(ctx context.Context, route string, req any) (remote.Started, error) {
	var s remote.Started
	err := h.post(ctx, route, req, func(x *Response) error {
		if err := x.Decode(&s, maxAnswer); err != nil {
			return err
		}
		if s.SessionID == "" {
			return fmt.Errorf("%w: it names no session", remote.ErrMalformed)
		}
		return nil
	})
	return s, err
}

// Status implements [remote.Transport].
func (h *Transport) Status(ctx context.Context, sessionID string) (remote.Status, error) {
	var s remote.Status
	query := url.Values{"sessionId": {sessionID}}
	err := h.retry(ctx, Request{Method: http.MethodGet, Route: "status", Query: query}, func(x *Response) error {
		defer x.Close()
		if err := x.Decode(&s, maxAnswer); err != nil {
			return err
		}
		if s.Status == "" {
			return fmt.Errorf("%w: it has no status", remote.ErrMalformed)
		}
		s.Error = x.Hide(s.Error)
		return nil
	})
	return s, err
}

// Interrupt implements [remote.Transport].
func (h *Transport) Interrupt(ctx context.Context, sessionID, reason string) error {
	return h.stop(ctx, "interrupt", sessionID, reason)
}

// Abort implements [remote.Transport].
func (h *Transport) Abort(ctx context.Context, sessionID, reason string) error {
	return h.stop(ctx, "abort", sessionID, reason)
}

func (h *Transport) stop(ctx context.Context, route, sessionID, reason string) error {
	req := struct {
		SessionID string `json:"sessionId"`
		Reason    string `json:"reason,omitempty"`
	}{sessionID, reason}
	return h.post(ctx, route, req, func(x *Response) error {
		x.drain() // that it is 2xx says all
		return nil
	})
}

// post sends v as JSON and has the answer read.
func (h *Transport) post(ctx context.Context, route string, v any, read func(*Response) error) error {
	body, err := json.Marshal(v)
	if err != nil {
		return errors.New("remote: the request can't be encoded as JSON")
	}
	return h.retry(ctx, Request{Method: http.MethodPost, Route: route, Body: body}, func(x *Response) error {
		defer x.Close()
		return read(x)
	})
}

// retry sends a request until use, which has to close the answer, is
// content with the answer, or no further attempt is due.
func (h *Transport) retry(ctx context.Context, r Request, use func(*Response) error) error {
	for retries := h.Retries(); ; {
		x, err := h.send(ctx, r)
		if err == nil {
			err = use(x)
		}
		if err == nil || !remote.Retryable(err) {
			return err
		}
		if err := retries.Wait(ctx, err); err != nil {
			return err
		}
	}
}

// Retries returns the repetitions that [Options] allow.
func (h *Transport) Retries() *remote.Retries {
	return remote.NewRetries(h.opts.RetryBaseDelay, h.opts.MaxRetries)
}
