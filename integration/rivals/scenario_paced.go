package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	// pacedEvery is the time between a session's chunks.
	pacedEvery = 20 * time.Millisecond
	// pacedPool is the connections of Redis's pool; of 32, 128 and 1,000 the
	// best with fsync.
	pacedPool = 128
	// pacedSlack is what the edges of a span may take from its rate.
	pacedSlack = 0.01
)

// runPaced compares latencies at a model's pace.
func runPaced(ctx context.Context, b *bench) error {
	var failed []error
	for _, c := range []struct {
		mode
		sessions int
		p50, p99 aim
	}{
		{mode: everyAppend, sessions: 1000, p50: aim{limit: 10}, p99: aim{ratio: 0.5}},
		{mode: everySecond, sessions: 1000, p50: aim{ratio: 1.5}, p99: aim{ratio: 1.5}},
		{mode: everyAppend, sessions: 60, p50: aim{limit: 1.5}},
	} {
		if err := paced(ctx, b, c.mode, c.sessions, c.p50, c.p99); err != nil {
			failed = append(failed, fmt.Errorf("%d sessions, %s: %w", c.sessions, c.durability, err))
		}
	}
	return errors.Join(failed...)
}

// paced runs all in turn: helixd, Redis by pipelines, raw JetStream, and in the full run
// Redis by a pool of connections.
func paced(ctx context.Context, b *bench, m mode, sessions int, p50, p99 aim) error {
	p := pace{
		sessions: sessions, every: pacedEvery,
		warm: pick(b, time.Second, 300*time.Millisecond), span: pick(b, 5*time.Second, time.Second),
		drain: pick(b, 5*time.Second, time.Second),
	}
	h, err := b.newHelix(ctx, m)
	if err != nil {
		return err
	}
	defer h.discard()
	r, err := b.newRedis(ctx, m)
	if err != nil {
		return err
	}
	defer r.discard()
	pool, err := b.newRedis(ctx, m)
	if err != nil {
		return err
	}
	defer pool.discard()
	raw, err := b.newRaw(ctx, m, sessions)
	if err != nil {
		return err
	}
	defer raw.discard()
	hs, rs, ps := h.sessions(sessions), r.sessions(sessions), pool.pooled(sessions, pacedPool)
	defer rs.close()
	defer ps.close()

	var results [4]pacedResult
	var counts [4][]int
	turn := func(system int, name string, store appendFunc) func() error {
		counts[system] = make([]int, sessions)
		return func() error {
			result, err := p.run(ctx, counts[system], store)
			results[system] = results[system].plus(result)
			b.say("%s, %s, %d sessions: p50 %.2f, p99 %.2f ms", name, m.durability, sessions, result.fromDue.MS(0.5), result.fromDue.MS(0.99))
			if result.unacked > 0 {
				b.say("%d chunks were not acknowledged %s after the span", result.unacked, p.drain)
			}
			return err
		}
	}
	systems := []func() error{turn(0, "helixd", hs.write), turn(1, "Redis, pipelined", rs.append), turn(2, "raw JetStream", raw.append)}
	if !b.short {
		systems = append(systems, turn(3, "Redis, pool", ps.append))
	}
	if err := inTurn(systems...); err != nil {
		return err
	}
	if err := verifyAll(ctx, counts[:], hs, r, raw, pool); err != nil {
		return err
	}

	what := thousands(sessions) + " sessions × 50/s, "
	redis := func(name string) func(v float64) figure {
		return func(v float64) figure {
			f := r.figure(v)
			f.System += ", " + name
			return f
		}
	}
	rivals := []func(v float64) figure{redis("pipelined"), raw.figure, redis(fmt.Sprintf("%d connections", pacedPool))}
	for i, rival := range rivals[:len(systems)-1] {
		ours, theirs := results[0], results[1+i]
		if i > 0 {
			p50, p99 = aim{}, aim{}
		}
		b.report.lower(what+"due to ack, p50", "ms", h.figure(ours.fromDue.MS(0.5)), rival(theirs.fromDue.MS(0.5)), p50)
		b.report.lower(what+"due to ack, p99", "ms", h.figure(ours.fromDue.MS(0.99)), rival(theirs.fromDue.MS(0.99)), p99)
		b.report.lower(what+"call to ack, p50", "ms", h.figure(ours.fromSend.MS(0.5)), rival(theirs.fromSend.MS(0.5)), aim{})
		b.report.lower(what+"call to ack, p99", "ms", h.figure(ours.fromSend.MS(0.99)), rival(theirs.fromSend.MS(0.99)), aim{})
		sustained := aim{}
		if i == 0 {
			asked := float64(sessions) * float64(time.Second) / float64(pacedEvery)
			sustained.limit = asked * (1 - pacedSlack)
		}
		b.report.higher(what+"rate", "acks/s", h.figure(ours.rate()), rival(theirs.rate()), sustained)
	}
	return nil
}
