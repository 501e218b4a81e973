package metrics

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/helixd/helixd/eventlog"
)

// Metrics measure logs.
type Metrics struct {
	durability *prometheus.GaugeVec
	appends    *prometheus.HistogramVec
	failures   *prometheus.CounterVec
	records    prometheus.Counter
	bytes      prometheus.Counter
	groups     prometheus.Histogram
	segments   prometheus.Counter
	unsealed   prometheus.Counter

	hubSessions prometheus.Gauge
	followers   prometheus.Gauge
	catchUps    *prometheus.CounterVec
	caughtUp    prometheus.Counter
}

// New registers the metrics of logs. It panics if they are registered already.
func New(reg prometheus.Registerer) *Metrics {
	r := promauto.With(reg)
	return &Metrics{
		durability: r.NewGaugeVec(prometheus.GaugeOpts{
			Name: "helixd_durability_info",
			Help: "Always 1. durability is what an acknowledged append survives, as /readyz shows it; mode is its kind.",
		}, []string{"backend", "durability", "mode"}),
		appends: r.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "helixd_append_duration_seconds",
			Help:    "Time from an append's call to its acknowledgement, in seconds, by the kind of durability. Failed appends are not in it.",
			Buckets: []float64{.0002, .0005, .001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10},
		}, []string{"mode"}),
		failures: r.NewCounterVec(prometheus.CounterOpts{
			Name: "helixd_append_failures_total",
			Help: "Appends that failed, by reason: conflict (another writer was first), unknown (no answer; it may be stored), unavailable, cancelled (the caller left), refused (all else).",
		}, []string{"reason"}),
		records: r.NewCounter(prometheus.CounterOpts{
			Name: "helixd_append_records_total", Help: "Records whose append was acknowledged.",
		}),
		bytes: r.NewCounter(prometheus.CounterOpts{
			Name: "helixd_append_bytes_total", Help: "Payloads of records whose append was acknowledged, in bytes.",
		}),
		groups: r.NewHistogram(prometheus.HistogramOpts{
			Name:    "helixd_group_commit_sessions",
			Help:    "Sessions whose appends shared one batch, and so one disk sync or round of replication, of the batches that were stored.",
			Buckets: []float64{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 3000},
		}),
		segments: r.NewCounter(prometheus.CounterOpts{
			Name: "helixd_segments_sealed_total", Help: "Segments into which this node has packed records.",
		}),
		unsealed: r.NewCounter(prometheus.CounterOpts{
			Name: "helixd_seal_failures_total",
			Help: "Sessions whose records this node could not pack into segments, since a record or a segment is damaged, each counted once until it can. The log keeps the records.",
		}),
		hubSessions: r.NewGauge(prometheus.GaugeOpts{
			Name: "helixd_hub_sessions", Help: "Sessions to whose live records this node subscribes: one subscription for all who follow one.",
		}),
		followers: r.NewGauge(prometheus.GaugeOpts{
			Name: "helixd_followers", Help: "Readers that follow a session's live records on this node: SSE clients, and runs that this node drives.",
		}),
		catchUps: r.NewCounterVec(prometheus.CounterOpts{
			Name: "helixd_catch_up_reads_total",
			Help: "Times that a follower read the log, by cause: join (it began), behind (it was slow, or something was lost), gap (a live record did not follow the one before).",
		}, []string{"cause"}),
		caughtUp: r.NewCounter(prometheus.CounterOpts{
			Name: "helixd_catch_up_records_total", Help: "Records that followers got from the log instead of live.",
		}),
	}
}

// Causes of catch-up reads.
const (
	CauseJoin   = "join"
	CauseBehind = "behind"
	CauseGap    = "gap"
)

// modeOf returns the kind of a durability, one of a few.
func modeOf(d eventlog.Durability) string {
	for _, kind := range []string{"interval", "replicated"} {
		if strings.HasPrefix(string(d), kind) {
			return kind
		}
	}
	switch d {
	case eventlog.DurabilityFsync, eventlog.DurabilityMemory:
		return string(d)
	}
	return string(eventlog.DurabilityUnknown)
}

// Log is the metrics of one log.
type Log struct {
	*Metrics
	latency prometheus.Observer
}

// Of returns m for a log of that durability. If m is nil, nobody sees what is measured.
func (m *Metrics) Of(d eventlog.Durability) *Log {
	if m == nil {
		m = New(nil)
	}
	m.durability.WithLabelValues("jetstream", string(d), modeOf(d)).Set(1)
	return &Log{m, m.appends.WithLabelValues(modeOf(d))}
}

// Appended records an append that began at the given time.
func (m *Log) Appended(began time.Time, entries []eventlog.Entry, err error) {
	if err != nil {
		m.failures.WithLabelValues(reasonOf(err)).Inc()
		return
	}
	m.latency.Observe(time.Since(began).Seconds())
	bytes := 0
	for _, e := range entries {
		bytes += len(e.Payload)
	}
	m.records.Add(float64(len(entries)))
	m.bytes.Add(float64(bytes))
}

func reasonOf(err error) string {
	_, conflict := errors.AsType[*eventlog.ConflictError](err)
	switch {
	case conflict:
		return "conflict"
	case errors.Is(err, eventlog.ErrOutcomeUnknown):
		return "unknown"
	case errors.Is(err, eventlog.ErrUnavailable), errors.Is(err, eventlog.ErrClosed):
		return "unavailable"
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return "cancelled"
	}
	return "refused"
}

func (m *Log) Grouped(sessions int) {
	m.groups.Observe(float64(sessions))
}

func (m *Log) Sealed() {
	m.segments.Inc()
}

// NotSealed records a session that could not be sealed.
func (m *Log) NotSealed() {
	m.unsealed.Inc()
}

func (m *Log) Subscribed(n float64) {
	m.hubSessions.Add(n)
}

func (m *Log) Followed(n float64) {
	m.followers.Add(n)
}

// CatchUp records a follower's read of the log.
func (m *Log) CatchUp(cause string, records int) {
	m.catchUps.WithLabelValues(cause).Inc()
	m.caughtUp.Add(float64(records))
}
