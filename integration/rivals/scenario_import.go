package main

import (
	"context"
	"fmt"
	"time"
)

// importBatch is the records of one append, and of one of Redis's pipelines.
const importBatch = 1000

// runImport compares how fast one session takes many records.
func runImport(ctx context.Context, b *bench) error {
	for _, m := range []mode{everySecond, everyAppend} {
		if err := importInto(ctx, b, m); err != nil {
			return err
		}
	}
	return nil
}

func importInto(ctx context.Context, b *bench, m mode) error {
	records := pick(b, 100_000, 10_000)
	// A plain publish waits for the disk each time: its rate needs no more.
	single := records
	if m == everyAppend {
		single = pick(b, 20_000, 2_000)
	}
	h, err := b.newHelix(ctx, m)
	if err != nil {
		return err
	}
	defer h.discard()
	raw, err := b.newRaw(ctx, m, 4)
	if err != nil {
		return err
	}
	defer raw.discard()
	r, err := b.newRedis(ctx, m)
	if err != nil {
		return err
	}
	defer r.discard()
	hs := h.sessions(2)

	// Every turn has its own session.
	var rates [4]float64
	var turns [4]int
	rawCounts, redisCounts, ourCounts := make([]int, 4), make([]int, 2), make([]int, 2)
	turn := func(system, records, batch int, counts []int, store appendFunc) func() error {
		return func() error {
			s := turns[system]
			turns[system]++
			if system == 2 {
				s += 2
			}
			begin := time.Now()
			for counts[s] < records {
				n := min(batch, records-counts[s])
				if err := store(ctx, s, counts[s], n); err != nil {
					return err
				}
				counts[s] += n
			}
			rates[system] += float64(records) / time.Since(begin).Seconds() / 2
			return nil
		}
	}
	rt := templates(2)
	pipelined := func(ctx context.Context, s, first, n int) error {
		pipe := r.rdb.Pipeline()
		for _, p := range rt[s].payloads(first, n) {
			pipe.XAdd(ctx, xadd(sessionName(s), p))
		}
		_, err := pipe.Exec(ctx)
		return err
	}
	b.say("%s", m.durability)
	err = inTurn(
		turn(0, records, importBatch, ourCounts, hs.append),
		turn(1, single, importBatch, rawCounts, raw.append),
		turn(2, single, single, rawCounts, raw.appendAsync),
		turn(3, records, importBatch, redisCounts, pipelined),
	)
	if err != nil {
		return err
	}
	if err := verifyAll(ctx, [][]int{ourCounts, rawCounts, redisCounts}, hs, raw, r); err != nil {
		return err
	}
	what := fmt.Sprintf("one session, %s records", thousands(records))
	cas, async, theirs := raw.figure(rates[1]), raw.figure(rates[2]), r.figure(rates[3])
	cas.System += ", each compared"
	async.System += ", async, not compared"
	theirs.System += ", pipelined"
	b.report.higher(what, "records/s", h.figure(rates[0]), cas, aim{ratio: 1})
	b.report.higher(what, "records/s", h.figure(rates[0]), async, aim{})
	b.report.higher(what, "records/s", h.figure(rates[0]), theirs, aim{})
	return nil
}
