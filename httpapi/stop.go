package httpapi

import (
	"context"
	"errors"
	"net/http"

	"github.com/helixd/helixd/httpapi/api"
)

// interrupt answers POST /interrupt (document 004): the run stops and can be
// resumed. A session that does not run is left as it is.
func (s *controlRoutes) interrupt(w http.ResponseWriter, r *request) error {
	return s.stopRun(w, r, s.loop.Interrupt)
}

// abort answers POST /abort (document 004): the run, also one that waits or
// was interrupted, has failed for good.
func (s *controlRoutes) abort(w http.ResponseWriter, r *request) error {
	return s.stopRun(w, r, s.loop.Abort)
}

// stopper asks the session's run to stop.
type stopper func(ctx context.Context, session, reason string) error

// stopRun asks for a stop of the session that the body names.
func (s *controlRoutes) stopRun(w http.ResponseWriter, r *request, ask stopper) error {
	body, err := r.readNamed(w, api.MaxBody, "sessionId")
	if err != nil {
		return err
	}
	session, reason := body.sessionID(), body.optText("reason")
	if *body.err != nil {
		return *body.err
	}
	if err := r.authorize(session); err != nil {
		return err
	}
	return s.stopSession(w, r, session, reason, ask)
}

// stopSession asks for a stop, and answers when it has been met, on whichever
// node the run is.
func (s *controlRoutes) stopSession(w http.ResponseWriter, r *request, session, reason string, ask stopper) error {
	ctx, cancel := r.detached()
	defer cancel()
	if err := ask(ctx, session, reason); err != nil {
		return err
	}
	if err := s.awaitStopped(r, session); err != nil {
		return err
	}
	return r.ok(w, struct {
		OK bool `json:"ok"`
	}{true})
}

// awaitStopped waits until the stop has been met (engine.Loop.AwaitStop).
func (s *controlRoutes) awaitStopped(r *request, session string) error {
	ctx, stop := r.untilClosed(r.Context())
	defer stop()
	ctx, cancel := context.WithTimeoutCause(ctx, s.deadline, errNotStopped)
	defer cancel()
	err := s.loop.AwaitStop(ctx, session)
	if err != nil && errors.Is(context.Cause(ctx), errNotStopped) {
		return errNotStopped
	}
	return err
}
