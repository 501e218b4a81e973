package main

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/helixd/helixd/integration/deployment"
)

// load is the active sessions' chunks: when they are due, when they were
// appended, and when their clients got them. It is an open loop: a session's
// schedule waits for nobody.
type load struct {
	options
	every      time.Duration // a session's chunk
	skip, last int           // chunks from skip on are measured, up to last
	phases     []time.Duration
	epoch      time.Time     // times are counted from here
	begun      chan struct{} // closed when begin is set
	begin      time.Duration // when the first chunks may be due

	sent  []atomic.Int64       // of all sessions' chunks, ns
	next  []int                // by session
	heard []deployment.Samples // by session, append to receipt
	late  []deployment.Samples // by session, due to append
	done  sync.WaitGroup       // of sessions
}

func newLoad(o options) *load {
	every := time.Duration(float64(time.Second) / o.rate)
	l := &load{
		options: o, every: every, skip: int(o.warm / every), last: int((o.warm + o.span) / every), epoch: time.Now(), begun: make(chan struct{}),
		phases: make([]time.Duration, o.clients), next: make([]int, o.clients),
		heard: make([]deployment.Samples, o.clients), late: make([]deployment.Samples, o.clients),
	}
	l.sent = make([]atomic.Int64, o.clients*(l.last+1))
	random := rand.New(rand.NewPCG(1, 2))
	for s := range o.clients {
		l.phases[s] = time.Duration(random.Int64N(int64(every)))
		l.heard[s], l.late[s] = make(deployment.Samples, 0, l.last), make(deployment.Samples, 0, l.last)
	}
	l.done.Add(o.clients)
	return l
}

// total is the pace of all sessions, chunks/s.
func (l *load) total() float64 { return l.rate * float64(l.clients) }

// start lets the chunks come due.
func (l *load) start() {
	l.begin = l.now()
	close(l.begun)
}

func (l *load) now() time.Duration { return time.Since(l.epoch) }

// keepPace appends a session's chunks as they come due.
func (l *load) keepPace(ctx context.Context, s int, store func(n int) error) error {
	select {
	case <-l.begun:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	for n := range l.last + 1 {
		due := l.begin + l.phases[s] + time.Duration(n)*l.every
		if err := deployment.Sleep(ctx, due-l.now()); err != nil {
			return err
		}
		now := l.now()
		if n >= l.skip {
			l.late[s] = append(l.late[s], now-due)
		}
		l.sent[s*(l.last+1)+n].Store(int64(now))
		if err := store(n); err != nil {
			return err
		}
	}
	return nil
}

// A token is what a chunk says: its number and its session, as long as a
// model's usual piece or two.
const tokenBytes = len("n000000s0000 ")

func (l *load) token(s, n int) string { return fmt.Sprintf("n%06ds%04d ", n, s) }

// hear takes what a session's client has got: one token, or as many as the
// writer has merged. Each has to come once and in order.
func (l *load) hear(s int, c chunk) error {
	now := l.now()
	if c.kind != "text_delta" {
		return nil
	}
	text := c.delta
	for ; len(text) >= tokenBytes; text = text[tokenBytes:] {
		n := l.next[s]
		if !bytes.HasPrefix(text, []byte(l.token(s, n))) {
			break
		}
		if n >= l.skip {
			l.heard[s] = append(l.heard[s], now-time.Duration(l.sent[s*(l.last+1)+n].Load()))
		}
		l.next[s]++
		if n == l.last {
			l.done.Done()
		}
	}
	if len(text) > 0 {
		return fmt.Errorf("%s: got %.40q instead of chunk %d", activeName(s), text, l.next[s])
	}
	return nil
}
