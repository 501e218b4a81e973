package inspect

import (
	"context"
	"net/http"

	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/internal/web"
	"github.com/helixd/helixd/projector"
)

// point is a session at a sequence.
type point struct {
	session string
	at      uint64
	given   bool // else the head
}

// stateAt returns a session's state at a point. If the point has no sequence, stateAt sets
// it to the head.
func (s *Routes) stateAt(ctx context.Context, m *point) (*projector.Tree, error) {
	if m.given {
		return s.states.At(ctx, m.session, m.at)
	}
	t, err := s.states.Head(ctx, m.session)
	if err == nil {
		m.at = t.Head
	}
	return t, err
}

// State answers GET /sessions/{id}/state?at=n, at the head by default.
func (s *Routes) State(w http.ResponseWriter, r *web.Request) error {
	m := point{session: r.Session}
	if m.at, m.given = r.Query.Number("at"); *r.Query.Err != nil {
		return *r.Query.Err
	}
	t, err := s.stateAt(r.Context(), &m)
	if err != nil {
		return err
	}
	if err := r.LargeAnswer(t.Bytes); err != nil {
		return err
	}
	return r.OK(w, api.StateAt{Sequence: m.at, State: t})
}
