package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// runFlat compares rates when every session waits for its ack and appends
// again at once.
func runFlat(ctx context.Context, b *bench) error {
	var failed []error
	for _, c := range []struct {
		mode
		sessions int
		raw      aim
	}{
		{mode: everySecond, sessions: 64, raw: aim{ratio: 0.9}},
		{mode: everyAppend, sessions: 64, raw: aim{limit: 30_000}},
		{mode: everyAppend, sessions: 512, raw: aim{limit: 60_000}},
	} {
		if err := flat(ctx, b, c.mode, c.sessions, c.raw); err != nil {
			failed = append(failed, fmt.Errorf("%d sessions, %s: %w", c.sessions, c.durability, err))
		}
	}
	return errors.Join(failed...)
}

func flat(ctx context.Context, b *bench, m mode, flatSessions int, limited aim) error {
	span := pick(b, 5*time.Second, 500*time.Millisecond)
	h, err := b.newHelix(ctx, m)
	if err != nil {
		return err
	}
	defer h.discard()
	raw, err := b.newRaw(ctx, m, flatSessions)
	if err != nil {
		return err
	}
	defer raw.discard()
	r, err := b.newRedis(ctx, m)
	if err != nil {
		return err
	}
	defer r.discard()
	pooled, err := b.newRedis(ctx, m)
	if err != nil {
		return err
	}
	defer pooled.discard()
	hs, rs, ps := h.sessions(flatSessions), r.sessions(flatSessions), pooled.pooled(flatSessions, flatSessions)
	defer rs.close()
	defer ps.close()

	var rates [4]float64 // of two turns each
	var counts [4][]int
	turn := func(system int, store appendFunc) func() error {
		counts[system] = make([]int, flatSessions)
		return func() error {
			rate, err := flatOut(ctx, span, counts[system], store)
			rates[system] += rate / 2
			return err
		}
	}
	if err := inTurn(turn(0, hs.append), turn(1, raw.append), turn(2, rs.append), turn(3, ps.append)); err != nil {
		return err
	}
	if err := verifyAll(ctx, counts[:], hs, raw, rs, pooled); err != nil {
		return err
	}
	what := fmt.Sprintf("%d sessions, one record an append", flatSessions)
	theirs, single, limit := rs.figure(rates[2]), rs.figure(rates[3]), raw.figure(rates[1])
	theirs.System += ", pipelined"
	single.System += fmt.Sprintf(", %d connections", flatSessions)
	b.report.higher(what, "records/s", h.figure(rates[0]), theirs, aim{})
	b.report.higher(what, "records/s", h.figure(rates[0]), single, aim{})
	b.report.higher(what, "records/s", h.figure(rates[0]), limit, limited)
	return nil
}

// flatOut returns acknowledged records a second.
func flatOut(ctx context.Context, span time.Duration, counts []int, store appendFunc) (float64, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	begin, before := time.Now(), 0
	for _, n := range counts {
		before += n
	}
	var wg sync.WaitGroup
	for s := range counts {
		wg.Go(func() {
			for time.Since(begin) < span && ctx.Err() == nil {
				if err := store(ctx, s, counts[s], 1); err != nil {
					cancel(err)
					return
				}
				counts[s]++
			}
		})
	}
	wg.Wait()
	if err := context.Cause(ctx); err != nil {
		return 0, err
	}
	took, after := time.Since(begin), 0
	for _, n := range counts {
		after += n
	}
	return float64(after-before) / took.Seconds(), nil
}
