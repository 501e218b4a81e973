package worklist

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Metrics measure a work list. Values of the
// list are from the last time that it was read: a scrape makes no
// requests.
type Metrics struct {
	trees    prometheus.Gauge
	unheld   prometheus.Gauge
	looked   prometheus.Gauge
	failures prometheus.Counter
	offers   prometheus.Counter
	nodes    prometheus.Gauge
}

// NewMetrics registers what a work list measures. It panics if that is registered
// already.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	r := promauto.With(reg)
	gauge := func(name, help string) prometheus.Gauge {
		return r.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	}
	counter := func(name, help string) prometheus.Counter {
		return r.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	return &Metrics{
		trees: gauge("helixd_queue_trees",
			"Number of session trees on the work list that all nodes share, driven ones included. Updated every 10 s."),
		unheld: gauge("helixd_queue_unheld_trees",
			"Number of session trees on the work list that have an agent of this node and that no live node has driven for 15 s. Updated every 10 s."),
		looked: gauge("helixd_queue_looked_timestamp_seconds",
			"Time when this node last read the work list, in seconds since 1970. It reads the list every 10 s. 0: not yet."),
		failures: counter("helixd_queue_failures_total", "Failed attempts of this node to read the work list."),
		offers:   counter("helixd_queue_take_ups_total", "Session trees of the work list that this node was asked to drive. Most turn out to be driven by another node, or idle."),
		nodes:    gauge("helixd_queue_nodes", "Number of live nodes that this node knows, itself included."),
	}
}

func (m *Metrics) saw(trees, unheld int) {
	m.trees.Set(float64(trees))
	m.unheld.Set(float64(unheld))
	m.looked.Set(float64(time.Now().UnixMilli()) / 1000)
}
