package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/helixd/helixd/integration/deployment"
)

// idleRecords is what a session holds when its followers come.
const idleRecords = 10

// runMemory compares what followers cost that wait for something to happen.
func runMemory(ctx context.Context, b *bench) error {
	for _, sessions := range []int{1, followerCount} {
		what := "an idle follower of 1,000 on one session"
		if sessions > 1 {
			what = "an idle follower of 1,000 on 1,000 sessions"
		}
		ours, err := helixIdle(ctx, b, sessions)
		if err != nil {
			return err
		}
		theirs, err := redisIdle(ctx, b, sessions)
		if err != nil {
			return err
		}
		h, r := helix{mode: everySecond}, redisServer{mode: everySecond}
		rival := r.figure(theirs)
		rival.System += ", client and server"
		b.report.lower(what+", client and server", "KiB", h.figure(ours), rival, aim{limit: 16})
	}
	return nil
}

// helixIdle returns KiB a follower. The server is in this process, so its
// part is in the figure.
func helixIdle(ctx context.Context, b *bench, sessions int) (float64, error) {
	h, err := b.newHelix(ctx, everySecond)
	if err != nil {
		return 0, err
	}
	defer h.discard()
	hs := h.sessions(sessions)
	if err := fill(ctx, sessions, hs.append); err != nil {
		return 0, err
	}
	if err := settle(ctx, h); err != nil {
		return 0, err
	}
	return idle(ctx, sessions, h.follow, func() (int64, error) { return 0, nil })
}

// redisIdle returns KiB a follower: the client's in this process and the
// server's.
func redisIdle(ctx context.Context, b *bench, sessions int) (float64, error) {
	r, err := b.newRedis(ctx, everySecond)
	if err != nil {
		return 0, err
	}
	defer r.discard()
	rs := r.sessions(sessions)
	defer rs.close()
	if err := fill(ctx, sessions, rs.append); err != nil {
		return 0, err
	}
	readers := r.client(followerCount, true)
	defer readers.Close()
	return idle(ctx, sessions,
		func(a *audience) followFunc { return r.follow(readers, a) },
		func() (int64, error) { return r.info(ctx, "memory", "used_memory") })
}

// fill gives each session its records, one by one.
func fill(ctx context.Context, sessions int, store appendFunc) error {
	return deployment.Each(sessions, 64, func(s int) error {
		for n := range idleRecords {
			if err := store(ctx, s, n, 1); err != nil {
				return err
			}
		}
		return nil
	})
}

// idle starts the followers, waits until all have caught up, and returns the
// KiB that each has added here and at the server.
func idle(ctx context.Context, sessions int, followers func(*audience) followFunc, server func() (int64, error)) (float64, error) {
	ctx, cancel := context.WithCancel(ctx)
	a := newAudience(followerCount, sessions, pace{span: time.Second, every: time.Second})
	follow := followers(a)
	theirs, err := server()
	if err != nil {
		cancel()
		return 0, err
	}
	before := inUse()
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	caughtUp := make(chan error, followerCount)
	for f := range followerCount {
		wg.Go(func() {
			heard := 0
			err := follow(ctx, f, func(n int) (bool, error) {
				if heard++; heard == idleRecords {
					caughtUp <- nil
				}
				if n != heard-1 {
					return false, fmt.Errorf("follower %d heard chunk %d instead of %d", f, n, heard-1)
				}
				return false, nil
			})
			if ctx.Err() == nil {
				caughtUp <- errors.Join(errors.New("a follower ended early"), err)
			}
		})
	}
	for range followerCount {
		select {
		case err := <-caughtUp:
			if err != nil {
				return 0, err
			}
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
	here := inUse() - before
	after, err := server()
	if err != nil {
		return 0, err
	}
	return float64(here+after-theirs) / followerCount / 1024, nil
}

// inUse is the heap and the stacks of this process, in bytes.
func inUse() int64 {
	runtime.GC() // what the first one finds unused,
	runtime.GC() // the second one has swept
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}
