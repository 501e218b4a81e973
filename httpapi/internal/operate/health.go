package operate

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/auth"
	"github.com/helixd/helixd/httpapi/internal/web"
)

// readyTimeout is how long /readyz waits for the log.
const readyTimeout = 2 * time.Second

// replicated is a log with replicas.
type replicated interface {
	Replicas(context.Context) (eventlog.Replicas, error)
}

// Healthz answers GET /healthz: the process is up.
func (s *Routes) Healthz(w http.ResponseWriter, r *web.Request) error {
	return r.OK(w, map[string]bool{"ok": true})
}

// Readyz answers GET /readyz, with 503 if the log does not answer in time or
// takes no appends, or the server drains or is closing. Degraded is for callers that have the
// operation status on all sessions, even if the route is public.
func (s *Routes) Readyz(w http.ResponseWriter, r *web.Request) error {
	ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
	defer cancel()
	_, err := s.Log.Head(ctx, "helixd-readiness") // any id: that there is none is an answer
	if errors.Is(err, eventlog.ErrSessionNotFound) {
		err = nil
	}
	if err != nil && r.Context().Err() == nil {
		s.Logger.WarnContext(r.Context(), "not ready", "error", err)
	}
	var found *eventlog.Replicas
	if log, ok := s.Log.(replicated); ok && err == nil { // Info has the durability that this finds
		if r, err := log.Replicas(ctx); err == nil && r.Wanted > 1 {
			found = &r
		}
	}
	info := s.Log.Info()
	answer := api.Readiness{
		Ready:    err == nil && r.Closed() == nil && info.Refuses == "" && !s.Loop.Draining(),
		Draining: s.Loop.Draining(), Durability: info.Durability,
		Guarantee: info.Durability.Survives(), Refuses: info.Refuses, Backend: info.Backend,
		Partitions: info.Partitions, Agents: s.Loop.AgentTypes(), Version: s.Version, Replicas: found,
	}
	status := 200
	if !answer.Ready {
		status = 503
	}
	if !s.PublicReady && r.Allow(auth.OpStatus, "") != nil {
		return r.Respond(w, status, map[string]bool{"ready": answer.Ready})
	}
	if s.ReadModels != nil {
		fresh := web.Shown(s.ReadModels.Fresh(ctx))
		answer.ReadModels = &fresh
	}
	// It names other tenants, servers and files.
	if s.Degraded != nil && r.Allow(auth.OpStatus, auth.AllSessions) == nil {
		answer.Degraded = s.Degraded()
	}
	return r.Respond(w, status, answer)
}
