package inspect

import (
	"errors"
	"net/http"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/auth"
	"github.com/helixd/helixd/httpapi/internal/web"
	"github.com/helixd/helixd/projector"
)

// Usage answers GET /sessions/{id}/usage. Each page reads the whole session, since only
// the records have the entries.
func (s *Routes) Usage(w http.ResponseWriter, r *web.Request) error {
	p := r.Query.Page()
	if *r.Query.Err != nil {
		return *r.Query.Err
	}
	t, err := s.states.Head(r.Context(), r.Session)
	if err != nil {
		return err
	}
	found := api.UsagePage{
		Page:   api.Page[projector.UsageEntry]{Items: []projector.UsageEntry{}, Offset: p.Offset, Limit: p.Limit},
		Rollup: t.RollUp(t.SessionID),
	}
	for e, err := range projector.UsageEntries(s.log.Read(r.Context(), r.Session, 0, t.Head)) {
		if trimmed, ok := errors.AsType[*eventlog.TrimmedError](err); ok {
			found.Floor = trimmed.Floor
			break
		}
		if err != nil {
			return err
		}
		if found.Total >= p.Offset && len(found.Items) < p.Limit {
			found.Items = append(found.Items, e)
		}
		found.Total++
	}
	if p.Offset == 0 {
		found.Budget = s.budget(r, t.Tenant)
	}
	found.HasMore = p.Offset+len(found.Items) < found.Total
	return r.OK(w, found)
}

// budget returns what a tenant may spend today and has spent, nil if it has no limit or
// the caller acts for one of its users, or if what it has spent can't be read now.
func (s *Routes) budget(r *web.Request, tenant string) *api.Budget {
	limits := s.quota.Of(tenant)
	if limits.TokensPerDay == 0 && limits.USDPerDay == 0 || auth.CallerOf(r.Context()).User != "" {
		return nil
	}
	spent, reserved, err := s.quota.Spent(r.Context(), tenant)
	if err != nil {
		s.logger.WarnContext(r.Context(), "the answer lacks the tenant's budget", "tenant", tenant, "error", err)
		return nil
	}
	return &api.Budget{
		TokensPerDay: limits.TokensPerDay, USDPerDay: limits.USDPerDay, Tokens: spent.Tokens + reserved.Tokens, USD: spent.USD + reserved.USD,
	}
}
