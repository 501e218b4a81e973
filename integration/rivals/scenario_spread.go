package main

import (
	"context"
	"time"
)

// runSpread compares followers that share nothing: one a session.
func runSpread(ctx context.Context, b *bench) error {
	p := pace{
		sessions: followerCount, every: 200 * time.Millisecond,
		warm: pick(b, time.Second, 200*time.Millisecond), span: pick(b, 5*time.Second, 800*time.Millisecond),
		drain: 5 * time.Second,
	}
	ours, _, theirs, err := delivered(ctx, b, everySecond, followerCount, p, false)
	if err != nil {
		return err
	}
	h, r := helix{mode: everySecond}, redisServer{mode: everySecond}
	const what = "1,000 followers of 1,000 sessions, 5/s each, call to delivery, "
	median, tail := r.figure(theirs.MS(0.5)), r.figure(theirs.MS(0.99))
	b.report.lower(what+"p50", "ms", h.figure(ours.MS(0.5)), median, aim{ratio: 1})
	b.report.lower(what+"p99", "ms", h.figure(ours.MS(0.99)), tail, aim{ratio: 1})
	return nil
}
