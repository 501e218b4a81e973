package daemon

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/memory"
	"github.com/helixd/helixd/agentloop/worklist"
	"github.com/helixd/helixd/eventlog/jetstream"
	"github.com/helixd/helixd/eventlog/version"
	"github.com/helixd/helixd/httpapi"
	"github.com/helixd/helixd/snapshot"
)

// metrics are what a daemon measures. Those that are nil measure nothing.
type metrics struct {
	gatherer prometheus.Gatherer // nil: there is nothing to show
	log      *jetstream.Metrics
	folds    *snapshot.Metrics
	worklist *worklist.Metrics
	loop     *engine.Metrics
	memory   *memory.Metrics
	http     *httpapi.Metrics
	state    *stateMetrics // never nil: /readyz has what it finds
}

// newMetrics returns metrics with their own registry.
func newMetrics(enabled bool) metrics {
	if !enabled {
		return metrics{state: newStateMetrics(prometheus.NewRegistry())}
	}
	reg := prometheus.NewRegistry()
	m := register(reg)
	m.gatherer = reg
	return m
}

// register registers all that a daemon measures.
func register(reg prometheus.Registerer) metrics {
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	b := version.This()
	promauto.With(reg).NewGauge(prometheus.GaugeOpts{
		Name: "helixd_build_info", Help: "Always 1. The labels are the version, commit and Go version of this build. It changes only with the binary.",
		ConstLabels: prometheus.Labels{"version": b.Version, "commit": b.Commit, "goversion": b.Go},
	}).Set(1)
	return metrics{
		log: jetstream.NewMetrics(reg), folds: snapshot.NewMetrics(reg), worklist: worklist.NewMetrics(reg),
		loop: engine.NewMetrics(reg), memory: memory.NewMetrics(reg), http: httpapi.NewMetrics(reg), state: newStateMetrics(reg),
	}
}
