//go:build unix

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"github.com/helixd/helixd/integration/evidence"
)

// reader is an SSE client that loses its connection again and again.
type reader struct {
	evidence.Reader
	s    *soak
	l    *ledger
	rand *rand.Rand
	done chan struct{} // closed when it has come to the end
}

// follow attaches readers to a session, until they have come to its end or what
// it returns is called.
func (s *soak) follow(l *ledger, count int) (leave func()) {
	ctx, cancel := context.WithCancel(s.ctx)
	for i := range count {
		r := &reader{s: s, l: l, rand: s.random("reader "+l.session, i), done: make(chan struct{})}
		l.readers = append(l.readers, r)
		go r.follow(ctx)
	}
	return func() {
		cancel()
		for _, r := range l.readers {
			<-r.done
		}
	}
}

func (r *reader) follow(ctx context.Context) {
	defer close(r.done)
	for !r.Over && ctx.Err() == nil {
		if r.l.created.Load() {
			r.connect(ctx)
			r.s.count(func(c *counts) { c.reconnects++ })
		}
		r.s.sleep(ctx, between(r.rand, 200*time.Millisecond, 2*time.Second))
	}
}

// connect reads for some time.
func (r *reader) connect(ctx context.Context) {
	ctx, hangUp := context.WithTimeout(ctx, between(r.rand, 5*time.Second, 40*time.Second))
	defer hangUp()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.s.node.URL+"/sse?sessionId="+r.l.session, nil)
	if err != nil {
		panic(err) // our own
	}
	if last := r.Last(); last > 0 {
		req.Header.Set("Last-Event-ID", strconv.FormatUint(last, 10))
	}
	resp, err := r.s.http.Do(req)
	if err == nil && resp.StatusCode == http.StatusServiceUnavailable { // it comes again
		resp.Body.Close()
		r.s.count(func(c *counts) { c.again++ })
		return
	}
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET /sse after %d: %s", r.Last(), resp.Status)
	}
	if err != nil {
		if ctx.Err() == nil {
			r.s.violate(r.l.session, err)
		}
		return
	}
	defer resp.Body.Close()
	evidence.Events(resp.Body, func() {}, func(e evidence.Event) bool {
		last, err := r.Take(e)
		if err == nil && e.Name == "chunk" && r.s.wrong(injectTwice) {
			_, err = r.Take(e)
		}
		if err != nil {
			r.s.violate(r.l.session, err)
		}
		return last || err != nil
	})
}
