package mcptool

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxMessage is the size of one message over HTTP, in bytes; the SDK bounds
// lines and events likewise.
const maxMessage = mcp.DefaultMaxEventSize

// roundTripper adds the configured headers, bounds what is read and notes
// what became of a call's request.
type roundTripper struct {
	base    http.RoundTripper
	headers map[string]string
	answers atomic.Int32 // to requests of the server that are under way
}

// answerTimeout is how long a server may take to accept the answer to its own request. The SDK
// waits for that when it closes, and sets no limit.
const answerTimeout = 2 * time.Second

func (t *roundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	if !isAnswer(req.Context()) {
		return t.send(req)
	}
	defer t.answers.Add(-1)
	if t.answers.Add(1) > maxAnswers {
		_ = req.Body.Close()
		return nil, errAnswers
	}
	ctx, cancel := context.WithTimeout(req.Context(), answerTimeout)
	defer cancel()
	resp, err := t.send(req.WithContext(ctx))
	if err == nil { // nothing that the server says to it is of use
		_ = resp.Body.Close()
		resp.Body = http.NoBody
	}
	return resp, err
}

func (t *roundTripper) send(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	for name, value := range t.headers {
		if req.Header.Get(name) == "" { // the protocol's own go first
			req.Header.Set(name, value)
		}
	}
	d := &delivery{}
	if req.Method == http.MethodPost { // a GET asks for the rest of an answer: the POST has arrived
		d = deliveryOf(req.Context())
		defer d.begin()()
	}
	d.sent.Store(true)
	resp, err := t.base.RoundTrip(req)
	if err != nil {
		if e, ok := errors.AsType[*net.OpError](err); ok && e.Op == "dial" {
			d.sent.Store(false)
		}
		return nil, err
	}
	d.status.Store(int32(resp.StatusCode))
	if resp.StatusCode == http.StatusNotFound { // the session is unknown there
		d.sent.Store(false)
	}
	// Of a stream the SDK bounds each event, unless it is a refusal, which it reads whole.
	if resp.StatusCode < 200 || resp.StatusCode > 299 || !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		resp.Body = http.MaxBytesReader(nil, resp.Body, maxMessage)
	}
	return resp, nil
}
