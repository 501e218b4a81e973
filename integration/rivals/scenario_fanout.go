package main

import (
	"context"
	"time"

	"github.com/helixd/helixd/integration/deployment"
)

// followerCount is how many followers there are.
const followerCount = 1000

// runFanOut compares how soon all followers of one session have its chunks.
func runFanOut(ctx context.Context, b *bench) error {
	p := pace{
		sessions: 1, every: 20 * time.Millisecond,
		warm: pick(b, time.Second, 100*time.Millisecond), span: pick(b, 5*time.Second, 700*time.Millisecond),
		drain: 5 * time.Second,
	}
	ours, core, theirs, err := delivered(ctx, b, everySecond, followerCount, p, true)
	if err != nil {
		return err
	}
	h, r := helix{mode: everySecond}, redisServer{mode: everySecond}
	fan := func(q float64) figure {
		return figure{System: "core NATS subscriptions", Durability: "behind the same log", Value: core.MS(q)}
	}
	const what = "1,000 followers of one session, 50/s, call to delivery, "
	xread, plain := r.figure(theirs.MS(0.5)), fan(0.5)
	b.report.lower(what+"p50", "ms", h.figure(ours.MS(0.5)), xread, aim{ratio: 10})
	b.report.lower(what+"p50", "ms", h.figure(ours.MS(0.5)), plain, aim{ratio: 0.5})
	xread, plain = r.figure(theirs.MS(0.99)), fan(0.99)
	b.report.lower(what+"p99", "ms", h.figure(ours.MS(0.99)), xread, aim{})
	b.report.lower(what+"p99", "ms", h.figure(ours.MS(0.99)), plain, aim{})
	return nil
}

// delivered runs the same audience on each system in turn.
func delivered(ctx context.Context, b *bench, m mode, followers int, p pace, withCore bool) (ours, core, theirs deployment.Samples, err error) {
	runHelix := func(core bool, to *deployment.Samples) func() error {
		return func() error {
			h, err := b.newHelix(ctx, m)
			if err != nil {
				return err
			}
			defer h.discard()
			a := newAudience(followers, p.sessions, p)
			follow := h.follow(a)
			if core {
				nc, err := h.srv.Connect()
				if err != nil {
					return err
				}
				defer nc.Close()
				follow = followCore(nc, a)
			}
			heard, err := a.run(ctx, p, h.sessions(p.sessions).append, follow)
			*to = append(*to, heard...)
			return err
		}
	}
	runRedis := func() error {
		r, err := b.newRedis(ctx, m)
		if err != nil {
			return err
		}
		defer r.discard()
		rs := r.sessions(p.sessions)
		defer rs.close()
		readers := r.client(followers, true)
		defer readers.Close()
		a := newAudience(followers, p.sessions, p)
		heard, err := a.run(ctx, p, rs.append, r.follow(readers, a))
		theirs = append(theirs, heard...)
		return err
	}
	systems := []func() error{runHelix(false, &ours)}
	if withCore {
		systems = append(systems, runHelix(true, &core))
	}
	err = inTurn(append(systems, runRedis)...)
	return ours, core, theirs, err
}
