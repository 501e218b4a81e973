package daemon

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/helixd/helixd/agentloop/quota"
	"github.com/helixd/helixd/cmd/helixd/config"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/projector/sqlite"
)

const (
	// lookEvery is how often a daemon requests values for metrics. A scrape makes no
	// requests: it gets the last values.
	lookEvery = 5 * time.Second
	// lookTimeout bounds one look.
	lookTimeout = 5 * time.Second
)

// stateMetrics are metrics whose values need a request. Those of the read models have
// samples once the read models have answered.
type stateMetrics struct {
	refuses    prometheus.Gauge
	lag        *prometheus.GaugeVec
	rebuilding *prometheus.GaugeVec
	stuck      *prometheus.GaugeVec
	suspended  *prometheus.GaugeVec
	parked     *prometheus.GaugeVec
	looked     *prometheus.GaugeVec
	tenants    *tenantMetrics

	ready, degraded, missing, free, least, certificates *prometheus.GaugeVec

	found atomic.Pointer[[]api.Degradation] // what is not well, as of the last look; nil: there was none
}

func newStateMetrics(reg prometheus.Registerer) *stateMetrics {
	r := promauto.With(reg)
	// A vector without a child has no sample: a node may have no read models.
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return r.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	}
	return &stateMetrics{
		tenants: newTenantMetrics(reg),
		refuses: r.NewGauge(prometheus.GaugeOpts{
			Name: "helixd_log_refuses", Help: "1 while the log refuses appends, 0 otherwise; /readyz has the reason. Updated every 5 s.",
		}),
		lag:        gauge("helixd_read_model_lag", "Approximate number of log records that are not in the read models yet. Updated every 5 s."),
		rebuilding: gauge("helixd_read_model_rebuilding", "1 while the read models are rebuilt from the log, 0 otherwise. Updated every 5 s."),
		stuck:      gauge("helixd_read_model_stuck", "1 while the read models make no progress, 0 otherwise; /readyz has the reason. Updated every 5 s."),
		suspended: gauge("helixd_sessions_suspended",
			"Number of sessions, sub-agents included, that wait to be resumed, by the status of their last run: suspended_client_tool (waits for a person or a client), suspended_awaiting_children, suspended_step_partial, interrupted. From the read models, every 5 s.", "status"),
		parked: gauge("helixd_parked_records", "Number of records that the read models could not use; helixd parked lists them. Updated every 5 s."),
		looked: gauge("helixd_read_model_looked_timestamp_seconds",
			"Time of the last answer of the read models for these metrics, in seconds since 1970. They are asked every 5 s."),
		ready:    gauge("helixd_ready", "1 while the log answers and takes appends, 0 otherwise. Updated every 5 s."),
		degraded: gauge("helixd_degraded", "Number of findings that /readyz lists as degraded, by check: certificates, clock, disk, listings, quotas, replicas. Updated every 5 s.", "check"),
		missing:  gauge("helixd_replicas_missing", "Number of servers that should keep the log and do not answer. Only for a replicated log; while the quorum is lost, the last value stays. Updated every 5 s."),
		free:     gauge("helixd_disk_free_bytes", "Bytes that are free for the data folder. Only with an embedded server. Updated every 5 s."),
		least:    gauge("helixd_disk_min_free_bytes", "The setting disk.minFree, in bytes: with less free, the node is read-only. Only with an embedded server."),
		certificates: gauge("helixd_certificate_end_timestamp_seconds",
			"Time when a configured certificate ends, in seconds since 1970, by the setting that names its file. Updated every 5 s.", "certificate"),
	}
}

// watched is what a daemon looks at.
type watched struct {
	config *config.Config
	log    replicatedLog
	models *sqlite.Models // nil: there are none
	limits *quota.Quota
}

// watch looks every now and then until stop is called, which waits for it.
func (m *stateMetrics) watch(w watched) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		m.look(ctx, w)
		for eventlog.Sleep(ctx, lookEvery) == nil {
			m.look(ctx, w)
		}
	})
	return func() {
		cancel()
		wg.Wait()
	}
}

// Degraded returns what is not well. It asks nobody.
func (m *stateMetrics) Degraded() []api.Degradation {
	if found := m.found.Load(); found != nil {
		return *found
	}
	return nil
}

// look asks for all values, and keeps what is not well.
func (m *stateMetrics) look(ctx context.Context, w watched) {
	m.refuses.Set(yes(w.log.Info().Refuses != ""))
	m.ready.WithLabelValues().Set(yes(answers(ctx, w.log)))
	missing, known, found := lookReplicas(ctx, w.log)
	if known {
		m.missing.WithLabelValues().Set(float64(missing))
	}
	certificates, bad := lookCertificates(w.config, time.Now())
	found = append(found, bad...)
	for _, c := range certificates {
		if c.Err == nil {
			m.certificates.WithLabelValues(c.Key).Set(float64(c.Ends.Unix()))
		}
	}
	free, known, bad := lookDisk(w.config)
	found = append(found, bad...)
	if known {
		m.free.WithLabelValues().Set(float64(free))
		m.least.WithLabelValues().Set(float64(w.config.Disk.MinFree))
	}
	found = append(found, m.lookModels(ctx, w.models)...)
	found = append(found, m.tenants.look(ctx, w.limits, w.models)...)
	if ctx.Err() != nil {
		return // what could not be asked for is no finding
	}
	m.found.Store(&found)
	for _, check := range healthChecks {
		n := 0
		for _, f := range found {
			if f.Check == check {
				n++
			}
		}
		m.degraded.WithLabelValues(check).Set(float64(n))
	}
}

func (m *stateMetrics) lookModels(ctx context.Context, models *sqlite.Models) (found []api.Degradation) {
	if models == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	fresh := models.Fresh(ctx)
	m.lag.WithLabelValues().Set(float64(fresh.Lag))
	m.rebuilding.WithLabelValues().Set(yes(fresh.Rebuilding))
	m.stuck.WithLabelValues().Set(yes(fresh.Problem != ""))
	suspended, err := models.Suspended(ctx)
	if err != nil {
		return ofListings(fresh) // the last values stay
	}
	for status, n := range suspended {
		m.suspended.WithLabelValues(string(status)).Set(float64(n))
	}
	m.parked.WithLabelValues().Set(float64(fresh.Parked))
	m.looked.WithLabelValues().Set(float64(time.Now().UnixMilli()) / 1000)
	return ofListings(fresh)
}

func yes(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
