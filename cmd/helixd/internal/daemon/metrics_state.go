package daemon

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/helixd/helixd/agentloop/quota"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector/readmodel"
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
	}
}

// watch looks every now and then until stop is called, which waits for it. m
// may be nil, and models.
func (m *stateMetrics) watch(log eventlog.Log, models *sqlite.Models, limits *quota.Quota) (stop func()) {
	if m == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		every := time.NewTicker(lookEvery)
		defer every.Stop()
		for {
			m.look(ctx, log, models)
			m.tenants.look(ctx, limits, models)
			select {
			case <-every.C:
			case <-ctx.Done():
				return
			}
		}
	})
	return func() {
		cancel()
		wg.Wait()
	}
}

func (m *stateMetrics) look(ctx context.Context, log eventlog.Log, models *sqlite.Models) {
	m.refuses.Set(yes(log.Info().Refuses != ""))
	if models == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	fresh := models.Fresh(ctx)
	m.lag.WithLabelValues().Set(float64(fresh.Lag))
	m.rebuilding.WithLabelValues().Set(yes(fresh.Rebuilding))
	m.stuck.WithLabelValues().Set(yes(fresh.Problem != ""))
	suspended, err := models.Suspended(ctx)
	if err != nil {
		return // the last values stay
	}
	for status, n := range suspended {
		m.suspended.WithLabelValues(string(status)).Set(float64(n))
	}
	parked, err := models.Parked(ctx, readmodel.ParkedFilter{Paging: readmodel.Paging{Limit: 1}}) // the total counts
	if err != nil {
		return
	}
	m.parked.WithLabelValues().Set(float64(parked.Value.Total))
	m.looked.WithLabelValues().Set(float64(time.Now().UnixMilli()) / 1000)
}

func yes(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
