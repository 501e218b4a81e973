package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/helixd/helixd/integration/deployment"
)

// pace is an open loop: each session has a schedule that does not wait for
// anybody, so a stalled store is measured by all that came due meanwhile.
type pace struct {
	sessions   int
	every      time.Duration // a session's chunk
	warm, span time.Duration // unmeasured, then measured
	// drain is how long after the span a store may take for what is left.
	drain time.Duration
}

// stuckLimit is how long after the drain an append that is still under way
// may take; then the store counts as broken.
const stuckLimit = 10 * time.Second

// appendFunc stores chunks after what it has stored of the session and
// returns when they are acknowledged. first is the first one's number.
type appendFunc func(ctx context.Context, session, first, n int) error

// pacedResult is what one run of a pace saw.
type pacedResult struct {
	fromDue  deployment.Samples // due time to ack
	fromSend deployment.Samples // the append's call to its ack
	acked    int                // within the span
	span     time.Duration
	unacked  int // after the drain; their wait up to then is among fromDue
}

func (r pacedResult) rate() float64 { return float64(r.acked) / r.span.Seconds() }

func (r pacedResult) plus(o pacedResult) pacedResult {
	return pacedResult{
		append(r.fromDue, o.fromDue...), append(r.fromSend, o.fromSend...),
		r.acked + o.acked, r.span + o.span, r.unacked + o.unacked,
	}
}

// run keeps the pace. A session has one append in flight; what comes due
// meanwhile goes with the next. counts is how many chunks each session has,
// before and after.
func (p pace) run(ctx context.Context, counts []int, store appendFunc) (pacedResult, error) {
	longest := p.every + p.warm + p.span + p.drain + stuckLimit
	ctx, stop := context.WithTimeoutCause(ctx, longest, fmt.Errorf("an append did not return within %s", longest))
	defer stop()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var (
		wg      sync.WaitGroup
		results = make([]pacedResult, p.sessions)
		phases  = rand.New(rand.NewPCG(1, 2)) // the same for every store
		begin   = time.Now().Add(50 * time.Millisecond)
	)
	for s := range p.sessions {
		first := begin.Add(time.Duration(phases.Int64N(int64(p.every))))
		wg.Go(func() {
			if err := p.session(ctx, s, begin, first, &counts[s], &results[s], store); err != nil {
				cancel(err)
			}
		})
	}
	wg.Wait()
	if err := context.Cause(ctx); err != nil {
		return pacedResult{}, err
	}
	var total pacedResult
	due, sent := make([]deployment.Samples, p.sessions), make([]deployment.Samples, p.sessions)
	for s, r := range results {
		due[s], sent[s] = r.fromDue, r.fromSend
		total.acked += r.acked
		total.unacked += r.unacked
	}
	total.fromDue, total.fromSend, total.span = slices.Concat(due...), slices.Concat(sent...), p.span
	return total, nil
}

func (p pace) session(ctx context.Context, s int, begin, first time.Time, count *int, out *pacedResult, store appendFunc) error {
	from, to := begin.Add(p.warm), begin.Add(p.warm+p.span)
	giveUp := to.Add(p.drain)
	expected := int(p.span/p.every) + 1
	out.fromDue, out.fromSend = make(deployment.Samples, 0, expected), make(deployment.Samples, 0, expected)
	for due := first; due.Before(to); {
		time.Sleep(time.Until(due))
		if ctx.Err() != nil {
			return nil
		}
		now := time.Now()
		n := 1
		for next := due.Add(p.every); !next.After(now) && next.Before(to); next = next.Add(p.every) {
			n++
		}
		var acked time.Time
		if now.Before(giveUp) {
			if err := store(ctx, s, *count, n); err != nil {
				return err
			}
			acked = time.Now()
			*count += n
		}
		for ; n > 0; n, due = n-1, due.Add(p.every) {
			switch {
			case due.Before(from):
			case acked.IsZero():
				out.unacked++
				out.fromDue = append(out.fromDue, now.Sub(due))
				continue
			default:
				out.fromDue = append(out.fromDue, acked.Sub(due))
				out.fromSend = append(out.fromSend, acked.Sub(now))
			}
			if !acked.IsZero() && !acked.Before(from) && acked.Before(to) {
				out.acked++
			}
		}
	}
	return nil
}
