package inspect

import (
	"errors"
	"slices"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/internal/web"
	"github.com/helixd/helixd/projector"
	"github.com/helixd/helixd/projector/readmodel"
)

// foldSessions lists sessions without read models: a filter folds every session.
func (s *Routes) foldSessions(r *web.Request, f readmodel.SessionFilter) (api.Page[api.Summary], error) {
	found := api.Page[api.Summary]{Items: []api.Summary{}, Offset: f.Offset, Limit: f.Limit}
	add := func(summary func() (api.Summary, error)) error {
		if found.Total >= f.Offset && len(found.Items) < f.Limit {
			item, err := summary()
			if errors.Is(err, eventlog.ErrSessionNotFound) {
				return nil // erased meanwhile
			}
			if err != nil {
				return err
			}
			found.Items = append(found.Items, item)
		}
		found.Total++
		return nil
	}
	list := s.listRoots
	if f.ParentSessionID != "" {
		list = s.listChildren
	}
	if err := list(r, f, add); err != nil {
		return api.Page[api.Summary]{}, err
	}
	found.HasMore = f.Offset+len(found.Items) < found.Total
	return found, nil
}

// listRoots calls add for each root session that passes the filter. Without a filter it
// folds only the sessions whose summary add asks for.
func (s *Routes) listRoots(r *web.Request, f readmodel.SessionFilter, add func(func() (api.Summary, error)) error) error {
	for id, err := range s.log.Sessions(r.Context()) {
		if err != nil {
			return err
		}
		if eventlog.NotSession(id) {
			continue
		}
		visible, err := r.Visible(id)
		if err != nil {
			return err
		}
		if !visible {
			continue
		}
		summary := func() (api.Summary, error) {
			t, err := s.states.Head(r.Context(), id)
			if err == nil && f.Tenant != "" && t.Tenant != f.Tenant {
				err = eventlog.ErrSessionNotFound
			}
			if err != nil {
				return api.Summary{}, err
			}
			return s.summarize(r, t, &t.Session), nil
		}
		if filtered(f) {
			item, err := summary()
			if errors.Is(err, eventlog.ErrSessionNotFound) {
				continue
			}
			if err != nil {
				return err
			}
			if !fits(item, f) {
				continue
			}
			summary = func() (api.Summary, error) { return item, nil }
		}
		if err := add(summary); err != nil {
			return err
		}
	}
	return nil
}

// listChildren calls add for each sub-agent's session of the filter's parent that passes
// the filter. The parent must be a root: without read models, the tree of a sub-agent's
// session is not known.
func (s *Routes) listChildren(r *web.Request, f readmodel.SessionFilter, add func(func() (api.Summary, error)) error) error {
	if visible, err := r.Visible(f.ParentSessionID); err != nil || !visible {
		return err
	}
	t, err := s.states.Head(r.Context(), f.ParentSessionID)
	if errors.Is(err, eventlog.ErrSessionNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if f.Tenant != "" && t.Tenant != f.Tenant {
		return nil
	}
	for _, child := range t.Sessions() {
		item := s.summarize(r, t, child)
		if item.ParentSessionID != f.ParentSessionID || !fits(item, f) {
			continue
		}
		if err := add(func() (api.Summary, error) { return item, nil }); err != nil {
			return err
		}
	}
	return nil
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
	if item.CreatedAt < f.From || f.To != 0 && item.CreatedAt >= f.To {
		return false
	}
	return is(f.AgentType, item.AgentType) && is(string(f.Status), string(item.Status)) && is(string(f.StreamStatus), string(item.StreamStatus)) && is(f.UserID, item.UserID) &&
		is(f.ForkedFrom, item.ForkedFrom) && (f.Tag == "" || slices.Contains(item.Tags, f.Tag))
}

// parentOf returns the id of the session that called this one, or "" for the root. The
// parent of an outside producer's sub-agent is the root.
func parentOf(t *projector.Tree, session *projector.Session) string {
	switch {
	case session == &t.Session:
		return ""
	case session.Child == nil || session.Child.ParentSessionID == "":
		return t.SessionID
	}
	return session.Child.ParentSessionID
}
