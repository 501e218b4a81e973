package inspect

import (
	"net/http"

	"github.com/helixd/helixd/httpapi/internal/web"
	"github.com/helixd/helixd/projector"
)

// Checkpoints answers GET /sessions/{id}/checkpoints, oldest first.
func (s *Routes) Checkpoints(w http.ResponseWriter, r *web.Request) error {
	return servePage(s, w, r, func(t *projector.Tree) []projector.Checkpoint { return t.Checkpoints })
}

// Runs answers GET /sessions/{id}/runs, oldest first.
func (s *Routes) Runs(w http.ResponseWriter, r *web.Request) error {
	return servePage(s, w, r, func(t *projector.Tree) []projector.Run { return t.Runs })
}

// servePage answers with a page of a list in a session's state.
func servePage[T any](s *Routes, w http.ResponseWriter, r *web.Request, of func(*projector.Tree) []T) error {
	p := r.Query.Page()
	if *r.Query.Err != nil {
		return *r.Query.Err
	}
	t, err := s.states.Head(r.Context(), r.Session)
	if err != nil {
		return err
	}
	return r.OK(w, web.PageOf(of(t), p))
}
