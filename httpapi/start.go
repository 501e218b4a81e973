package httpapi

import (
	"cmp"
	"context"
	"math"
	"net/http"

	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/eventlog"
)

// start answers POST /start (document 004, RemoteStartRequest). It is
// idempotent while the session's run is not over. The members userId and tags
// are helixd's own; they are of the session when it is new.
func (s *Server) start(w http.ResponseWriter, r *request) error {
	body, err := s.readNamed(w, r, MaxBody, "sessionId")
	if err != nil {
		return err
	}
	labels := body.labels()
	req := engine.StartRequest{
		SessionID: body.sessionID(),
		AgentType: body.word("agentType"),
		Messages:  body.messages(),
		State:     body.optObject("state"),
		UserID:    labels.userID,
		Tags:      labels.tags,
		Metadata:  body.optTexts("metadata"),
	}
	return s.begin(w, r, req.SessionID, *body.err, func(ctx context.Context) (engine.Started, error) {
		if err := CallerOf(ctx).checkUser(req.UserID); err != nil {
			return engine.Started{}, err
		}
		req.Tenant, req.MayUse = CallerOf(ctx).Tenant, CallerOf(ctx).mayUse
		req.UserID = cmp.Or(req.UserID, CallerOf(ctx).User)
		return s.loop.Start(ctx, req)
	})
}

// resume answers POST /resume (document 004, RemoteResumeRequest). The members
// mode, checkpointId, turn and approved are helixd's own (facts 3.1).
func (s *Server) resume(w http.ResponseWriter, r *request) error {
	body, err := s.readNamed(w, r, MaxBody, "sessionId")
	if err != nil {
		return err
	}
	req := engine.ResumeRequest{SessionID: body.sessionID()}
	if body.has("message") {
		req.Messages = body.messages()
	}
	if body.has("mode") {
		req.Mode = eventlog.RunMode(body.word("mode"))
	}
	switch req.Mode {
	case eventlog.ModeFromCheckpoint:
		req.CheckpointID = body.word("checkpointId")
	case eventlog.ModeWithConfirmation:
		req.Approved = body.flag("approved")
	case eventlog.ModeRetry:
		if body.has("turn") {
			req.Turn = int(body.number("turn", 1, math.MaxInt32))
		}
	}
	body.only("checkpointId", req.Mode, eventlog.ModeFromCheckpoint)
	body.only("approved", req.Mode, eventlog.ModeWithConfirmation)
	body.only("turn", req.Mode, eventlog.ModeRetry)
	return s.begin(w, r, req.SessionID, *body.err, func(ctx context.Context) (engine.Started, error) {
		return s.loop.Resume(ctx, req)
	})
}

// begin has a run begun for a body that was read. A client that leaves does
// not stop it half way: then nobody would drive what it asked for.
func (s *Server) begin(w http.ResponseWriter, r *request, session string, problem error,
	begin func(context.Context) (engine.Started, error),
) error {
	if problem != nil {
		return problem
	}
	if err := s.authorize(r, session); err != nil {
		return err
	}
	ctx, cancel := detached(r)
	defer cancel()
	started, err := begin(ctx)
	if err != nil {
		return err
	}
	return s.ok(w, started)
}

// detached returns a context for what a client that leaves does not stop.
func detached(r *request) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(r.Context()), startTimeout)
}

// only refuses a member that would be ignored in another mode than with.
func (o *object) only(name string, mode, with eventlog.RunMode) {
	if o.has(name) && mode != with {
		o.fail(name, "goes with the mode "+string(with))
	}
}

func (o *object) sessionID() string {
	id := o.text("sessionId")
	if err := eventlog.ValidateClientSessionID(id); err != nil && *o.err == nil {
		*o.err = err
	}
	return id
}
