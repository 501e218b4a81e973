package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/helixd/helixd/agentloop/lab/result"
	"github.com/helixd/helixd/cmd/helixd/config"
	"github.com/helixd/helixd/cmd/helixd/internal/flags"
	"github.com/helixd/helixd/cmd/helixd/internal/terminal"
	"github.com/helixd/helixd/eventlog"
)

type watchCmd struct {
	runCmd
	Every  time.Duration `help:"How often the files are looked at, at least 10ms." default:"5s"`
	Listen string        `help:"Address at which /metrics has the results, for Prometheus; not at all if left out." placeholder:"HOST:PORT"`
}

// Help is shown by helixd lab watch --help.
func (watchCmd) Help() string {
	return "Runs the lab now, and again when one of its files changes: lab.yaml, the cohort, a helix.yaml or a file that it refers to. So what a reload would bring is tried before, or at once. It ends with a signal."
}

// Validate refuses an interval that keeps a processor busy.
func (c watchCmd) Validate() error {
	if c.Every < 10*time.Millisecond {
		return errors.New("--every is at least 10ms")
	}
	return c.runCmd.Validate()
}

// Run runs the lab until the process is told to stop. A lab that fails is run again after the next change.
func (c watchCmd) Run(p *flags.Process) error {
	if _, err := os.Stat(c.File); err != nil {
		return err
	}
	m := newWatchMetrics()
	if c.Listen != "" {
		stop, err := m.serve(p, c.Listen)
		if err != nil {
			return err
		}
		defer stop()
	}
	for last := ""; ; {
		if now := stateOf(c.File); now != last {
			last = now
			report, err := c.judge(p, drive)
			if p.Ctx.Err() != nil {
				return context.Cause(p.Ctx)
			}
			if m.set(report, time.Now()); err != nil {
				fmt.Fprintln(p.Stderr, "helixd:", terminal.Readable(err.Error()))
			}
		}
		if err := eventlog.Sleep(p.Ctx, c.Every); err != nil {
			return err
		}
	}
}

// stateOf changes when a file changes that the lab reads.
func stateOf(name string) string {
	names := []string{name}
	if f, err := load(name); err == nil {
		names = append(names, f.Cohort)
		if f.scripts != nil {
			names = append(names, f.Models)
		}
		for _, of := range []string{f.Candidate, f.Baseline} {
			if of == recorded {
				continue
			}
			names = append(names, of)
			if c, err := config.Load(of, f.getenv()); err == nil {
				names = append(names, c.SecretFiles()...)
			}
		}
	}
	var b strings.Builder
	for _, name := range names {
		info, err := os.Stat(name)
		if err != nil {
			fmt.Fprintf(&b, "%s: %v\n", name, err)
			continue
		}
		fmt.Fprintf(&b, "%s: %d %s\n", name, info.Size(), info.ModTime().Format(time.RFC3339Nano))
	}
	return b.String()
}

// watchMetrics are the results of the last lab.
type watchMetrics struct {
	registry *prometheus.Registry
	sessions *prometheus.GaugeVec
	runs     *prometheus.CounterVec
	seconds  prometheus.Gauge
	last     prometheus.Gauge
}

func newWatchMetrics() *watchMetrics {
	m := &watchMetrics{registry: prometheus.NewRegistry()}
	with := promauto.With(m.registry)
	m.sessions = with.NewGaugeVec(prometheus.GaugeOpts{Name: "helixd_lab_sessions", Help: "Sessions of the last lab by their verdict: regression, improvement, flaky, changed, same, unjudged."}, []string{"verdict"})
	m.runs = with.NewCounterVec(prometheus.CounterOpts{Name: "helixd_lab_runs_total", Help: "Labs by their outcome: passed, regressed, unjudged."}, []string{"outcome"})
	m.seconds = with.NewGauge(prometheus.GaugeOpts{Name: "helixd_lab_duration_seconds", Help: "Duration of the last lab that judged, in seconds."})
	m.last = with.NewGauge(prometheus.GaugeOpts{Name: "helixd_lab_last_run_timestamp_seconds", Help: "When the last lab ended, in seconds since the epoch."})
	for _, outcome := range outcomes {
		m.runs.WithLabelValues(outcome)
	}
	return m
}

// outcomes are those of labs by their exit code.
var outcomes = []string{result.ExitPassed: "passed", result.ExitRegressed: "regressed", result.ExitUnjudged: "unjudged"}

// set takes over a report; nil if the lab could not judge at all.
func (m *watchMetrics) set(r *result.Report, now time.Time) {
	m.last.Set(float64(now.UnixMilli()) / 1000)
	if r == nil {
		m.sessions.Reset()
		m.runs.WithLabelValues(outcomes[result.ExitUnjudged]).Inc()
		return
	}
	count := map[result.Verdict]int{}
	for _, c := range r.Results {
		count[c.Verdict]++
	}
	for _, v := range []result.Verdict{result.Regression, result.Improvement, result.Flaky, result.Changed, result.Same, result.Unjudged} {
		m.sessions.WithLabelValues(string(v)).Set(float64(count[v]))
	}
	m.seconds.Set(r.Seconds)
	m.runs.WithLabelValues(outcomes[r.ExitCode()]).Inc()
}

// serve serves the metrics, and says where.
func (m *watchMetrics) serve(p *flags.Process, address string) (stop func(), err error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{}))
	s := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = s.Serve(l) // until it is closed
	}()
	fmt.Fprintf(p.Stderr, "metrics at http://%s/metrics\n", l.Addr())
	return func() {
		s.Close()
		<-ended
	}, nil
}
