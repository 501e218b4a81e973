package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/redis/go-redis/v9"

	"github.com/helixd/helixd/eventlog/jetstream/layout"
	"github.com/helixd/helixd/integration/deployment"
)

// audience is a number of followers and what they hear. Follower f follows
// session f % sessions; each session has chunk 0 before they come.
type audience struct {
	followers, sessions int
	last                int // number of a session's last chunk
	skip                int // chunks up to this number are for warming up
	templates           []template
	sent                [][]atomic.Int64     // by session and number, Unix ns
	next                []int                // by follower
	heard               []deployment.Samples // by follower
	ready               sync.WaitGroup       // all followers have caught up
}

func newAudience(followers, sessions int, p pace) *audience {
	a := &audience{
		followers: followers, sessions: sessions,
		last: int((p.warm + p.span) / p.every), skip: int(p.warm / p.every),
		templates: templates(sessions), sent: make([][]atomic.Int64, sessions),
		next: make([]int, followers), heard: make([]deployment.Samples, followers),
	}
	for s := range a.sent {
		a.sent[s] = make([]atomic.Int64, a.last+1)
	}
	for f := range a.heard {
		a.heard[f] = make(deployment.Samples, 0, a.last)
	}
	a.ready.Add(followers)
	return a
}

func (a *audience) session(follower int) int { return follower % a.sessions }

// hear takes the next chunk of a follower and says whether it was the last
// one. Each chunk has to come once and in order.
func (a *audience) hear(follower, n int) (done bool, err error) {
	now := time.Now().UnixNano()
	if n != a.next[follower] {
		return false, fmt.Errorf("follower %d heard chunk %d instead of %d", follower, n, a.next[follower])
	}
	a.next[follower]++
	if n == 0 {
		a.ready.Done()
	}
	if n > a.skip {
		a.heard[follower] = append(a.heard[follower], time.Duration(now-a.sent[a.session(follower)][n].Load()))
	}
	return n == a.last, nil
}

// followFunc calls hear with every chunk until it says done.
type followFunc func(ctx context.Context, follower int, hear func(n int) (done bool, err error)) error

// run publishes at the given pace to followers that are all there, and
// returns how long chunks took from the publisher's call to each follower.
func (a *audience) run(ctx context.Context, p pace, store appendFunc, follow followFunc) (deployment.Samples, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	counts := make([]int, a.sessions)
	for s := range counts {
		if err := store(ctx, s, 0, 1); err != nil {
			return nil, err
		}
		counts[s] = 1
	}
	var wg sync.WaitGroup
	for f := range a.followers {
		wg.Go(func() {
			err := follow(ctx, f, func(n int) (bool, error) { return a.hear(f, n) })
			if err != nil {
				cancel(fmt.Errorf("follower %d: %w", f, err))
			}
		})
	}
	ready := make(chan struct{})
	go func() { a.ready.Wait(); close(ready) }()
	select {
	case <-ready:
	case <-ctx.Done():
	}
	_, err := p.run(ctx, counts, func(ctx context.Context, s, first, n int) error {
		now := time.Now().UnixNano()
		for i := first; i < first+n; i++ {
			a.sent[s][i].Store(now)
		}
		return store(ctx, s, first, n)
	})
	if err != nil {
		cancel(err)
	}
	wg.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	return slices.Concat(a.heard...), nil
}

// follow is a followFunc of helixd's log.
func (h *helix) follow(a *audience) followFunc {
	return func(ctx context.Context, f int, hear func(int) (bool, error)) error {
		s := a.session(f)
		for r, err := range h.log.Follow(ctx, sessionName(s), 0) {
			if err != nil {
				return err
			}
			if done, err := hear(indexOf(a.templates[s], r.Payload)); done || err != nil {
				return err
			}
		}
		return context.Cause(ctx)
	}
}

// follow is a followFunc of one blocking XREAD per follower, each on its own connection
// of rdb.
func (r *redisServer) follow(rdb *redis.Client, a *audience) followFunc {
	return func(ctx context.Context, f int, hear func(int) (bool, error)) error {
		s := a.session(f)
		conn := rdb.Conn()
		defer conn.Close()
		// A blocked read does not look at ctx.
		defer context.AfterFunc(ctx, func() { rdb.Close() })()
		for id := "0"; ; {
			streams, err := conn.XRead(ctx, &redis.XReadArgs{Streams: []string{sessionName(s), id}, Block: redisBlock}).Result()
			if err == redis.Nil && ctx.Err() == nil {
				continue // nothing came in that time
			}
			if err != nil {
				return err
			}
			for _, m := range streams[0].Messages {
				text, _ := m.Values[redisField].(string)
				if done, err := hear(indexOf(a.templates[s], text)); done || err != nil {
					return err
				}
				id = m.ID
			}
		}
	}
}

// redisBlock is how long an XREAD waits before it is sent again.
const redisBlock = 5 * time.Second

// followCore is a followFunc of core NATS: plain subscriptions of one
// connection on the subject where JetStream republishes a session. Nothing is
// caught up, and nothing that is lost is noticed.
func followCore(nc *nats.Conn, a *audience) followFunc {
	return func(ctx context.Context, f int, hear func(int) (bool, error)) error {
		s := a.session(f)
		end := make(chan error, 1)
		sub, err := nc.Subscribe(layout.LiveSubject(sessionName(s)), func(m *nats.Msg) {
			if done, err := hear(indexOf(a.templates[s], m.Data)); done || err != nil {
				select {
				case end <- err:
				default:
				}
			}
		})
		if err != nil {
			return err
		}
		defer sub.Unsubscribe() //nolint:errcheck // fails only on a closed connection
		if err := nc.FlushWithContext(ctx); err != nil {
			return err
		}
		if _, err := hear(0); err != nil { // what it was too late for
			return err
		}
		select {
		case err := <-end:
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
