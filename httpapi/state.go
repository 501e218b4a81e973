package httpapi

import (
	"net/http"

	"github.com/helixd/helixd/projector"
)

// StateAt is the answer of GET /sessions/{id}/state: the fold of the records
// with a sequence <= Sequence.
type StateAt struct {
	Sequence uint64          `json:"sequence"`
	State    *projector.Tree `json:"state"`
}

// state answers GET /sessions/{id}/state?at=n, at the head by default.
func (s *Server) state(w http.ResponseWriter, r *request) error {
	n, given, err := r.query.number("at")
	if err != nil {
		return err
	}
	var t *projector.Tree
	if given {
		t, err = s.states.At(r.Context(), r.session, n)
	} else {
		t, err = s.states.Head(r.Context(), r.session)
	}
	if err != nil {
		return err
	}
	if !given {
		n = t.Head
	}
	return s.ok(w, StateAt{Sequence: n, State: t})
}
