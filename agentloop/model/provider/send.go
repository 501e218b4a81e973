package provider

import (
	"net/http"
	"net/http/httptrace"
	"sync"
	"time"
)

// staleWithin is how soon after a request was written its connection fails if the
// server had closed it before. The server's answer to bytes on a closed connection
// takes one round trip. 100 ms are enough for most; a call over a longer path counts
// as failed. A server that closes later may have worked on the request, which is
// then paid for.
const staleWithin = 100 * time.Millisecond

// send makes a request. A server may close an idle connection at the moment at which
// it is used again: the request is then sent once more. net/http does not do that for
// a POST; with an Idempotency-Key it would, but however long the server had worked.
func send(client *http.Client, req *http.Request) (*http.Response, error) {
	var c connection
	res, err := client.Do(req.WithContext(httptrace.WithClientTrace(req.Context(), c.trace())))
	if err == nil || req.Context().Err() != nil || !c.wasStale(time.Now()) {
		return res, err
	}
	again := req.Clone(req.Context())
	again.Body, _ = req.GetBody() // of bytes in memory: it does not fail
	return client.Do(again)
}

// connection is what is known of the connection that a request was last written to.
type connection struct {
	mu       sync.Mutex // its hooks are called by the transport's goroutines
	idle     bool       // it was used before, and had no other request
	wrote    time.Time  // when the request was written, or, if it is not yet, when that began
	answered bool       // an answer has begun, on this connection or one before
}

func (c *connection) trace() *httptrace.ClientTrace {
	set := func(f func()) {
		c.mu.Lock()
		defer c.mu.Unlock()
		f()
	}
	return &httptrace.ClientTrace{
		GotConn: func(i httptrace.GotConnInfo) {
			set(func() { c.idle, c.wrote = i.Reused && i.WasIdle, time.Now() })
		},
		WroteRequest: func(i httptrace.WroteRequestInfo) {
			if i.Err == nil {
				set(func() { c.wrote = time.Now() })
			}
		},
		GotFirstResponseByte: func() { set(func() { c.answered = true }) },
	}
}

// wasStale reports whether a request that failed at that time failed because the server
// had closed the connection before it read the request.
func (c *connection) wasStale(failed time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.idle && !c.answered && failed.Sub(c.wrote) < staleWithin
}
