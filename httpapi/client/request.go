package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/helixd/helixd/agentloop/remote/remotehttp"
	"github.com/helixd/helixd/eventlog"
)

// maxAnswer is the largest body of an answer, in bytes. Only the whole state
// of a long session comes near it.
const maxAnswer = 1 << 30

// steady is how long a connection has to last for its end to be no failure:
// two heartbeats.
const steady = 30 * time.Second

// request is what is sent, and whether it may be repeated (see the package).
type request struct {
	remotehttp.Request
	safe bool
	also int   // a status, beside 2xx, of which a JSON body is an answer; 0: none
	err  error // why it can't be sent
}

func get(route string, query url.Values) request {
	return request{Request: remotehttp.Request{Method: http.MethodGet, Route: route, Query: query}, safe: true}
}

func post(route string, safe bool, body any) request {
	raw, err := eventlog.Marshal(body)
	if err != nil {
		err = errors.New("client: the request can't be encoded as JSON")
	}
	return request{Request: remotehttp.Request{Method: http.MethodPost, Route: route, Body: raw}, safe: safe, err: err}
}

// of puts the route of a call below a session. Every byte of its id that means
// something in a path is escaped, dots too, or else "." and ".." were lost on
// the way.
func (k request) of(folder, session string) request {
	if err := eventlog.ValidateSessionID(session); err != nil && k.err == nil {
		k.err = err
	}
	id := strings.ReplaceAll(url.PathEscape(session), ".", "%2E")
	if k.Route != "" {
		id += "/"
	}
	k.Route = folder + "/" + id + k.Route
	return k
}

// attempt sends a call once and has its answer read, unless it is an error.
func (c *Client) attempt(ctx context.Context, k request, use func(*remotehttp.Response) error) error {
	if k.err != nil {
		return k.err
	}
	a, err := c.http.Send(ctx, k.Request)
	if err != nil {
		return err
	}
	defer a.Close()
	if a.OK() || a.Status() == k.also && a.Is("application/json") {
		return use(a)
	}
	return refusal(ctx, a)
}

// do sends a call until use is content with the answer, or no further attempt
// is due.
func (c *Client) do(ctx context.Context, k request, use func(*remotehttp.Response) error) error {
	return c.repeat(ctx, &k, func(a *remotehttp.Response, _ func()) error { return use(a) })
}

// repeat is do for a use that may change the call. It calls reset when it has made
// progress, so that earlier failures do not count any more.
func (c *Client) repeat(ctx context.Context, k *request, use func(a *remotehttp.Response, reset func()) error) error {
	for retries := c.http.Retries(); ; {
		err := c.attempt(ctx, *k, func(a *remotehttp.Response) error { return use(a, retries.Reset) })
		if err == nil || !again(err, k.safe) {
			return err
		}
		if err := retries.Wait(ctx, err); err != nil {
			return err
		}
	}
}

// fetch sends a call whose answer is JSON. An answer that whole refuses is not
// the server's; nil: any may be.
func fetch[T any](ctx context.Context, c *Client, k request, whole func(*T) bool) (answer T, err error) {
	err = c.do(ctx, k, func(a *remotehttp.Response) error {
		var v T
		if err := a.Decode(&v, maxAnswer); err != nil {
			return err
		}
		if whole != nil && !whole(&v) {
			return fmt.Errorf("%w: it lacks what every answer to this has", ErrMalformed)
		}
		answer = v
		return nil
	})
	return answer, err
}

// follow sends a call and reads what streams back, again and again while
// connections drop, until read returns nil. read moves the call on to what it
// has not read yet, and calls moved when it has come further.
func (c *Client) follow(ctx context.Context, k *request, mediaType string, read func(a *remotehttp.Response, moved func()) error) error {
	return c.repeat(ctx, k, func(a *remotehttp.Response, reset func()) error {
		if !a.Is(mediaType) {
			return fmt.Errorf("%w: it is not of type %s", ErrMalformed, mediaType)
		}
		err := read(a, reset)
		if a.Alive() >= steady { // as when a proxy limits how long a connection lasts
			reset()
		}
		return err
	})
}
