package main

import (
	"context"
	"fmt"
	"time"

	"github.com/helixd/helixd/integration/deployment"
)

const (
	httpWriters = 64 // that append one chunk a request
	bulkWriters = 8  // that append many
)

// runHTTP compares servers that producers and web clients reach over HTTP. Both are
// their own processes and answer when what they acknowledge is on the disk. They
// take turns.
func runHTTP(ctx context.Context, b *bench) error {
	h := &httpRun{bench: b}
	if err := h.flat(ctx); err != nil {
		return err
	}
	if err := h.paced(ctx); err != nil {
		return err
	}
	for _, chunks := range []int{500, 1000} {
		if err := h.bulk(ctx, chunks); err != nil {
			return err
		}
	}
	for _, followers := range pick(b, []int{500, 1000}, []int{100}) {
		if err := h.fanOut(ctx, followers); err != nil {
			return err
		}
	}
	return nil
}

// httpRun is one run of the scenario.
type httpRun struct {
	*bench
	servers [2]*httpServer // helixd, and its rival
}

// serve starts both servers, each on a fresh folder: the rival takes appends to 100
// streams only, since it keeps no more files open.
func (h *httpRun) serve(ctx context.Context) (stop func(), err error) {
	ours, err := h.newHelixd(ctx)
	if err != nil {
		return nil, err
	}
	theirs, err := h.newDurableStreams(ctx)
	if err != nil {
		ours.discard()
		return nil, err
	}
	h.servers = [2]*httpServer{ours, theirs}
	return func() {
		ours.discard()
		theirs.discard()
	}, nil
}

// both runs something on each server in turn, and checks what they hold afterwards.
func (h *httpRun) both(ctx context.Context, sessions int, f func(system int, s *httpSessions, counts []int) error) error {
	stop, err := h.serve(ctx)
	if err != nil {
		return err
	}
	defer stop()
	var turns [2]func() error
	var all [2]*httpSessions
	var counts [2][]int
	for i, server := range h.servers {
		if all[i], err = server.sessions(ctx, 0, sessions); err != nil {
			return err
		}
		counts[i] = make([]int, sessions)
		turns[i] = func() error { return f(i, all[i], counts[i]) }
	}
	if err := inTurn(turns[:]...); err != nil {
		return err
	}
	for i, s := range all {
		if err := s.verify(ctx, counts[i]); err != nil {
			return err
		}
	}
	return nil
}

// flat is how many chunks a second come through that are a request each.
func (h *httpRun) flat(ctx context.Context) error {
	span := pick(h.bench, 5*time.Second, 500*time.Millisecond)
	var rates [2]float64 // of two turns each
	err := h.both(ctx, httpWriters, func(i int, s *httpSessions, counts []int) error {
		rate, err := flatOut(ctx, span, counts, s.append)
		rates[i] += rate / 2
		h.say("HTTP, %s, %d writers: %.0f/s", s.system, httpWriters, rate)
		return err
	})
	if err != nil {
		return err
	}
	ours, theirs := h.servers[0].figure(rates[0]), h.servers[1].figure(rates[1])
	what := fmt.Sprintf("%d writers, one chunk a request", httpWriters)
	h.report.higher(what, "chunks/s", ours, theirs, aim{limit: 6000})
	h.report.higher(what, "chunks/s", ours, theirs, aim{ratio: 2})
	return nil
}

