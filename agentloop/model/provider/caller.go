package provider

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/upstream"
)

// Caller makes the calls of one adapter. It is safe for concurrent use.
type Caller struct {
	APIKey      string            // kept out of what errors say
	Root        string            // the root of the provider's own API
	BaseURL     string            // in place of Root; empty means Root
	Own         map[string]string // the headers of the provider's API, with the key; nil: the key is sent as a bearer token
	Headers     map[string]string // sent with every call; their values are kept out of what errors say
	Options     Options           // in place of the members of every request's body
	HTTPClient  *http.Client      // nil means one that all adapters share
	IdleTimeout time.Duration     // 0 means DefaultIdleTimeout; see Stream

	Model     string // the model's name, for errors
	Embedding bool   // the model computes vectors
}

// New returns the caller of a model. It panics if the model has no name, and for Options that are
// not allowed.
func New(c Caller) Caller {
	if c.Model == "" {
		panic("provider: empty model name")
	}
	if err := c.Options.Check(); err != nil {
		panic("provider options: " + err.Error())
	}
	return c
}

// call names the call in errors.
func (c Caller) call() string {
	what := "model call"
	if c.Embedding {
		what = "embedder call"
	}
	if c.Model != "" {
		what += " to " + c.Model
	}
	return what
}

// setting is one of the model's in the configuration.
func (c Caller) setting(name string) string {
	if c.Embedding {
		return "memory.embedder." + name
	}
	return "model." + name
}

// DefaultIdleTimeout is the default of Caller.IdleTimeout.
const DefaultIdleTimeout = 3 * time.Minute

// responseHeaderTimeout bounds the wait for an answer's first byte, so that a
// server that accepts and then forgets a request does not hold a run for ever.
const responseHeaderTimeout = 10 * time.Minute

// maxErrorBody bounds how much of a failed answer is read, in bytes.
const maxErrorBody = 1 << 20

// client returns the client, which follows no redirects; see [upstream.NoRedirects].
func (c Caller) client() *http.Client {
	client := c.HTTPClient
	if client == nil {
		client = sharedClient()
	}
	return upstream.NoRedirects(client)
}

var sharedClient = sync.OnceValue(func() *http.Client {
	transport, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return http.DefaultClient
	}
	transport = transport.Clone()
	transport.ResponseHeaderTimeout = responseHeaderTimeout
	return &http.Client{Transport: transport}
})

// Answer makes an answer of a stream's events.
type Answer interface {
	// Event takes an event: its type, which may be empty, and its data. done
	// says that nothing more is needed. The error is the call's.
	Event(kind string, data []byte) (done bool, err error)
	// Complete says whether the stream may end here. An answer that can be complete and a failure
	// has a method Failed, which returns the call's error, or nil.
	Complete() bool
}

// Stream makes one call, of a route below the API's root and with body as JSON, and hands the
// events of its stream to a. A provider that is silent for IdleTimeout within an answer that has
// begun fails the call with provider_timeout; comments that keep a connection open are no events,
// and the time that a takes does not count. But for a's own, errors are *model.Error.
func (c Caller) Stream(ctx context.Context, route string, body any, a Answer) (err error) {
	ctx, clock := newIdleClock(ctx, c.IdleTimeout)
	defer clock.close()
	var host string
	defer func() { err = c.at(host, err) }()
	res, err := c.answered(ctx, route, body, &host, clock.start) // a failed answer is read before there is a stream
	if err != nil {
		return err
	}
	if err := c.notStream(ctx, res); err != nil {
		return err
	}
	if err := c.read(ctx, res, clock, a); err != nil {
		return err
	}
	if ended, ok := a.(interface{ Failed() error }); ok {
		return ended.Failed()
	}
	return nil
}

// answered makes a request, and calls begun when its answer begins. It notes which host is asked.
func (c Caller) answered(ctx context.Context, route string, body any, host *string, begun func()) (*http.Response, error) {
	if !c.usableURL() {
		return nil, &model.Error{Code: model.CodeInvalidRequest, Message: "the base URL is not an http(s) URL (check " + c.setting("baseURL") + ")"}
	}
	req, err := c.request(ctx, route, body)
	if err != nil {
		return nil, &model.Error{Code: model.CodeInvalidRequest, Message: "the request could not be made", Cause: err}
	}
	*host = req.URL.Host
	res, err := send(c.client(), req)
	if err != nil {
		if ctx.Err() != nil {
			return nil, contextError(ctx)
		}
		return nil, c.networkError(req.URL.String(), errors.Unwrap(err)) // without the URL, which a *url.Error has
	}
	begun()
	if res.StatusCode < http.StatusMultipleChoices {
		return res, nil
	}
	defer func() { _ = res.Body.Close() }()
	if isRedirect(res.StatusCode) {
		return nil, &model.Error{Code: model.CodeInvalidRequest, Message: "redirects are not followed", StatusCode: res.StatusCode}
	}
	return nil, c.refused(ctx, res)
}

func isRedirect(status int) bool {
	return status >= http.StatusMultipleChoices && status < http.StatusBadRequest
}

// maxDocument bounds an answer that is no stream, in bytes.
const maxDocument = 64 << 20

// Document makes one call as Stream does, whose answer is one JSON document, and decodes that
// into v. Errors are *model.Error.
func (c Caller) Document(ctx context.Context, route string, body, v any) (err error) {
	var host string
	defer func() { err = c.at(host, err) }()
	res, err := c.answered(ctx, route, body, &host, func() {})
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	document, err := io.ReadAll(io.LimitReader(res.Body, maxDocument+1))
	switch {
	case ctx.Err() != nil:
		return contextError(ctx)
	case err != nil:
		return c.networkError("", err)
	case len(document) > maxDocument:
		return &model.Error{Code: model.CodeProvider, Message: "the provider's answer is too long"}
	}
	if reported := c.reportedError(document); reported != nil {
		return reported
	}
	if err := json.Unmarshal(document, v); err != nil {
		return &model.Error{Code: model.CodeProvider, Message: "the provider's answer cannot be read", Cause: err}
	}
	return nil
}

// usableURL keeps a URL that no retry can fix from looking like a provider
// that is away.
func (c Caller) usableURL() bool {
	if c.BaseURL == "" {
		return true
	}
	u, err := url.Parse(c.BaseURL)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}
