package main

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/helixd/helixd/integration/deployment"
)

const (
	// starters is how many requests are under way while sessions begin.
	starters = 16
	// calm is how long the daemon is left alone before its memory is read.
	calm = 2 * time.Second
	// aim is what p99 should stay below.
	aim = 30 * time.Millisecond
)

// run is a daemon with its clients.
type run struct {
	*load
	d *daemon
	r *report

	ctx    context.Context // ends with the first failure
	fail   context.CancelCauseFunc
	busy   sync.WaitGroup // clients and producers
	joined sync.WaitGroup // clients that have heard nothing yet
}

// measure runs a daemon with its clients and reports.
func measure(ctx context.Context, o options, folder string) (*report, error) {
	r := &run{load: newLoad(o), r: newReport(o)}
	model, err := deployment.Serve(&provider{load: r.load})
	if err != nil {
		return nil, err
	}
	defer model.Stop()
	if r.d, err = startDaemon(ctx, folder, o, model.URL); err != nil {
		return nil, err
	}
	defer r.d.stop()
	if err := r.r.syncCost(folder); err != nil {
		return nil, err
	}
	r.ctx, r.fail = context.WithCancelCause(ctx)
	defer r.busy.Wait()
	defer r.fail(nil)
	for _, step := range []func() error{r.join, r.pace, r.end} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return r.r, nil
}

// join begins the sessions and attaches the clients, and looks at the daemon's
// memory in between.
func (r *run) join() error {
	idle, active := each(r.clients, idleName), each(r.clients, activeName)
	begin := r.d.begin
	if r.by == byAgents {
		begin = r.d.run
	}
	silent := func(int, chunk) error { return nil }
	for _, step := range []struct {
		with, each string
		do         func() error
	}{
		{"no client", "", func() error { return r.all(idle, r.d.begin) }},
		{"idle clients", "an idle client", func() error { return r.attach(idle, silent) }},
		{"active sessions, too", "an active session", func() error { return r.all(active, begin) }},
		{"their clients, too", "its client", func() error { return r.attach(active, r.hear) }},
	} {
		if err := step.do(); err != nil {
			return err
		}
		if err := r.r.memory(r.ctx, r.d, step.with, step.each); err != nil {
			return err
		}
	}
	return nil
}

// attach has a client follow each session, and returns when each has heard
// something.
func (r *run) attach(sessions []string, hear func(s int, c chunk) error) error {
	deployment.Say("%d clients", len(sessions))
	r.joined.Add(len(sessions))
	for s, session := range sessions {
		first := sync.OnceFunc(r.joined.Done)
		r.busy.Go(func() {
			err := r.d.follow(r.ctx, session, func(c chunk) error {
				first()
				return hear(s, c)
			})
			if err != nil {
				r.fail(err)
			}
		})
	}
	return wait(r.ctx, &r.joined)
}

// pace lets the chunks come due, and waits until all have been heard.
func (r *run) pace() error {
	deployment.Say("%g chunks/s for %s", r.total(), r.warm+r.span)
	r.start()
	if r.by == byProducers {
		for s := range r.clients {
			r.busy.Go(func() {
				err := r.keepPace(r.ctx, s, func(n int) error { return r.d.append(r.ctx, activeName(s), r.token(s, n)) })
				if err != nil {
					r.fail(err)
				}
			})
		}
	}
	if err := r.r.underLoad(r.ctx, r.load, r.d); err != nil {
		return err
	}
	return wait(r.ctx, &r.done)
}

// end ends the daemon while all clients are there.
func (r *run) end() error {
	r.r.latencies(r.load)
	logs := r.d.dump()
	r.r.goroutines(logs)
	if r.log == "" {
		return nil
	}
	return os.WriteFile(r.log, []byte(logs), 0o600)
}

func idleName(s int) string { return fmt.Sprintf("idle-%04d", s) }

func activeName(s int) string { return fmt.Sprintf("active-%04d", s) }

// each names n sessions.
func each(n int, name func(int) string) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = name(i)
	}
	return all
}

// all calls f for each session, some at a time, until one fails.
func (r *run) all(sessions []string, f func(ctx context.Context, session string) error) error {
	return deployment.Each(len(sessions), starters, func(i int) error { return f(r.ctx, sessions[i]) })
}

// wait waits for a group within ctx. If ctx ends first, its goroutine stays until the
// group is done or the program ends.
func wait(ctx context.Context, group *sync.WaitGroup) error {
	done := make(chan struct{})
	go func() { group.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
