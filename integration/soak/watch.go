//go:build unix

package main

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"time"
)

const (
	// The daemon is looked at whenever so small a part of the load's time has
	// passed, within these limits.
	looks       = 120
	sampleLeast = time.Second
	sampleMost  = 5 * time.Second
	// idleWithin is how long a daemon may take to come back to its idle level:
	// what is kept for the next request goes after a while.
	idleWithin = 3 * time.Minute
)

// watch samples the daemon.
type watch struct {
	s     *soak
	began time.Time

	before, after sample // idle
	end           context.CancelFunc
	over          sync.WaitGroup

	mu      sync.Mutex
	samples []sample // under load
}

func newWatch(s *soak) *watch { return &watch{s: s, began: time.Now(), end: func() {}} }

// start samples until the load ends.
func (w *watch) start() {
	w.began = time.Now()
	ctx, cancel := context.WithCancel(w.s.loaded)
	w.end = cancel
	w.over.Go(func() {
		every := max(sampleLeast, min(sampleMost, w.s.span/looks))
		for w.s.sleep(ctx, every) {
			x, err := w.take(ctx)
			if ctx.Err() != nil {
				return
			}
			if w.s.refused("", "sample", err) {
				return
			}
			w.mu.Lock()
			w.samples = append(w.samples, x)
			w.mu.Unlock()
		}
	})
}

func (w *watch) stop() {
	w.end()
	w.over.Wait()
}

// rest waits until the daemon is at its idle level: as it was before, if it was
// looked at then, else where it stays. Whether it is, is judged later.
func (w *watch) rest(ctx context.Context, done func(sample) bool) (x sample, err error) {
	within := idleWithin
	if w.s.inject != "" { // it will not
		within = 10 * time.Second
	}
	for began := time.Now(); ; {
		if x, err = w.take(ctx); err != nil || done(x) || time.Since(began) > within {
			return x, err
		}
		if !w.s.sleep(ctx, 2*time.Second) {
			return x, context.Cause(ctx)
		}
	}
}

// idleBefore looks at the daemon before the load.
func (w *watch) idleBefore(ctx context.Context) (err error) {
	var last sample
	same := 0
	w.before, err = w.rest(ctx, func(x sample) bool {
		if same++; x.goroutines != last.goroutines || x.files != last.files {
			same = 0
		}
		last = x
		return same >= 4
	})
	return err
}

// idleAfter samples it after the load.
func (w *watch) idleAfter(ctx context.Context) (err error) {
	if w.after, err = w.rest(ctx, func(x sample) bool { return len(backAt(w.before, x)) == 0 }); err != nil {
		return err
	}
	for _, what := range []string{"heap", "goroutine"} { // to be looked at if it is not flat
		raw, err := w.s.get(ctx, "/debug/pprof/"+what+"?debug=0")
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(w.s.folder, what+".pprof"), raw, 0o600); err != nil {
			return err
		}
	}
	return nil
}
