package inspect

import (
	"errors"
	"net/http"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/httpapi/api"
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
	found.HasMore = p.Offset+len(found.Items) < found.Total
	return r.OK(w, found)
}
