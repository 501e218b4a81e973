//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/helixd/helixd/eventlog"
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
	began  time.Time
	folder string
	node   *deployment.Node
	tools  *tools
	http   *http.Client
	api    *client.Client // repeats nothing: each refusal counts, but see patiently
	watch  *watch

	ctx    context.Context // ends with the first violation
	fail   context.CancelCauseFunc
	loaded context.Context // ends when no more sessions are begun
	rest   context.CancelFunc
	stays  []func() // let injected clients go

	mu      sync.Mutex
	counts  counts
	appends []time.Duration // how long they took
	stops   []time.Duration // how long interrupts took
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

func run(ctx context.Context, o options) (err error) {
	s := &soak{
		options: o, began: time.Now(),
		http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64, IdleConnTimeout: 10 * time.Second, DisableCompression: true}},
	}
	if s.folder, err = os.MkdirTemp(o.dir, "soak-"); err != nil {
		return err
	}
	defer func() {
		if (err == nil || o.inject != "") && !o.keep {
			os.RemoveAll(s.folder)
			return
		}
		s.say("data and logs are in %s", s.folder)
	}()
	s.ctx, s.fail = context.WithCancelCause(ctx)
	defer s.fail(nil)
	s.loaded, s.rest = context.WithCancel(s.ctx)
	defer s.rest()
	s.say("seed %d, %d sessions, %s", o.seed, o.sessions, o.span)
	if s.tools, err = startTools(); err != nil {
		return err
	}
	defer s.tools.stop()
	if err := s.launch(); err != nil {
		return err
	}
	defer s.node.Kill()
	s.watch = newWatch(s)
	for _, step := range []func() error{s.begin, s.load, s.settle, s.recheck} {
		if err := errors.Join(step(), context.Cause(s.ctx)); err != nil {
			s.watch.stop()
			s.report(nil)
			return first(context.Cause(s.ctx), err)
		}
	}
	s.watch.stop()
	found := s.watch.judge(s.span)
	s.report(found)
	return errors.Join(errors.Join(found...), s.verify())
}

// first returns the first that is an error.
func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// launch builds and starts the daemon.
func (s *soak) launch() error {
	s.say("building helixd")
	b, err := deployment.Build(s.ctx, s.folder, s.binary, false)
	if err != nil {
		return err
	}
	s.binary = b.Helixd
	d, err := deployment.Alone(b, s.folder, "durability: fsync\ndebug: {pprof: true}\n"+s.tools.agents())
	if err != nil {
		return err
	}
	s.node = d.Nodes[0]
	if err := s.node.Start(); err != nil {
		return err
	}
	if _, err := s.node.Ready(s.ctx); err != nil {
		s.node.Kill()
		return err
	}
	s.api = client.New(s.node.URL, &client.Options{HTTPClient: s.http, MaxRetries: -1, Idle: slowWithin})
	return nil
}

// begin looks at the daemon before the load: after a first run and a first append,
// so that what is made once is there.
func (s *soak) begin() error {
	err := s.patiently(func() error {
		_, err := s.api.AppendChunks(s.ctx, idleSession, []eventlog.Chunk{textOf(idleSession, "idle ")}, client.AppendOptions{IdempotencyKey: "idle"})
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
	s.say("load")
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
	s.say("no more sessions are begun")
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
	s.http.CloseIdleConnections()
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
	s.say("helixd verify: clean")
	return nil
}

// random returns the seed's random numbers for one purpose.
func (s *soak) random(purpose string, i int) *rand.Rand {
	h := uint64(len(purpose))
	for _, b := range []byte(purpose) {
		h = h*1099511628211 ^ uint64(b)
	}
	return rand.New(rand.NewPCG(s.seed, h+uint64(i)))
}

// say prints a line with its time.
func (s *soak) say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%8.1fs %s\n", time.Since(s.began).Seconds(), fmt.Sprintf(format, args...))
}

// violate ends the run.
func (s *soak) violate(session string, err error) {
	if s.ctx.Err() != nil {
		return
	}
	err = fmt.Errorf("after %.1fs, session %q: %w", time.Since(s.began).Seconds(), session, err)
	s.say("VIOLATION %v", err)
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
	began, again := time.Now(), false
	for {
		err := request()
		refusal, refused := errors.AsType[*client.Error](err)
		switch {
		case again && refused && slices.Contains(done, refusal.Code):
			return nil
		case !refused || refusal.Code != api.CodeUnavailable || !s.mayBeSlow(began):
			return err
		}
		again = true
	}
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
