package control

import (
	"context"
	"errors"
	"net/http"

	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/internal/web"
)

// Interrupt answers POST /interrupt (document 004): the run stops and can be
// resumed. A session that does not run is left as it is.
func (s *Routes) Interrupt(w http.ResponseWriter, r *web.Request) error {
	return s.stopRun(w, r, s.loop.Interrupt)
}

// Abort answers POST /abort (document 004): the run, also one that waits or
// was interrupted, has failed for good.
func (s *Routes) Abort(w http.ResponseWriter, r *web.Request) error {
	return s.stopRun(w, r, s.loop.Abort)
}

// Stopper asks the session's run to stop.
type Stopper func(ctx context.Context, session, reason string) error

// stopRun asks for a stop of the session that the body names.
func (s *Routes) stopRun(w http.ResponseWriter, r *web.Request, ask Stopper) error {
	body, err := r.ReadNamed(w, api.MaxBody, "sessionId")
	if err != nil {
		return err
	}
	session, reason := body.SessionID(), body.OptText("reason")
	if *body.Err != nil {
		return *body.Err
	}
	if err := r.Authorize(session); err != nil {
		return err
	}
	return s.StopSession(w, r, session, reason, ask)
}

// StopSession asks for a stop, and answers when it has been met, on whichever
// node the run is.
func (s *Routes) StopSession(w http.ResponseWriter, r *web.Request, session, reason string, ask Stopper) error {
	ctx, cancel := r.Detached()
	defer cancel()
	if err := ask(ctx, session, reason); err != nil {
		return err
	}
	if err := s.awaitStopped(r, session); err != nil {
		return err
	}
	return r.OK(w, struct {
		OK bool `json:"ok"`
	}{true})
}

// awaitStopped waits until the stop has been met (engine.Loop.AwaitStop).
func (s *Routes) awaitStopped(r *web.Request, session string) error {
	ctx, stop := r.UntilClosed(r.Context())
	defer stop()
	ctx, cancel := context.WithTimeoutCause(ctx, s.deadline, ErrNotStopped)
	defer cancel()
	err := s.loop.AwaitStop(ctx, session)
	if err != nil && errors.Is(context.Cause(ctx), ErrNotStopped) {
		return ErrNotStopped
	}
	return err
}
