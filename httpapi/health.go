package httpapi

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/auth"
)

// readyTimeout is how long /readyz waits for the log.
const readyTimeout = 2 * time.Second

// replicated is a log that several servers may keep.
type replicated interface {
	Replicas(context.Context) (eventlog.Replicas, error)
}

// healthz answers GET /healthz: the process serves.
func (s *operateRoutes) healthz(w http.ResponseWriter, r *request) error {
	return r.ok(w, map[string]bool{"ok": true})
}

// readyz answers GET /readyz, with 503 if the log does not answer in time or
// takes no appends, or the server drains or is closing.
func (s *operateRoutes) readyz(w http.ResponseWriter, r *request) error {
	ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
	defer cancel()
	_, err := s.log.Head(ctx, "helixd-readiness") // any id: that there is none is an answer
	if errors.Is(err, eventlog.ErrSessionNotFound) {
		err = nil
	}
	if err != nil && r.Context().Err() == nil {
		s.logger.WarnContext(r.Context(), "not ready", "error", err)
	}
	info := s.log.Info()
	answer := api.Readiness{
		Ready:    err == nil && r.closed() == nil && info.Refuses == "" && !s.loop.Draining(),
		Draining: s.loop.Draining(), Durability: info.Durability,
		Guarantee: info.Durability.Survives(), Refuses: info.Refuses, Backend: info.Backend,
		Partitions: info.Partitions, Agents: s.loop.AgentTypes(), Version: s.version,
	}
	status := 200
	if !answer.Ready {
		status = 503
	}
	if !s.publicReady && r.allow(auth.OpStatus, "") != nil {
		return r.respond(w, status, map[string]bool{"ready": answer.Ready})
	}
	if log, ok := s.log.(replicated); ok && err == nil {
		if found, err := log.Replicas(ctx); err == nil && found.Wanted > 1 {
			answer.Replicas = &found
		}
	}
	if s.readModels != nil {
		fresh := shown(s.readModels.Fresh(ctx))
		answer.ReadModels = &fresh
	}
	return r.respond(w, status, answer)
}
