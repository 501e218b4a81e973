package main

import (
	"context"
	"fmt"
	"time"

	"github.com/helixd/helixd/integration/deployment"
)

// runCatchUp compares reading a session from its beginning.
func runCatchUp(ctx context.Context, b *bench) error {
	if err := catchUpLong(ctx, b); err != nil {
		return err
	}
	return catchUpAmongOthers(ctx, b)
}

// xrangeCounts are the page sizes that XRANGE is tried with; the best counts.
var xrangeCounts = []int64{200, 1000, 5000}

// catchUpLong reads one long session that has the log for itself.
func catchUpLong(ctx context.Context, b *bench) error {
	records := pick(b, 100_000, 20_000)
	return catchUp(ctx, b, fmt.Sprintf("a session of %s", thousands(records)), records, pick(b, 7, 3), nil)
}

// catchUpAmongOthers reads a short session whose records are spread evenly
// among many of other sessions.
func catchUpAmongOthers(ctx context.Context, b *bench) error {
	records, foreign := 400, pick(b, 500_000, 50_000)
	what := fmt.Sprintf("a session of %d among %s foreign records", records, thousands(foreign))
	return catchUp(ctx, b, what, records, pick(b, 101, 21), func(batch func(foreign, ours int) error) error {
		batches, done := foreign/importBatch, 0
		for i := range batches {
			// The records of ours after this batch, so that they are spread.
			upTo := records * (i + 1) / batches
			if err := batch(importBatch, upTo-done); err != nil {
				return err
			}
			done = upTo
		}
		return nil
	})
}

// foreignSessions is among how many sessions foreign records are.
const foreignSessions = 100

// catchUp writes session 0 and times reads of it. spread calls its argument
// with what is to be written, foreign records first; nil: session 0 alone.
func catchUp(ctx context.Context, b *bench, what string, records, reads int, spread func(func(foreign, ours int) error) error) error {
	h, err := b.newHelix(ctx, everySecond)
	if err != nil {
		return err
	}
	defer h.discard()
	r, err := b.newRedis(ctx, everySecond)
	if err != nil {
		return err
	}
	defer r.discard()
	hs, rs := h.sessions(1+foreignSessions), r.sessions(1+foreignSessions)
	defer rs.close()
	if spread == nil {
		spread = func(batch func(foreign, ours int) error) error {
			for n := 0; n < records; n += importBatch {
				if err := batch(0, min(importBatch, records-n)); err != nil {
					return err
				}
			}
			return nil
		}
	}
	b.say("writing: %s", what)
	for _, store := range []appendFunc{hs.append, rs.append} {
		counts, turn := make([]int, 1+foreignSessions), 0
		err := spread(func(foreign, ours int) error {
			if foreign > 0 {
				s := 1 + turn%foreignSessions
				turn++
				if err := store(ctx, s, counts[s], foreign); err != nil {
					return err
				}
				counts[s] += foreign
			}
			if ours > 0 {
				if err := store(ctx, 0, counts[0], ours); err != nil {
					return err
				}
				counts[0] += ours
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	if err := settle(ctx, h); err != nil {
		return err
	}
	if err := h.verifySession(ctx, hs.templates[0], sessionName(0), records); err != nil {
		return err
	}

	b.say("reading")
	var ours deployment.Samples
	theirs := map[int64]deployment.Samples{}
	for range reads {
		took, err := timed(func() (int, error) { return h.drain(ctx, hs.templates[0]) }, records)
		if err != nil {
			return err
		}
		ours = append(ours, took)
		for _, size := range xrangeCounts {
			took, err := timed(func() (int, error) { return r.drain(ctx, rs.templates[0], size) }, records)
			if err != nil {
				return err
			}
			theirs[size] = append(theirs[size], took)
		}
	}
	best := xrangeCounts[0]
	for _, size := range xrangeCounts {
		if theirs[size].At(0.5) < theirs[best].At(0.5) {
			best = size
		}
	}
	rival := r.figure(theirs[best].MS(0.5))
	rival.System += fmt.Sprintf(", XRANGE COUNT %d", best)
	b.report.lower(what+", read whole, median", "ms", h.figure(ours.MS(0.5)), rival, aim{ratio: 1})
	return nil
}

// timed runs a read that has to find so many records.
func timed(read func() (int, error), records int) (time.Duration, error) {
	begin := time.Now()
	n, err := read()
	took := time.Since(begin)
	if err == nil && n != records {
		err = fmt.Errorf("a read found %d records of %d", n, records)
	}
	return took, err
}

// drain reads session 0, looks at every payload and returns their number.
func (h *helix) drain(ctx context.Context, t template) (n int, err error) {
	for r, err := range h.log.Read(ctx, sessionName(0), 0, 0) {
		if err != nil {
			return n, err
		}
		if i := indexOf(t, r.Payload); i != n {
			return n, fmt.Errorf("helixd: read chunk %d instead of %d", i, n)
		}
		n++
	}
	return n, nil
}

// drain is the same in pages of a size.
func (r *redisServer) drain(ctx context.Context, t template, size int64) (n int, err error) {
	for from := "-"; ; {
		page, err := r.rdb.XRangeN(ctx, sessionName(0), from, "+", size).Result()
		if err != nil {
			return n, err
		}
		for _, m := range page {
			text, _ := m.Values[redisField].(string)
			if i := indexOf(t, text); i != n {
				return n, fmt.Errorf("redis: read chunk %d instead of %d", i, n)
			}
			n++
		}
		if int64(len(page)) < size {
			return n, nil
		}
		from = "(" + page[len(page)-1].ID
	}
}