// paced is how soon chunks are acknowledged that come at a pace.
func (h *httpRun) paced(ctx context.Context) error {
	const sessions = 60
	p := pace{
		sessions: sessions, every: pacedEvery,
		warm: pick(h.bench, time.Second, 300*time.Millisecond), span: pick(h.bench, 5*time.Second, time.Second),
		drain: pick(h.bench, 5*time.Second, time.Second),
	}
	var results [2]pacedResult
	err := h.both(ctx, sessions, func(i int, s *httpSessions, counts []int) error {
		result, err := p.run(ctx, counts, s.append)
		results[i] = results[i].plus(result)
		h.say("HTTP, %s, %d sessions × 50/s: p50 %.2f, p99 %.2f ms, %.0f/s", s.system, sessions,
			result.fromDue.MS(0.5), result.fromDue.MS(0.99), result.rate())
		return err
	})
	if err != nil {
		return err
	}
	const what = "60 sessions × 50/s, "
	ours, theirs := h.servers[0], h.servers[1]
	h.report.lower(what+"due to ack, p50", "ms", ours.figure(results[0].fromDue.MS(0.5)), theirs.figure(results[1].fromDue.MS(0.5)), aim{limit: 1.5})
	h.report.lower(what+"due to ack, p99", "ms", ours.figure(results[0].fromDue.MS(0.99)), theirs.figure(results[1].fromDue.MS(0.99)), aim{limit: 10})
	asked := float64(sessions) * float64(time.Second) / float64(pacedEvery)
	h.report.higher(what+"rate", "acks/s", ours.figure(results[0].rate()), theirs.figure(results[1].rate()), aim{limit: asked * (1 - pacedSlack)})
	return nil
}

// bulk is how many chunks a second come through, many a request.
func (h *httpRun) bulk(ctx context.Context, chunks int) error {
	span := pick(h.bench, 3*time.Second, 500*time.Millisecond)
	var rates [2]float64
	err := h.both(ctx, bulkWriters, func(i int, s *httpSessions, counts []int) error {
		requests := make([]int, bulkWriters)
		rate, err := flatOut(ctx, span, requests, func(ctx context.Context, w, _, _ int) error {
			if err := s.append(ctx, w, counts[w], chunks); err != nil {
				return err
			}
			counts[w] += chunks
			return nil
		})
		rates[i] += rate * float64(chunks) / 2
		return err
	})
	if err != nil {
		return err
	}
	h.report.higher(fmt.Sprintf("%d writers, %s chunks a request", bulkWriters, thousands(chunks)), "chunks/s",
		h.servers[0].figure(rates[0]), h.servers[1].figure(rates[1]), aim{limit: 40_000})
	return nil
}

// fanOut is how soon the clients of one session's stream have its chunks.
func (h *httpRun) fanOut(ctx context.Context, followers int) error {
	p := pace{
		sessions: 1, every: pacedEvery,
		warm: pick(h.bench, time.Second, 100*time.Millisecond), span: pick(h.bench, 3*time.Second, 700*time.Millisecond),
		drain: time.Minute, // the rival needs it: its appends wait for its streams
	}
	stop, err := h.serve(ctx)
	if err != nil {
		return err
	}
	defer stop()
	var heard [2]deployment.Samples
	used := 0
	// Each turn has a session to itself: followers begin with its first chunk.
	var turns [2]func() error
	for i, server := range h.servers {
		turns[i] = func() error {
			s, err := server.sessions(ctx, used, 1)
			if err != nil {
				return err
			}
			used++
			a := newAudience(followers, 1, p)
			a.templates = s.templates
			got, err := a.run(ctx, p, s.append, s.follow(a))
			heard[i] = append(heard[i], got...)
			server.client.CloseIdleConnections()
			h.say("HTTP, %s, %d clients: p50 %.2f, p99 %.2f ms", s.system, followers, got.MS(0.5), got.MS(0.99))
			return err
		}
	}
	if err := inTurn(turns[:]...); err != nil {
		return err
	}
	most := 15.0
	if followers > 500 {
		most = 30
	}
	what := thousands(followers) + " SSE clients of one session, 50/s, call to delivery, "
	ours, theirs := h.servers[0], h.servers[1]
	h.report.lower(what+"p50", "ms", ours.figure(heard[0].MS(0.5)), theirs.figure(heard[1].MS(0.5)), aim{})
	h.report.lower(what+"p99", "ms", ours.figure(heard[0].MS(0.99)), theirs.figure(heard[1].MS(0.99)), aim{limit: most})
	return nil
}
