package operate

import (
	"net/http"

	"github.com/helixd/helixd/agentloop/engine/admin"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/auth"
	"github.com/helixd/helixd/httpapi/internal/web"
)

// Sweep answers POST /sweep: {dryRun?}.
func (s *Routes) Sweep(w http.ResponseWriter, r *web.Request) error {
	// As with retention, it is about all sessions.
	if err := r.Allow(auth.OpErase, auth.AllSessions); err != nil {
		return err
	}
	body, err := r.ReadObject(w)
	if err != nil {
		return err
	}
	o := admin.SweepOptions{DryRun: body.Has("dryRun") && body.Flag("dryRun")}
	if *body.Err != nil {
		return *body.Err
	}
	if s.ReadModels != nil {
		o.Expiring = s.ReadModels.Expiring
	}
	done, err := s.Loop.Admin.Sweep(r.Context(), o)
	if err != nil {
		return err
	}
	return r.OK(w, api.Swept(done))
}
