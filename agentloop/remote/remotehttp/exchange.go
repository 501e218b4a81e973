package remotehttp

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"maps"
	"math"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/propagation"

	"github.com/helixd/helixd/agentloop/model/upstream"
	"github.com/helixd/helixd/agentloop/remote"
)

// Request is what every attempt of a request sends.
type Request struct {
	Method string
	Route  string // below the server's URL, percent-encoded
	Query  url.Values
	Header map[string]string // wins over the headers of [Options]
	Body   []byte            // nil: none
	// Open, if set, opens the body of an attempt instead, of any length. The
	// attempt closes it, perhaps after its end. If opening or reading it
	// fails, that is the attempt's error.
	Open        func() (io.ReadCloser, error)
	ContentType string // of the body; empty: JSON
	Accept      string // empty: JSON
	// Idle is how long the server may send nothing, instead of
	// [Options.Idle]; negative: for as long as the context allows.
	Idle time.Duration
}

// Response is a server's answer to a request. It reads the body, and
// cancels the request when the server is silent for too long.
type Response struct {
	ctx     context.Context // the caller's
	attempt context.Context // ends with errSilent, too
	cancel  context.CancelCauseFunc
	idle    time.Duration
	timer   *time.Timer // runs while the server is waited for
	hide    upstream.Secrets
	res     *http.Response
	begun   time.Time // when the answer began
	heard   time.Time // when the last part of its body came
}

// send makes one attempt. An answer other than 2xx is an error.
func (h *Transport) send(ctx context.Context, r Request) (*Response, error) {
	x, err := h.Send(ctx, r)
	if err != nil || x.OK() {
		return x, err
	}
	defer x.Close()
	refused, _ := x.Refusal()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	return nil, refused
}

// Send makes one attempt, and returns any answer. The answer has to be
// closed. Errors: [ErrUnreachable], what the headers or the body can't be had
// for, and the cause of a ctx that has ended.
func (h *Transport) Send(ctx context.Context, r Request) (*Response, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	headers, err := h.headers(ctx)
	if err != nil {
		return nil, err
	}
	attempt, cancel := context.WithCancelCause(ctx)
	req, body, err := h.newRequest(attempt, r, headers)
	if err != nil {
		cancel(nil)
		return nil, err
	}
	idle := r.idle(h.opts.Idle)
	x := &Response{
		ctx: ctx, attempt: attempt, cancel: cancel, idle: idle, hide: upstream.SecretsOf(headers),
		timer: time.AfterFunc(idle, func() { cancel(errSilent) }),
	}
	res, err := h.opts.Client.Do(req)
	x.timer.Stop()
	if err != nil {
		defer x.cancel(nil)
		if own := body.failure(); own != nil && ctx.Err() == nil {
			return nil, own
		}
		return nil, x.lost(remote.ErrUnreachable, err)
	}
	x.res, x.begun = res, time.Now()
	x.heard = x.begun
	return x, nil
}

// idle returns the request's own limit of silence, or byDefault.
func (r Request) idle(byDefault time.Duration) time.Duration {
	switch {
	case r.Idle < 0:
		return math.MaxInt64
	case r.Idle > 0:
		return r.Idle
	}
	return byDefault
}

// headers returns the caller's headers.
func (h *Transport) headers(ctx context.Context) (map[string]string, error) {
	if h.opts.HeaderFunc == nil {
		return h.opts.Headers, nil
	}
	more, err := h.opts.HeaderFunc(ctx)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, &lost{errHeaders, err}
	}
	all := maps.Clone(h.opts.Headers)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, more)
	return all, nil
}

// newRequest returns an attempt's request, and its body if it was opened.
func (h *Transport) newRequest(ctx context.Context, r Request, headers map[string]string) (*http.Request, *upload, error) {
	if h.base == nil {
		return nil, nil, errUnusable
	}
	u := h.base.JoinPath(r.Route)
	if r.Query != nil {
		query := u.Query()
		maps.Copy(query, r.Query)
		u.RawQuery = query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, r.Method, u.String(), bytes.NewReader(r.Body))
	if err != nil {
		return nil, nil, errUnusable
	}
	for _, given := range []map[string]string{headers, r.Header} {
		for name, value := range given {
			if !fitsHeader(name) || !fitsHeader(value) {
				return nil, nil, errors.New("remote: a header has control characters")
			}
			req.Header.Set(name, value)
		}
	}
	propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(req.Header))
	req.Header.Set("Accept", cmp.Or(r.Accept, "application/json"))
	if r.Body != nil || r.Open != nil {
		req.Header.Set("Content-Type", cmp.Or(r.ContentType, "application/json"))
	}
	if r.Open == nil {
		return req, nil, nil
	}
	opened, err := r.Open()
	if err != nil {
		return nil, nil, err
	}
	body := &upload{ReadCloser: opened}
	req.Body, req.GetBody, req.ContentLength = body, nil, -1
	return req, body, nil
}

// upload keeps what reading a body failed with: net/http would have it look
// like a connection that was lost.
type upload struct {
	io.ReadCloser
	closed atomic.Bool // errors after that are not failures
	failed atomic.Pointer[error]
}

func (u *upload) Read(p []byte) (int, error) {
	n, err := u.ReadCloser.Read(p)
	if err != nil && err != io.EOF && !u.closed.Load() {
		u.failed.Store(&err)
	}
	return n, err
}

func (u *upload) Close() error {
	u.closed.Store(true)
	return u.ReadCloser.Close()
}

// failure returns what reading failed with; a request may have no upload.
func (u *upload) failure() error {
	if u == nil {
		return nil
	}
	if err := u.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// fitsHeader keeps a header that is never sent from being retried.
func fitsHeader(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] == 0x7f {
			return false
		}
	}
	return true
}
