package httpapi

import (
	"errors"
	"net/http"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/helixd/helixd/agentloop/quota"
	"github.com/helixd/helixd/httpapi/internal/web"
)

// Metrics measure a server.
type Metrics struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	streams  *prometheus.GaugeVec
	refused  *prometheus.CounterVec
	ofTenant *prometheus.GaugeVec
}

// NewMetrics registers a server's metrics. It panics if they are registered already.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	r := promauto.With(reg)
	return &Metrics{
		requests: r.NewCounterVec(prometheus.CounterOpts{
			Name: "helixd_http_requests_total",
			Help: "Finished requests, by protocol, route pattern (other: no route), method and status class. The status aborted means that the client left, or the connection broke, before the answer began.",
		}, []string{"protocol", "route", "method", "status"}),
		duration: r.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "helixd_http_request_duration_seconds",
			Help:    "Time from a request to the headers of its answer, in seconds. The duration of a stream does not count.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}, []string{"protocol", "route", "method"}),
		streams: r.NewGaugeVec(prometheus.GaugeOpts{
			Name: "helixd_sse_clients", Help: "Number of open streams of server-sent events on this node, by protocol and route pattern.",
		}, []string{"protocol", "route"}),
		refused: r.NewCounterVec(prometheus.CounterOpts{
			Name: "helixd_tenant_refused_total", Help: "Requests that were refused because the tenant or the caller is at a limit, by the limit's name in the configuration.",
		}, []string{"tenant", "limit"}),
		ofTenant: r.NewGaugeVec(prometheus.GaugeOpts{
			Name: "helixd_tenant_streams", Help: "Number of streams that callers of a tenant have open on this node.",
		}, []string{"tenant"}),
	}
}

func methodLabel(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return method
	}
	return web.OtherRoute
}

// answered counts a finished request.
func (m *Metrics) answered(t *web.Tracker, r *http.Request) {
	route, method, status := t.Label(), methodLabel(r.Method), "aborted"
	if t.Begun {
		status = strconv.Itoa(t.Status/100) + "xx"
		m.duration.WithLabelValues(protocolName(route), route, method).Observe(t.Began.Sub(t.Came).Seconds())
	}
	m.requests.WithLabelValues(protocolName(route), route, method, status).Inc()
}

// Streaming counts a client with an open stream until done is called.
func (m *Metrics) Streaming(route string) (done func()) {
	clients := m.streams.WithLabelValues(protocolName(route), route)
	clients.Inc()
	return clients.Dec
}

// overLimit counts a request that a limit of its tenant refused. It counts nothing if the
// tenant's label is empty.
func (m *Metrics) overLimit(tenant string, err error) {
	if tenant == "" {
		return
	}
	limit := ""
	if _, is := errors.AsType[*web.RateError](err); is {
		limit = "requestsPerSecond"
	} else if e, is := errors.AsType[*quota.Exceeded](err); is {
		limit = e.Limit
	}
	if limit != "" {
		m.refused.WithLabelValues(tenant, limit).Inc()
	}
}

// TenantStreams adds to the streams of a tenant, whose label may be empty.
func (m *Metrics) TenantStreams(tenant string, n float64) {
	if tenant != "" {
		m.ofTenant.WithLabelValues(tenant).Add(n)
	}
}
