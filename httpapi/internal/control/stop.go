package control

import (
	"context"
	"errors"
	"net/http"

	"github.com/helixd/helixd/httpapi/internal/web"
)

// Interrupt answers POST /interrupt: the run stops and can be resumed. A
// session that does not run stays as it is.
func (s *Routes) Interrupt(w http.ResponseWriter, r *web.Request) error {
	return s.stopRun(w, r, s.loop.Interrupt)
}

// Abort answers POST /abort: the run fails for good, also one that waits or
// was interrupted.
func (s *Routes) Abort(w http.ResponseWriter, r *web.Request) error {
	return s.stopRun(w, r, s.loop.Abort)
}

// Stopper requests that the session's run stops.
type Stopper func(ctx context.Context, session, reason string) error

// stopRun stops the run of the session that the body names.
func (s *Routes) stopRun(w http.ResponseWriter, r *web.Request, ask Stopper) error {
	body, err := r.ReadNamed(w, "sessionId")
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

// StopSession requests a stop, and answers when the run has stopped, on whichever node it
// is.
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

// awaitStopped waits until the run has stopped, at most until the deadline.
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
