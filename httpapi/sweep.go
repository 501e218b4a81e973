package httpapi

import (
	"net/http"

	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/auth"
)

// sweep answers POST /sweep: {dryRun?}.
func (s *operateRoutes) sweep(w http.ResponseWriter, r *request) error {
	// As with retention, it is about all sessions.
	if err := r.allow(auth.OpErase, auth.AllSessions); err != nil {
		return err
	}
	body, err := r.readObject(w)
	if err != nil {
		return err
	}
	o := engine.SweepOptions{DryRun: body.has("dryRun") && body.flag("dryRun")}
	if *body.err != nil {
		return *body.err
	}
	if s.readModels != nil {
		o.Expiring = s.readModels.Expiring
	}
	done, err := s.loop.Sweep(r.Context(), o)
	if err != nil {
		return err
	}
	return r.ok(w, api.Swept(done))
}
