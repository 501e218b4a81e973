package snapshot

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Metrics measure stores.
type Metrics struct {
	duration prometheus.Histogram
	records  prometheus.Counter
	loaded   prometheus.Counter
	saved    prometheus.Counter
	failures *prometheus.CounterVec
}

// NewMetrics registers the metrics of a store. It panics if they are registered already.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	r := promauto.With(reg)
	counter := func(name, help string) prometheus.Counter {
		return r.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	return &Metrics{
		duration: r.NewHistogram(prometheus.HistogramOpts{
			Name:    "helixd_fold_duration_seconds",
			Help:    "Time to read a session's records and fold them to its state, in seconds. One observation for each fold.",
			Buckets: []float64{.0005, .001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10},
		}),
		records: counter("helixd_fold_records_total", "Records that were read and folded to compute states."),
		loaded:  counter("helixd_folds_loaded_total", "States that were computed from a saved fold instead of from the first record."),
		saved:   counter("helixd_folds_saved_total", "Folds that were saved to the store."),
		failures: r.NewCounterVec(prometheus.CounterOpts{
			Name: "helixd_fold_failures_total",
			Help: "Failures with saved folds, by what: read, save (the store failed), damaged, stale (of another log). Each one costs time only: the state is computed from the log.",
		}, []string{"what"}),
	}
}

func (m *Metrics) folded(began time.Time, records int) {
	m.duration.Observe(time.Since(began).Seconds())
	m.records.Add(float64(records))
}

func (m *Metrics) fail(what string) {
	m.failures.WithLabelValues(what).Inc()
}
