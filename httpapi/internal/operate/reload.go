package operate

import (
	"context"
	"net/http"
	"time"

	"github.com/helixd/helixd/httpapi/auth"
	"github.com/helixd/helixd/httpapi/internal/web"
)

// reloadTimeout bounds POST /admin/reload, which continues when its client leaves. It
// includes the start of new MCP servers.
const reloadTimeout = time.Minute

// Reload answers POST /admin/reload.
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
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), reloadTimeout)
	defer cancel()
	done, err := s.Reread(ctx)
	if err != nil {
		return err
	}
	return r.OK(w, done)
}
