package main

import (
	"context"
	"sync"
	"time"

	"github.com/helixd/helixd/integration/deployment"
)

// lookEvery is how often memory and consumers are looked at.
const lookEvery = 200 * time.Millisecond

// watch looks at what the deployment's processes take, and at JetStream's
// consumers.
type watch struct {
	d         *deployment.Deployment
	processes []*deployment.Process
	busy      sync.WaitGroup
	cancel    context.CancelFunc

	mu     sync.Mutex
	seen   span
	began  time.Time
	before []account // by process
}

// span is what was seen since the last call of next.
type span struct {
	peak        []float64       // MiB, by process
	spent       []time.Duration // of cores, by process
	took        time.Duration
	least, most int // consumers
	looks       int
}

func startWatch(ctx context.Context, d *deployment.Deployment) *watch {
	w := &watch{d: d}
	for _, n := range d.Nodes {
		w.processes = append(w.processes, n.Process)
	}
	w.processes = append(w.processes, d.Servers...)
	w.next()
	ctx, w.cancel = context.WithCancel(ctx)
	w.busy.Go(func() {
		for deployment.Sleep(ctx, lookEvery) == nil {
			w.look(ctx)
		}
	})
	return w
}

func (w *watch) look(ctx context.Context) {
	consumers, err := w.d.Streams.Consumers(ctx)
	now := w.resident()
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, mib := range now {
		if mib > w.seen.peak[i] { // not of one that is dead
			w.seen.peak[i] = mib
		}
	}
	if err != nil { // reported if no client could be counted at all
		return
	}
	if w.seen.looks == 0 {
		w.seen.least = consumers
	}
	w.seen.least, w.seen.most = min(w.seen.least, consumers), max(w.seen.most, consumers)
	w.seen.looks++
}

// resident is what each process has in use now, in MiB.
func (w *watch) resident() []float64 {
	now := make([]float64, len(w.processes))
	for i, p := range w.processes {
		now[i] = deployment.Resident(p.PID())
	}
	return now
}

// account is what a process has spent.
type account struct {
	pid   int
	spent time.Duration
}

// next returns what was seen since it was called last.
func (w *watch) next() (s span) {
	now := make([]account, len(w.processes))
	for i, p := range w.processes {
		pid := p.PID()
		now[i] = account{pid, deployment.Spent(pid)}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	s, w.seen = w.seen, span{peak: make([]float64, len(w.processes))}
	s.took, w.began = time.Since(w.began), time.Now()
	for i, a := range now {
		if w.before != nil && w.before[i].pid == a.pid {
			a.spent -= w.before[i].spent
		}
		s.spent = append(s.spent, max(0, a.spent)) // of a dead one nothing is known
	}
	w.before = now
	return s
}

func (w *watch) stop() {
	w.cancel()
	w.busy.Wait()
}
