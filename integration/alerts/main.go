package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/prometheus/promql/parser"

	"github.com/helixd/helixd/integration/deployment"
)

const rulesFile = "cmd/helixd/packaging/prometheus/helixd.rules.yaml"

var say = deployment.Say

// failures are what has gone wrong so far, apart from what an error ends.
var failures struct {
	sync.Mutex
	all []string
}

// failed notes a failure once.
func failed(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	failures.Lock()
	defer failures.Unlock()
	if !slices.Contains(failures.all, text) {
		failures.all = append(failures.all, text)
		say("FAILED: %s", text)
	}
}

// options are the program's flags.
type options struct {
	deployment.Options
	healthy time.Duration
	scale   float64
	faults  bool
	root    string
	config  string
	listen  string
}

func main() {
	var o options
	o.Flags("a short run, for continuous integration: 30 s of healthy load, and durations divided by 20")
	flag.DurationVar(&o.healthy, "healthy", 2*time.Minute, "how long all is well before something breaks")
	flag.Float64Var(&o.scale, "scale", 10, "by how much the durations of the rules are divided")
	flag.BoolVar(&o.faults, "faults", true, "break things afterwards")
	flag.StringVar(&o.root, "root", "../..", "the repository")
	flag.StringVar(&o.config, "config.file", "", "a prometheus.yml: break nothing, and do what it says, as a small Prometheus")
	flag.StringVar(&o.listen, "web.listen-address", "127.0.0.1:9090", "with -config.file, where alerts are shown")
	flag.Parse()
	if o.config != "" {
		os.Exit(o.Main("alerts", 24*time.Hour, func(ctx context.Context, dir string) error { return serve(ctx, o, dir) }))
	}
	if o.Short {
		o.healthy, o.scale = 30*time.Second, 20
	}
	limit := o.healthy + time.Duration(float64(40*time.Minute)/o.scale) + 6*time.Minute
	os.Exit(o.Main("alerts", limit, func(ctx context.Context, dir string) error { return run(ctx, o, dir) }))
}

func run(ctx context.Context, o options, dir string) error {
	b, err := deployment.Build(ctx, dir, o.Helixd, false)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	m, err := newMonitor(ctx, dir, o.scale, filepath.Join(o.root, rulesFile))
	if err != nil {
		cancel()
		return err
	}
	var wg sync.WaitGroup
	w := &world{ctx: ctx, dir: dir, binaries: b, monitor: m, wg: &wg}
	defer func() { // first what uses the database
		cancel()
		wg.Wait()
		w.close()
		if err := m.close(); err != nil {
			say("closing the database: %v", err)
		}
	}()
	trials, err := w.start()
	if err != nil {
		return err
	}
	say("all is well for %s, with durations divided by %v: no alert may fire", o.healthy, o.scale)
	if err := deployment.Sleep(ctx, o.healthy); err != nil {
		return err
	}
	for _, name := range m.any() {
		failed("fires although all is well: %s", name)
	}
	if o.faults {
		w.breakAll(trials)
	}
	for name := range m.fired(healthyJob) {
		failed("fires at the deployment that nobody breaks: %s", name)
	}
	failures.Lock()
	defer failures.Unlock()
	if len(failures.all) > 0 {
		return errors.New(strings.Join(failures.all, "; "))
	}
	say("all alerts are as they should be")
	return nil
}

// breakAll breaks all deployments at once, and checks that each alert fires for its fault in time. Every
// rule has a fault.
func (w *world) breakAll(trials []*trial) {
	untried := w.monitor.names()
	var mu sync.Mutex
	var lines []string
	var all sync.WaitGroup
	for _, t := range trials {
		for _, f := range t.faults {
			untried = slices.DeleteFunc(untried, func(name string) bool { return slices.Contains(f.fires, name) })
		}
		if t.leftOut {
			continue
		}
		all.Go(func() {
			for _, f := range t.faults {
				w.monitor.forget(t.job, f.fires) // an earlier fault may have made them fire for a moment
				began := time.Now()
				say("breaks %s: %s", t.job, f.what)
				if err := f.do(); err != nil {
					failed("%s: %s: %v", t.job, f.what, err)
					continue
				}
				for _, name := range f.fires {
					took, in, err := w.await(t.job, name, began)
					if err != nil {
						failed("%s: %s: %v", t.job, f.what, err)
						continue
					}
					mu.Lock()
					lines = append(lines, fmt.Sprintf("| `%s` | %s | %.0f s | %.0f s |", name, f.what, took.Seconds(), in.Seconds()))
					mu.Unlock()
				}
			}
		})
	}
	all.Wait()
	if len(untried) > 0 {
		failed("no fault is there for %s", strings.Join(untried, ", "))
	}
	slices.Sort(lines)
	fmt.Printf("| alert | fault | fired after | had to within |\n| --- | --- | --- | --- |\n%s\n", strings.Join(lines, "\n"))
}

// slack is what an alert may take beside its durations: daemons look every 5 or 10 s, and notice a silent
// server after some seconds more.
const slack = 75 * time.Second

// await waits until an alert fires that did not before the fault, and returns how long that took, and how
// long it was allowed to take.
func (w *world) await(job, name string, began time.Time) (took, in time.Duration, err error) {
	in = w.within(name)
	deadline := time.After(in - time.Since(began))
	every := time.NewTicker(interval / 2)
	defer every.Stop()
	for {
		if at, fires := w.monitor.fired(job)[name]; fires {
			return at.Sub(began), in, nil
		}
		select {
		case <-every.C:
		case <-deadline:
			return 0, in, fmt.Errorf("%s does not fire within %s", name, in)
		case <-w.ctx.Done():
			return 0, in, context.Cause(w.ctx)
		}
	}
}

// within is how soon an alert has to fire: its "for", the range that it looks at, and slack. A range of
// hours is a memory and not waited for.
func (w *world) within(name string) time.Duration {
	for _, r := range w.monitor.manager.AlertingRules() {
		if r.Name() != name {
			continue
		}
		longest := time.Duration(0)
		parser.Inspect(r.Query(), func(n parser.Node, _ []parser.Node) error {
			if m, ok := n.(*parser.MatrixSelector); ok && m.Range < time.Hour {
				longest = max(longest, m.Range)
			}
			return nil
		})
		return r.HoldDuration() + longest + slack
	}
	return slack
}
