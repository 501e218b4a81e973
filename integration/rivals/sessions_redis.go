package main

import (
	"context"
	"fmt"
	"sync"

	"github.com/redis/go-redis/v9"
)

const (
	// redisField is the one field of an entry.
	redisField = "d"
	// redisLanes is the number of lanes; see redisSessions.
	redisLanes = 4
	// laneBatch bounds the entries of a lane's pipeline.
	laneBatch = 1000
)

func xadd(key string, payload []byte) *redis.XAddArgs {
	return &redis.XAddArgs{Stream: key, Values: []any{redisField, payload}}
}

// redisSessions appends to numbered streams through a few lanes. A lane is a
// goroutine that sends whatever is waiting as one pipeline: of the setups
// that were tried (README.md) the best for Redis by far.
type redisSessions struct {
	*redisServer
	templates []template
	lanes     []chan *redisAppend
	wg        sync.WaitGroup
}

// redisAppend is one call of append.
type redisAppend struct {
	key      string
	payloads [][]byte
	done     chan error
}

// sessions is to be closed.
func (r *redisServer) sessions(n int) *redisSessions {
	s := &redisSessions{redisServer: r, templates: templates(n)}
	for range redisLanes {
		lane := make(chan *redisAppend, n)
		s.lanes = append(s.lanes, lane)
		s.wg.Go(func() { s.send(lane) })
	}
	return s
}

func (r *redisSessions) close() {
	for _, lane := range r.lanes {
		close(lane)
	}
	r.wg.Wait()
}

func (r *redisSessions) send(lane <-chan *redisAppend) {
	for a := range lane {
		pipe := r.rdb.Pipeline()
		var batch []*redisAppend
		for open := true; open; {
			batch = append(batch, a)
			for _, p := range a.payloads {
				pipe.XAdd(context.Background(), xadd(a.key, p))
			}
			select {
			case a, open = <-lane:
			default:
				open = false
			}
			if pipe.Len() >= laneBatch && open {
				// a goes with the next.
				r.exec(pipe, batch)
				pipe, batch = r.rdb.Pipeline(), nil
			}
		}
		r.exec(pipe, batch)
	}
}

func (r *redisSessions) exec(pipe redis.Pipeliner, batch []*redisAppend) {
	_, err := pipe.Exec(context.Background())
	for _, a := range batch {
		a.done <- err
	}
}

// append is an appendFunc.
func (r *redisSessions) append(_ context.Context, s, first, n int) error {
	a := &redisAppend{key: sessionName(s), payloads: r.templates[s].payloads(first, n), done: make(chan error, 1)}
	r.lanes[s%len(r.lanes)] <- a
	return <-a.done
}

// verify checks that Redis holds what it has acknowledged, and no more.
// Like helixd's it reads some streams whole.
func (r *redisServer) verify(ctx context.Context, counts []int) error {
	for s := range counts {
		n, err := r.rdb.XLen(ctx, sessionName(s)).Result()
		if err != nil || int(n) != counts[s] {
			return fmt.Errorf("redis: %s has %d entries, not %d: %w", sessionName(s), n, counts[s], err)
		}
		if s%max(1, len(counts)/verifySample) != 0 {
			continue
		}
		entries, err := r.rdb.XRange(ctx, sessionName(s), "-", "+").Result()
		if err != nil {
			return err
		}
		t := newTemplate(sessionName(s))
		for n, e := range entries {
			if text, _ := e.Values[redisField].(string); text != string(t.payload(n)) {
				return fmt.Errorf("redis: %s: entry %d is %s", sessionName(s), n, text)
			}
		}
	}
	return nil
}

// redisPooled appends by a round trip for each call, on one of a pool of
// connections: what a program does that leaves it to the client library.
type redisPooled struct {
	rdb       *redis.Client
	templates []template
}

func (r *redisServer) pooled(n, connections int) *redisPooled {
	return &redisPooled{rdb: r.client(connections, false), templates: templates(n)}
}

func (r *redisPooled) close() { r.rdb.Close() }

// append is an appendFunc.
func (r *redisPooled) append(ctx context.Context, s, first, n int) error {
	if n == 1 {
		return r.rdb.XAdd(ctx, xadd(sessionName(s), r.templates[s].payload(first))).Err()
	}
	pipe := r.rdb.Pipeline()
	for _, p := range r.templates[s].payloads(first, n) {
		pipe.XAdd(ctx, xadd(sessionName(s), p))
	}
	_, err := pipe.Exec(ctx)
	return err
}
