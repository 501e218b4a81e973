package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"time"
	"unicode/utf8"
)

// maxErrorBody is how much of an error answer is read, in bytes.
const maxErrorBody = 64 << 10

var codePattern = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

// request is what every attempt sends.
type request struct {
	method, route string
	query         url.Values
	body          []byte // JSON; nil: none
	accept        string // empty: JSON
}

// exchange is a request that was answered with 2xx. It reads the answer's
// body, and cancels the request when the server is silent for too long.
type exchange struct {
	ctx     context.Context // the caller's
	attempt context.Context // ends with errSilent, too
	cancel  context.CancelCauseFunc
	idle    time.Duration
	timer   *time.Timer // runs while the server is waited for
	hide    hidden
	res     *http.Response
}

// send makes one attempt. Its answer has to be closed.
func (h *HTTP) send(ctx context.Context, r request) (*exchange, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	headers, err := h.headers(ctx)
	if err != nil {
		return nil, err
	}
	attempt, cancel := context.WithCancelCause(ctx)
	req, err := h.newRequest(attempt, r, headers)
	if err != nil {
		cancel(nil)
		return nil, err
	}
	x := &exchange{
		ctx: ctx, attempt: attempt, cancel: cancel, idle: h.opts.Idle, hide: hide(headers),
		timer: time.AfterFunc(h.opts.Idle, func() { cancel(errSilent) }),
	}
	res, err := h.opts.Client.Do(req)
	x.timer.Stop()
	if err != nil {
		defer x.cancel(nil)
		return nil, x.lost(ErrUnreachable, err)
	}
	x.res = res
	if res.StatusCode < 200 || res.StatusCode > 299 {
		defer x.close()
		return nil, x.refusal()
	}
	return x, nil
}

// headers returns the caller's headers.
func (h *HTTP) headers(ctx context.Context) (map[string]string, error) {
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

func (h *HTTP) newRequest(ctx context.Context, r request, headers map[string]string) (*http.Request, error) {
	if h.base == nil {
		return nil, errors.New("remote: the agent server's URL is unusable")
	}
	u := h.base.JoinPath(r.route)
	if r.query != nil {
		query := u.Query()
		maps.Copy(query, r.query)
		u.RawQuery = query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, r.method, u.String(), bytes.NewReader(r.body))
	if err != nil {
		return nil, errors.New("remote: the agent server's URL is unusable")
	}
	for name, value := range headers {
		if !fitsHeader(name) || !fitsHeader(value) {
			return nil, errors.New("remote: a header has control characters")
		}
		req.Header.Set(name, value)
	}
	req.Header.Set("Accept", "application/json")
	if r.accept != "" {
		req.Header.Set("Accept", r.accept)
	}
	if r.body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	return req, nil
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

// Read reads the answer's body. Its errors are the connection's.
func (x *exchange) Read(p []byte) (int, error) {
	x.timer.Reset(x.idle)
	n, err := x.res.Body.Read(p)
	x.timer.Stop()
	return n, err
}

func (x *exchange) close() {
	x.res.Body.Close()
	x.timer.Stop()
	x.cancel(nil)
}

// drain reads a short rest, so that the connection can be used again.
func (x *exchange) drain() { _, _ = io.CopyN(io.Discard, x, maxErrorBody) }

// decode reads the body, which is JSON, into v.
func (x *exchange) decode(v any) error {
	body, err := io.ReadAll(io.LimitReader(x, maxAnswer+1))
	switch {
	case err != nil:
		return x.lost(ErrUnreachable, err)
	case len(body) > maxAnswer:
		return fmt.Errorf("%w: more than %d bytes", ErrTooLarge, maxAnswer)
	}
	if json.Unmarshal(bytes.ToValidUTF8(body, []byte(string(utf8.RuneError))), v) != nil {
		return fmt.Errorf("%w: it is not the JSON that was asked for", ErrMalformed)
	}
	return nil
}

// refusal returns the error that an answer other than 2xx is. A body that is
// not of the protocol's form, such as a proxy's page, is not shown.
func (x *exchange) refusal() error {
	e := &Error{Status: x.res.StatusCode}
	var body struct {
		Error, Code string
	}
	raw, _ := io.ReadAll(io.LimitReader(x, maxErrorBody))
	if json.Unmarshal(raw, &body) == nil {
		e.Message = x.hide.from(body.Error)
		if codePattern.MatchString(body.Code) {
			e.Code = body.Code
		}
	}
	if err := context.Cause(x.ctx); err != nil {
		return err
	}
	return e
}

// lost says what the end of a connection means: the caller's context has
// ended, or the connection is lost.
func (x *exchange) lost(kind, err error) error {
	if cause := context.Cause(x.ctx); cause != nil {
		return cause
	}
	if errors.Is(context.Cause(x.attempt), errSilent) {
		err = errSilent
	}
	return &lost{kind, err}
}
