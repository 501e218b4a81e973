package httpapi

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/helixd/helixd/httpapi/auth"
)

// reloadTimeout bounds POST /admin/reload, which outlives its client: MCP
// servers that are new have to be started.
const reloadTimeout = time.Minute

// ReloadError says why a configuration was refused. Nothing has changed.
type ReloadError struct {
	// Problems are all that were found, with the file, the line and the key
	// where they are known. They hold no secrets.
	Problems []string
}

func (e *ReloadError) Error() string { return strings.Join(e.Problems, "\n") }

// reload answers POST /admin/reload.
func (s *Server) reload(w http.ResponseWriter, r *request) error {
	if err := s.allow(r.Request, auth.OpAdmin, auth.AllSessions); err != nil { // it is about all sessions
		return err
	}
	if _, err := readObject(w, r); err != nil { // as on all routes; nothing in it is wanted
		return err
	}
	if s.opts.Reload == nil {
		return errNoReload
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), reloadTimeout)
	defer cancel()
	done, err := s.opts.Reload(ctx)
	if err != nil {
		return err
	}
	return s.ok(w, done)
}
