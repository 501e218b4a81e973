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
	offset, limit, err := r.Query.Page()
	if err != nil {
		return err
	}
	t, err := s.states.Head(r.Context(), r.Session)
	if err != nil {
		return err
	}
	found := api.UsagePage{
		Page:   api.Page[projector.UsageEntry]{Items: []projector.UsageEntry{}, Offset: offset, Limit: limit},
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
		if found.Total >= offset && len(found.Items) < limit {
			found.Items = append(found.Items, e)
		}
		found.Total++
	}
	found.HasMore = offset+len(found.Items) < found.Total
	return r.OK(w, found)
}
