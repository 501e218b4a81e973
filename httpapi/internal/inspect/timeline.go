package inspect

import (
	"net/http"

	"github.com/helixd/helixd/httpapi/internal/web"
)

// spanBytes is about how large a span or a mark is in an answer.
const spanBytes = 400

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
	if err := r.LargeAnswer(spanBytes * int64(len(v.Spans)+len(v.Marks))); err != nil {
		return err
	}
	return r.OK(w, v)
}
