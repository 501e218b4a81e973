//go:build unix

package main

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"os"
	"time"

	"github.com/helixd/helixd/integration/deployment"
)

// sample is what a daemon takes at one moment. Memory is in MiB; NaN is what this
// system does not tell.
type sample struct {
	at         time.Duration // since the load began
	resident   float64
	heap       float64 // in use after a garbage collection, without cache
	cache      float64 // what NATS keeps of its blocks: it comes and goes with what is read
	goroutines float64
	files      float64
	spent      time.Duration // of the machine's cores, so far
}

// take samples a daemon. It has it collect its garbage.
func (w *watch) take(ctx context.Context) (sample, error) {
	pid := w.s.node.PID()
	x := sample{at: time.Since(w.began), resident: deployment.Resident(pid), files: openFiles(pid), spent: deployment.Spent(pid)}
	raw, err := w.s.get(ctx, "/debug/pprof/heap?gc=1&debug=1")
	if err != nil {
		return x, err
	}
	heap, cache, err := heapOf(raw)
	if err != nil {
		return x, err
	}
	x.cache, x.heap = cache/mib, (heap-cache)/mib
	if raw, err = w.s.get(ctx, "/debug/pprof/goroutine?debug=1"); err != nil {
		return x, err
	}
	_, err = fmt.Fscanf(bytes.NewReader(raw), "goroutine profile: total %g", &x.goroutines)
	return x, err
}

const mib = 1 << 20

// openFiles counts the files and sockets of a process.
func openFiles(pid int) float64 {
	all, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		return math.NaN()
	}
	return float64(len(all))
}
