package inspect

import (
	"github.com/helixd/helixd/httpapi/internal/web"
	"net/http"
)

// Timeline answers GET /sessions/{id}/timeline?from=n: the part of the session's timeline
// that has changed after n.
func (s *Routes) Timeline(w http.ResponseWriter, r *web.Request) error {
	from, _ := r.Query.Number("from")
	if *r.Query.Err != nil {
		return *r.Query.Err
	}
	v, err := s.states.Timeline(r.Context(), r.Session, from)
	if err != nil {
		return err
	}
	return r.OK(w, v)
}
