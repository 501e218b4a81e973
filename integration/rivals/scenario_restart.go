package main

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream"
	"github.com/helixd/helixd/integration/deployment"
)

const (
	restartRecords = 3 // of a session
	// restartWriters is how many sessions are created at a time.
	restartWriters = 600
	restartTurns   = 3
)

// runRestart compares how soon a store that holds many sessions is back.
func runRestart(ctx context.Context, b *bench) error {
	sessions := pick(b, 200_000, 20_000)
	var ours, theirs deployment.Samples
	var heap, used float64
	if err := restartHelix(ctx, b, sessions, &ours, &heap); err != nil {
		return err
	}
	if err := restartRedis(ctx, b, sessions, &theirs, &used); err != nil {
		return err
	}
	h, r := helix{mode: everySecond}, redisServer{mode: everySecond}
	what := fmt.Sprintf("%s sessions of %d records, ", thousands(sessions), restartRecords)
	rival := r.figure(theirs.MS(0.5) / 1e3)
	b.report.lower(what+"start to first read, median", "s", h.figure(ours.MS(0.5)/1e3), rival, aim{limit: 2})
	rival = r.figure(used)
	b.report.lower(what+"memory a session", "B", h.figure(heap), rival, aim{limit: 600})
	return nil
}

func restartHelix(ctx context.Context, b *bench, sessions int, took *deployment.Samples, heap *float64) error {
	before := heapAlloc()
	h, err := b.newHelix(ctx, everySecond)
	if err != nil {
		return err
	}
	defer func() { h.discard() }()
	b.say("helixd: %d sessions", sessions)
	if err := h.create(ctx, sessions); err != nil {
		return err
	}
	if err := settle(ctx, h); err != nil {
		return err
	}
	last := newTemplate(sessionName(sessions - 1))
	for range restartTurns {
		h.stop()
		h = &helix{dir: h.dir} // a start does not pay for what was before
		runtime.GC()
		begin := time.Now()
		next, err := startHelix(ctx, h.dir, everySecond)
		if err != nil {
			return err
		}
		h = next
		if err := h.verifySession(ctx, last, sessionName(sessions-1), restartRecords); err != nil {
			return err
		}
		*took = append(*took, time.Since(begin))
		*heap = float64(heapAlloc()-before) / float64(sessions)
	}
	n := 0
	for _, err := range h.log.Sessions(ctx) {
		if err != nil {
			return err
		}
		n++
	}
	if n != sessions {
		return fmt.Errorf("helixd: %d sessions are left of %d", n, sessions)
	}
	return nil
}

// create appends to that many new sessions, one append each. It uses a log
// that shares batches among appends, which is the fastest way; what is stored
// is the same.
func (h *helix) create(ctx context.Context, sessions int) error {
	log, err := jetstream.Open(ctx, h.nc, &jetstream.Options{Durability: eventlog.DurabilityUnknown})
	if err != nil {
		return err
	}
	defer log.Close()
	return deployment.Each(sessions, restartWriters, func(s int) error {
		t := newTemplate(sessionName(s))
		_, err := log.Append(ctx, sessionName(s), 0, t.entries(t.payloads(0, restartRecords)))
		return err
	})
}

func restartRedis(ctx context.Context, b *bench, sessions int, took *deployment.Samples, used *float64) error {
	r, err := b.newRedis(ctx, everySecond)
	if err != nil {
		return err
	}
	defer func() { r.discard() }()
	b.say("Redis: %d sessions", sessions)
	if err := r.create(ctx, sessions); err != nil {
		return err
	}
	for range restartTurns {
		r.stop()
		begin := time.Now()
		next, err := startRedis(ctx, r.dir, everySecond)
		if err != nil {
			return err
		}
		r = next
		page, err := r.rdb.XRange(ctx, sessionName(sessions-1), "-", "+").Result()
		if err != nil || len(page) != restartRecords {
			return fmt.Errorf("redis: the last session has %d entries: %w", len(page), err)
		}
		*took = append(*took, time.Since(begin))
		n, err := r.info(ctx, "memory", "used_memory")
		if err != nil {
			return err
		}
		*used = float64(n) / float64(sessions)
	}
	n, err := r.rdb.DBSize(ctx).Result()
	if err == nil && int(n) != sessions {
		err = fmt.Errorf("redis: %d sessions are left of %d", n, sessions)
	}
	return err
}

// create adds as many streams and rewrites the file once, so that a start
// loads it in its compact form.
func (r *redisServer) create(ctx context.Context, sessions int) error {
	const group = 100
	err := deployment.Each(sessions/group, redisLanes, func(g int) error {
		pipe := r.rdb.Pipeline()
		for s := g * group; s < (g+1)*group; s++ {
			for _, p := range newTemplate(sessionName(s)).payloads(0, restartRecords) {
				pipe.XAdd(ctx, xadd(sessionName(s), p))
			}
		}
		_, err := pipe.Exec(ctx)
		return err
	})
	if err != nil {
		return err
	}
	if err := r.rdb.BgRewriteAOF(ctx).Err(); err != nil {
		return err
	}
	return deployment.Until(ctx, settlePoll, func() (bool, error) {
		running, err := r.info(ctx, "persistence", "aof_rewrite_in_progress")
		return running == 0, err
	})
}

// heapAlloc is what this process holds, in bytes.
func heapAlloc() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
