package inspect

import (
	"net/http"

	"github.com/helixd/helixd/httpapi/internal/web"
)

const (
	// spanBytes is about how large a span, a mark or a lane is in an answer.
	spanBytes = 400
	// fewSpans is how many are copied without a turn.
	fewSpans = 100
)

// Timeline answers GET /sessions/{id}/timeline?from=n: the part of the session's timeline
// that has changed after n.
func (s *Routes) Timeline(w http.ResponseWriter, r *web.Request) error {
	from, _ := r.Query.Number("from")
	if *r.Query.Err != nil {
		return *r.Query.Err
	}
	v, n, err := s.states.TimelineUpTo(r.Context(), r.Session, from, fewSpans)
	if err == nil && n > fewSpans {
		if err := r.LargeAnswer(spanBytes * int64(n)); err != nil {
			return err
		}
		v, err = s.states.Timeline(r.Context(), r.Session, from) // only now: a request that waits holds no copy
	}
	if err != nil {
		return err
	}
	return r.OK(w, v)
}
