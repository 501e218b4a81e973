package inspect

import (
	"errors"
	"slices"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/internal/web"
	"github.com/helixd/helixd/projector/readmodel"
)

// foldSessions lists sessions without read models: a filter folds every session. The parent
// that a filter names must be a root: the tree of a sub-agent's session is not known.
func (s *Routes) foldSessions(r *web.Request, f readmodel.SessionFilter) (api.Page[api.Summary], error) {
	found := api.Page[api.Summary]{Items: []api.Summary{}, Offset: f.Offset, Limit: f.Limit}
	inPage := func() bool { return found.Total >= f.Offset && len(found.Items) < f.Limit }
	trees := s.log.Sessions(r.Context())
	if f.ParentSessionID != "" {
		trees = func(yield func(string, error) bool) { yield(f.ParentSessionID, nil) }
	}
	for id, err := range trees {
		if err != nil {
			return found, err
		}
		if eventlog.NotSession(id) {
			continue
		}
		switch visible, err := r.Visible(id); {
		case err != nil:
			return found, err
		case !visible:
			continue
		}
		if f.ParentSessionID == "" && !filtered(f) && !inPage() {
			found.Total++ // without a fold
			continue
		}
		t, err := s.states.Head(r.Context(), id)
		switch {
		case errors.Is(err, eventlog.ErrSessionNotFound): // erased meanwhile
			continue
		case err != nil:
			return found, err
		case f.Tenant != "" && t.Tenant != f.Tenant:
			continue
		}
		sessions := t.Sessions()
		if f.ParentSessionID == "" {
			sessions = sessions[:1] // the root
		}
		for _, session := range sessions {
			item := s.summarize(r, t, session)
			if item.ParentSessionID != f.ParentSessionID || !fits(item, f) {
				continue
			}
			if inPage() {
				found.Items = append(found.Items, item)
			}
			found.Total++
		}
	}
	found.HasMore = f.Offset+len(found.Items) < found.Total
	return found, nil
}

// filtered reports whether a filter leaves out root sessions.
func filtered(f readmodel.SessionFilter) bool {
	return f.UserID+f.Tenant+f.AgentType+string(f.Status)+string(f.StreamStatus)+f.Tag+f.ForkedFrom != "" || len(f.Metadata) > 0 || f.From != 0 || f.To != 0
}

// fits reports whether a session passes a filter, other than by its parent.
func fits(item api.Summary, f readmodel.SessionFilter) bool {
	is := func(wanted, value string) bool { return wanted == "" || wanted == value }
	for name, wanted := range f.Metadata {
		if value, ok := item.Metadata[name]; !ok || value != wanted {
			return false
		}
	}
	if f.From != 0 && item.CreatedAt < f.From || f.To != 0 && item.CreatedAt >= f.To {
		return false
	}
	return is(f.AgentType, item.AgentType) && is(string(f.Status), string(item.Status)) && is(string(f.StreamStatus), string(item.StreamStatus)) && is(f.UserID, item.UserID) &&
		is(f.ForkedFrom, item.ForkedFrom) && (f.Tag == "" || slices.Contains(item.Tags, f.Tag))
}
