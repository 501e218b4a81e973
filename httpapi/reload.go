package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/helixd/helixd/httpapi/auth"
)

// reloadTimeout bounds POST /admin/reload, which outlives its client: MCP
// servers that are new have to be started.
const reloadTimeout = time.Minute

// reload answers POST /admin/reload.
func (s *operateRoutes) reload(w http.ResponseWriter, r *request) error {
	if err := r.allow(auth.OpAdmin, auth.AllSessions); err != nil { // it is about all sessions
		return err
	}
	if _, err := r.readObject(w); err != nil { // as on all routes; nothing in it is wanted
		return err
	}
	if s.rereading == nil {
		return errNoReload
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), reloadTimeout)
	defer cancel()
	done, err := s.rereading(ctx)
	if err != nil {
		return err
	}
	return r.ok(w, done)
}
