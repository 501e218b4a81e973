//go:build unix

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/helixd/helixd/agentloop/remote/remotehttp"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/integration/deployment"
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
	err := deployment.Read(ctx, r.s.api, r.l.session, r.Last(), 0, func(e remotehttp.RawEvent) bool {
		last, err := r.Take(e)
		if err == nil && e.Name == "chunk" && r.s.wrong(injectTwice) {
			_, err = r.Take(e)
		}
		if err != nil {
			r.s.violate(r.l.session, err)
		}
		return last || err != nil
	})
	switch {
	case deployment.Code(err) == api.CodeUnavailable: // it comes again
		r.s.count(func(c *counts) { c.again++ })
	case err != nil && ctx.Err() == nil:
		r.s.violate(r.l.session, fmt.Errorf("GET /sse after %d: %w", r.Last(), err))
	}
}
