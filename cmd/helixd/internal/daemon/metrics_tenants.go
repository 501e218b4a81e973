package daemon

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/helixd/helixd/agentloop/quota"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/projector/readmodel"
	"github.com/helixd/helixd/projector/sqlite"
)

// tenantMetrics are what tenants with limits by their names use. A value that could not
// be asked for stays what it was.
type tenantMetrics struct {
	sessions, runs, bytes, tokens, usd *prometheus.GaugeVec
	used                               *prometheus.GaugeVec // by limit, too
	last                               map[string]tenantUse // by tenant: those that are shown
}

// tenantUse is what a tenant uses, as of the last answers; nil: there was none yet.
type tenantUse struct {
	stored *readmodel.TenantUse
	day    *quota.Spent
}

func newTenantMetrics(reg prometheus.Registerer) *tenantMetrics {
	gauge := func(name, help string) *prometheus.GaugeVec {
		return promauto.With(reg).NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, []string{"tenant"})
	}
	return &tenantMetrics{
		sessions: gauge("helixd_tenant_sessions", "Number of a tenant's root sessions. From the read models, every 5 s."),
		runs:     gauge("helixd_tenant_runs", "Number of live runs of a tenant's root sessions, on all nodes. From the read models, every 5 s."),
		bytes:    gauge("helixd_tenant_stored_bytes", "Size of the payloads of all records of a tenant's sessions, in bytes. From the read models, every 5 s."),
		tokens:   gauge("helixd_tenant_day_tokens", "Tokens that a tenant's finished model calls have used since midnight UTC, on all nodes. Only for tenants with a daily limit."),
		usd:      gauge("helixd_tenant_day_usd", "Cost of the tokens that a tenant has used since midnight UTC, in USD at the configured prices. Only for tenants with a daily limit."),
		used: promauto.With(reg).NewGaugeVec(prometheus.GaugeOpts{
			Name: "helixd_tenant_limit_used_ratio", Help: "How much of a limit a tenant uses, from 0 to 1, by the limit's name in the configuration: sessions, bytes, runs, tokensPerDay, usdPerDay. Updated every 5 s.",
		}, []string{"tenant", "limit"}),
		last: map[string]tenantUse{},
	}
}

// look asks what tenants use, and reports which of them are near a limit.
func (m *tenantMetrics) look(ctx context.Context, limits *quota.Quota, models *sqlite.Models) (found []api.Degradation) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	gone := m.last
	m.last = map[string]tenantUse{}
	for _, tenant := range limits.Labels() {
		u := gone[tenant]
		delete(gone, tenant)
		if models != nil {
			if use, err := models.TenantUse(ctx, tenant, nil); err == nil {
				u.stored = &use
				m.sessions.WithLabelValues(tenant).Set(float64(use.Sessions))
				m.runs.WithLabelValues(tenant).Set(float64(use.Runs))
				m.bytes.WithLabelValues(tenant).Set(float64(use.Bytes))
			}
		}
		if !limits.Daily(tenant) {
			u.day = nil
			m.forget(tenant, m.tokens, m.usd)
		} else if spent, _, err := limits.Spent(ctx, tenant); err == nil {
			u.day = &spent
			m.tokens.WithLabelValues(tenant).Set(float64(spent.Tokens))
			m.usd.WithLabelValues(tenant).Set(spent.USD)
		}
		m.last[tenant] = u
		all := shares(limits.Of(tenant), u)
		for _, limit := range shareable {
			if share, limited := all[limit]; limited {
				m.used.WithLabelValues(tenant, limit).Set(share)
				found = append(found, ofQuota(tenant, limit, share)...)
			} else {
				m.used.DeleteLabelValues(tenant, limit)
			}
		}
	}
	for tenant := range gone { // the configuration was reloaded
		m.forget(tenant, m.sessions, m.runs, m.bytes, m.tokens, m.usd)
		m.used.DeletePartialMatch(prometheus.Labels{"tenant": tenant})
	}
	return found
}

func (m *tenantMetrics) forget(tenant string, all ...*prometheus.GaugeVec) {
	for _, v := range all {
		v.DeleteLabelValues(tenant)
	}
}
