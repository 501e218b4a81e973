package httpapi

import (
	"net/http"

	"github.com/helixd/helixd/agentloop/engine"
)

// sweep answers POST /sweep: {dryRun?}.
func (s *Server) sweep(w http.ResponseWriter, r *request) error {
	// As with retention, it is about all sessions.
	if err := s.allow(r.Request, OpErase, allSessions); err != nil {
		return err
	}
	body, err := readObject(w, r)
	if err != nil {
		return err
	}
	o := engine.SweepOptions{DryRun: body.has("dryRun") && body.flag("dryRun")}
	if *body.err != nil {
		return *body.err
	}
	if s.opts.ReadModels != nil {
		o.Expiring = s.opts.ReadModels.Expiring
	}
	done, err := s.loop.Sweep(r.Context(), o)
	if err != nil {
		return err
	}
	return s.ok(w, done)
}
