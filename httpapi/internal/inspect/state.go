package inspect

import (
	"context"
	"net/http"

	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/internal/web"
	"github.com/helixd/helixd/projector"
)

// moment is a session at a sequence.
type moment struct {
	session string
	at      uint64
	given   bool // else the head
}

// stateAt folds a session. Without a sequence it fills in the head.
func (s *Routes) stateAt(ctx context.Context, m *moment) (*projector.Tree, error) {
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
	m := moment{session: r.Session}
	var err error
	if m.at, m.given, err = r.Query.Number("at"); err != nil {
		return err
	}
	t, err := s.stateAt(r.Context(), &m)
	if err != nil {
		return err
	}
	return r.OK(w, api.StateAt{Sequence: m.at, State: t})
}
