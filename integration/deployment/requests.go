package deployment

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/helixd/helixd/agentloop/remote/remotehttp"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/client"
)

// Client returns a client of the node that repeats no request: a program counts
// refusals, and says itself which request it makes again. A request has failed if the
// node sends nothing for as long as idle.
func Client(url string, idle time.Duration) *client.Client { return ClientWith(url, idle, "", nil) }

// ClientWith returns a [Client] with a bearer token, and its settings of TLS.
func ClientWith(url string, idle time.Duration, token string, secure *tls.Config) *client.Client {
	return client.New(url, &client.Options{MaxRetries: -1, Idle: idle, Token: client.StaticToken(token), HTTPClient: &http.Client{Transport: &http.Transport{
		MaxIdleConnsPerHost: 10_000, IdleConnTimeout: 5 * time.Second, DisableCompression: true, TLSClientConfig: secure,
	}}})
}

// Get returns the body of an answer, byte by byte as the node sent it. A refusal is a
// *client.Error.
func Get(ctx context.Context, c *client.Client, route string) ([]byte, error) {
	path, query, _ := strings.Cut(strings.TrimPrefix(route, "/"), "?")
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil, err
	}
	a, err := send(ctx, c, remotehttp.Request{Method: http.MethodGet, Route: path, Query: values, Accept: "*/*"})
	if err != nil {
		return nil, err
	}
	defer a.Close()
	raw, err := io.ReadAll(a)
	if err != nil {
		return nil, errors.Join(client.ErrUnreachable, err)
	}
	return raw, nil
}

// send makes a request. A refusal is a *client.Error.
func send(ctx context.Context, c *client.Client, r remotehttp.Request) (*remotehttp.Response, error) {
	a, err := c.Send(ctx, r)
	if err != nil || a.OK() {
		return a, err
	}
	defer a.Close()
	cause, raw := a.Refusal()
	refusal := &client.Error{Status: cause.Status, Code: api.Code(cause.Code), Message: cause.Message}
	var body struct{ Detail json.RawMessage }
	if json.Unmarshal(raw, &body) == nil {
		refusal.Detail = body.Detail
	}
	return nil, refusal
}

// Connect opens one connection to a session's events after a sequence.
func Connect(ctx context.Context, c *client.Client, session string, after uint64, idle time.Duration) (*remotehttp.Response, error) {
	r := remotehttp.Request{
		Method: http.MethodGet, Route: "sse", Query: url.Values{"sessionId": {session}}, Accept: remotehttp.EventStream, Idle: idle,
	}
	if after > 0 {
		r.Header = map[string]string{"Last-Event-ID": strconv.FormatUint(after, 10)}
	}
	return send(ctx, c, r)
}

// Read reads the events of one connection, until each reports that one is the last. The
// error is that of [Connect]; that a connection breaks off is none.
func Read(ctx context.Context, c *client.Client, session string, after uint64, idle time.Duration, each func(remotehttp.RawEvent) (last bool)) error {
	a, err := Connect(ctx, c, session, after, idle)
	if err != nil {
		return err
	}
	defer a.Close()
	for e, err := range a.RawEvents() {
		if err != nil || each(e) {
			break
		}
	}
	return nil
}

// Code returns the code of a refusal, or "".
func Code(err error) api.Code {
	if refusal, ok := errors.AsType[*client.Error](err); ok {
		return refusal.Code
	}
	return ""
}

// Status returns the HTTP status of a refusal, or 0.
func Status(err error) int {
	if refusal, ok := errors.AsType[*client.Error](err); ok {
		return refusal.Status
	}
	return 0
}

// Insist makes a request again that the log did not answer in time, as on a disk that
// others keep busy, if again reports that it may. The request may have been carried
// out, and be refused then with one of the codes.
func Insist(again func() bool, request func() error, done ...api.Code) error {
	for first := true; ; first = false {
		err := request()
		switch code := Code(err); {
		case !first && slices.Contains(done, code):
			return nil
		case code != api.CodeUnavailable || !again():
			return err
		}
	}
}

// ASecond returns a function for [Insist]: the next try is a second later, until ctx ends.
func ASecond(ctx context.Context) func() bool {
	return func() bool { return Sleep(ctx, time.Second) == nil }
}

// Each calls f with 0 to n-1, so many at a time, until one fails.
func Each(n, at int, f func(i int) error) error {
	var all sync.WaitGroup
	errs := make([]error, at)
	for w := range at {
		all.Go(func() {
			for i := w; i < n && errs[w] == nil; i += at {
				errs[w] = f(i)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// TextChunk is a chunk of text as an outside producer appends it.
func TextChunk(session, text string) []eventlog.Chunk {
	return []eventlog.Chunk{&eventlog.TextDelta{Base: eventlog.Base{AgentID: session, AgentType: "producer", Timestamp: 1}, Delta: text}}
}
