package operate

import (
	"context"
	"net/http"

	"github.com/helixd/helixd/httpapi/auth"
	"github.com/helixd/helixd/httpapi/internal/web"
)

// Reload answers POST /admin/reload. A reload continues when its client leaves.
func (s *Routes) Reload(w http.ResponseWriter, r *web.Request) error {
	if err := r.Allow(auth.OpAdmin, auth.AllSessions); err != nil { // it is about all sessions
		return err
	}
	if _, err := r.ReadObject(w); err != nil { // as on all routes; nothing in it is wanted
		return err
	}
	if s.Reread == nil {
		return ErrNoReload
	}
	done, err := s.Reread(context.WithoutCancel(r.Context())) // it knows how long its parts may take
	if err != nil {
		return err
	}
	return r.OK(w, done)
}
