package httpapi

import (
	"context"
	"errors"
	"net/http"
)

// interrupt answers POST /interrupt (document 004): the run stops and can be
// resumed. A session that does not run is left as it is.
func (s *Server) interrupt(w http.ResponseWriter, r *request) error {
	return s.stopRun(w, r, s.loop.Interrupt)
}

// abort answers POST /abort (document 004): the run, also one that waits or
// was interrupted, has failed for good.
func (s *Server) abort(w http.ResponseWriter, r *request) error {
	return s.stopRun(w, r, s.loop.Abort)
}

// stopper asks the session's run to stop.
type stopper func(ctx context.Context, session, reason string) error

// stopRun asks for a stop of the session that the body names.
func (s *Server) stopRun(w http.ResponseWriter, r *request, ask stopper) error {
	body, err := s.readNamed(w, r, MaxBody, "sessionId")
	if err != nil {
		return err
	}
	session, reason := body.sessionID(), body.optText("reason")
	if *body.err != nil {
		return *body.err
	}
	if err := s.authorize(r, session); err != nil {
		return err
	}
	return s.stopSession(w, r, session, reason, ask)
}

// stopSession asks for a stop, and answers when it has been met, on whichever
// node the run is.
func (s *Server) stopSession(w http.ResponseWriter, r *request, session, reason string, ask stopper) error {
	ctx, cancel := detached(r)
	defer cancel()
	if err := ask(ctx, session, reason); err != nil {
		return err
	}
	if err := s.awaitStopped(r.Context(), session); err != nil {
		return err
	}
	return s.ok(w, struct {
		OK bool `json:"ok"`
	}{true})
}

// awaitStopped waits until the stop has been met (engine.Loop.AwaitStop).
func (s *Server) awaitStopped(ctx context.Context, session string) error {
	ctx, stop := s.streamContext(ctx)
	defer stop()
	ctx, cancel := context.WithTimeoutCause(ctx, s.opts.InterruptObservationDeadline, errNotStopped)
	defer cancel()
	err := s.loop.AwaitStop(ctx, session)
	if err != nil && errors.Is(context.Cause(ctx), errNotStopped) {
		return errNotStopped
	}
	return err
}
