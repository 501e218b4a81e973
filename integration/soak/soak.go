//go:build unix

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/client"
	"github.com/helixd/helixd/integration/deployment"
)

const (
	// restWithin is how long the sessions that are under way may take to end.
	restWithin = 4 * time.Minute
	// slowWithin is how long the daemon may say that its log does not answer in
	// time, as on a disk that others keep busy.
	slowWithin = 2 * time.Minute
	// idleSession is a session that nobody writes to.
	idleSession = "idle"
)

// soak is one run of the program.
type soak struct {
	options
	folder string
	binary string // helixd
	node   *deployment.Node
	tools  *deployment.Service
	api    *client.Client // see patiently
	watch  *watch

	ctx    context.Context // ends with the first violation
	fail   context.CancelCauseFunc
	loaded context.Context // ends when no more sessions are begun
	rest   context.CancelFunc
	stays  []func() // let injected clients go

	mu      sync.Mutex
	counts  counts
	appends deployment.Samples // how long they took
	stops   deployment.Samples // how long interrupts took
	left    []kept
	did     bool // the injected wrong was done
}

// counts are what was done.
type counts struct {
	sessions, records, shown   int
	appends, runs, approvals   int
	interrupts, late           int // late: that were kept, and not met within 5 s
	chats, reconnects, resyncs int
	forks, erased, listed      int
	again                      int // requests that the log had not answered in time
}

func run(ctx context.Context, o options, folder string) (err error) {
	s := &soak{options: o, folder: folder}
	s.ctx, s.fail = context.WithCancelCause(ctx)
	defer s.fail(nil)
	s.loaded, s.rest = context.WithCancel(s.ctx)
	defer s.rest()
	deployment.Say("seed %d, %d sessions, %s", o.seed, o.sessions, o.span)
	if s.tools, err = deployment.Serve(http.HandlerFunc(tool)); err != nil {
		return err
	}
	defer s.tools.Stop()
	if err := s.launch(); err != nil {
		return err
	}
	defer s.node.Kill()
	s.watch = newWatch(s)
	for _, step := range []func() error{s.begin, s.load, s.settle, s.recheck} {
		if err := errors.Join(step(), context.Cause(s.ctx)); err != nil {
			s.watch.stop()
			s.report(nil)
			return cmp.Or(context.Cause(s.ctx), err)
		}
	}
	s.watch.stop()
	found := s.watch.judge(s.span)
	s.report(found)
	return errors.Join(errors.Join(found...), s.verify())
}

// launch builds and starts the daemon.
func (s *soak) launch() error {
	b, err := deployment.Build(s.ctx, s.folder, s.Helixd, false)
	if err != nil {
		return err
	}
	s.binary = b.Helixd
	d, err := deployment.Alone(b, s.folder, "durability: fsync\ndebug: {pprof: true}\n"+agents(s.tools.URL))
	if err != nil {
		return err
	}
	s.node, s.api = d.Nodes[0], d.Nodes[0].API
	if err := d.Start(s.ctx); err != nil {
		d.Close()
		return err
	}
	return nil
}

// begin looks at the daemon before the load: after a first run and a first append,
// so that what is made once is there.
func (s *soak) begin() error {
	err := s.patiently(func() error {
		_, err := s.api.AppendChunks(s.ctx, idleSession, deployment.TextChunk(idleSession, "idle "), client.AppendOptions{IdempotencyKey: "idle"})
		return err
	})
	if err != nil {
		return err
	}
	if _, ok := s.speak("first", "first", s.random("first", 0)); !ok {
		return nil
	}
	return s.watch.idleBefore(s.ctx)
}

// load keeps so many sessions under way, until the time is finished.
func (s *soak) load() error {
	deployment.Say("load")
	s.watch.start()
	var load sync.WaitGroup
	for i := range s.sessions {
		load.Go(func() {
			r := s.random("slot", i)
			play := s.kindOf(i)
			if !s.sleep(s.loaded, time.Duration(r.Int64N(int64(rampTime(s.span))))) {
				return
			}
			for n := 0; s.loaded.Err() == nil; n++ {
				play(fmt.Sprintf("s%d-%d", i, n), r)
			}
		})
	}
	load.Go(s.comeAndStay)
	load.Go(s.look)
	s.sleep(s.ctx, s.span)
	s.rest()
	deployment.Say("no more sessions are begun")
	done := make(chan struct{})
	go func() {
		load.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(restWithin):
		s.violate("", errors.New("sessions have not come to their end"))
		<-done
	}
	return nil
}

// rampTime is how long it takes until all sessions are there.
func rampTime(span time.Duration) time.Duration { return min(30*time.Second, span/8) }

// settle waits until the daemon is idle again.
func (s *soak) settle() error {
	return s.watch.idleAfter(s.ctx)
}

// verify ends the daemon and has its files verified.
func (s *soak) verify() error {
	for _, leave := range s.stays {
		leave()
	}
	if err := s.node.Stop(deployment.Within); err != nil {
		return err
	}
	data := filepath.Join(s.folder, "alone", "data")
	if out, err := exec.CommandContext(s.ctx, s.binary, "verify", "--data-dir", data).CombinedOutput(); err != nil {
		return fmt.Errorf("helixd verify: %w: %s", err, out)
	}
	deployment.Say("helixd verify: clean")
	return nil
}

func (s *soak) random(purpose string, i int) *rand.Rand { return deployment.Random(s.seed, purpose, i) }

// violate ends the run.
func (s *soak) violate(session string, err error) {
	if s.ctx.Err() != nil {
		return
	}
	err = fmt.Errorf("after %.1fs, session %q: %w", time.Since(deployment.Began).Seconds(), session, err)
	deployment.Say("VIOLATION %v", err)
	s.fail(err)
}

// refused reports whether a request has failed. Unless the run has ended, that is
// a violation: the daemon has nothing that would excuse it.
func (s *soak) refused(session, what string, err error) bool {
	if err != nil {
		s.violate(session, fmt.Errorf("%s: %w", what, err))
	}
	return err != nil
}

// patiently makes a request again that the log did not answer in time. It may
// have been carried out, and be refused then with one of the codes.
func (s *soak) patiently(request func() error, done ...api.Code) error {
	began := time.Now()
	return deployment.Insist(func() bool { return s.mayBeSlow(began) }, request, done...)
}

// mayBeSlow waits until something may be asked again that was asked first at
// began, and reports whether it may.
func (s *soak) mayBeSlow(began time.Time) bool {
	s.count(func(c *counts) { c.again++ })
	return time.Since(began) < slowWithin && s.sleep(s.ctx, time.Second)
}

func (s *soak) count(f func(c *counts)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.counts)
}

// sleep waits, and reports whether ctx continues.
func (s *soak) sleep(ctx context.Context, d time.Duration) bool {
	return deployment.Sleep(ctx, d) == nil
}

// between draws a time.
func between(r *rand.Rand, from, to time.Duration) time.Duration {
	return from + time.Duration(r.Int64N(int64(to-from)))
}
