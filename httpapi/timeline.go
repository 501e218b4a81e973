package httpapi

import "net/http"

// timeline answers GET /sessions/{id}/timeline?from=n: the session's timeline
// at its head, as far as it has changed behind n.
func (s *inspectRoutes) timeline(w http.ResponseWriter, r *request) error {
	from, _, err := r.query.number("from")
	if err != nil {
		return err
	}
	v, err := s.states.Timeline(r.Context(), r.session, from)
	if err != nil {
		return err
	}
	return r.ok(w, v)
}
