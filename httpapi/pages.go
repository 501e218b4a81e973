package httpapi

import (
	"net/http"

	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/projector"
)

// checkpoints answers GET /sessions/{id}/checkpoints, oldest first.
func (s *inspectRoutes) checkpoints(w http.ResponseWriter, r *request) error {
	return servePage(s, w, r, func(t *projector.Tree) []projector.Checkpoint { return t.Checkpoints })
}

// runs answers GET /sessions/{id}/runs, oldest first.
func (s *inspectRoutes) runs(w http.ResponseWriter, r *request) error {
	return servePage(s, w, r, func(t *projector.Tree) []projector.Run { return t.Runs })
}

// servePage answers with a page of what a session has.
func servePage[T any](s *inspectRoutes, w http.ResponseWriter, r *request, of func(*projector.Tree) []T) error {
	offset, limit, err := r.query.page()
	if err != nil {
		return err
	}
	t, err := s.states.Head(r.Context(), r.session)
	if err != nil {
		return err
	}
	all := of(t)
	from := min(offset, len(all))
	to := min(from+limit, len(all))
	return r.ok(w, api.Page[T]{
		Items: append([]T{}, all[from:to]...), Total: len(all), Offset: offset, Limit: limit, HasMore: to < len(all),
	})
}
