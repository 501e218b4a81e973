package httpapi

import (
	"cmp"
	"context"
	"math"
	"net/http"

	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/auth"
)

// start answers POST /start (document 004, RemoteStartRequest). It is
// idempotent while the session's run is not over. The members userId and tags
// are helixd's own; they are of the session when it is new.
func (s *controlRoutes) start(w http.ResponseWriter, r *request) error {
	body, err := r.readNamed(w, api.MaxBody, "sessionId")
	if err != nil {
		return err
	}
	labels := labelsOf(body)
	req := engine.StartRequest{
		SessionID: body.sessionID(),
		AgentType: body.word("agentType"),
		Messages:  messagesOf(body),
		State:     body.optObject("state"),
		UserID:    labels.userID,
		Tags:      labels.tags,
		Metadata:  body.optTexts("metadata"),
	}
	return s.begin(w, r, req.SessionID, *body.err, func(ctx context.Context) (engine.Started, error) {
		if err := auth.CallerOf(ctx).CheckUser(req.UserID); err != nil {
			return engine.Started{}, err
		}
		req.Tenant, req.MayUse = auth.CallerOf(ctx).Tenant, auth.CallerOf(ctx).MayUse
		req.UserID = cmp.Or(req.UserID, auth.CallerOf(ctx).User)
		return s.loop.Start(ctx, req)
	})
}

// resume answers POST /resume (document 004, RemoteResumeRequest). The members
// mode, checkpointId, turn and approved are helixd's own (facts 3.1).
func (s *controlRoutes) resume(w http.ResponseWriter, r *request) error {
	body, err := r.readNamed(w, api.MaxBody, "sessionId")
	if err != nil {
		return err
	}
	req := engine.ResumeRequest{SessionID: body.sessionID()}
	if body.has("message") {
		req.Messages = messagesOf(body)
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
	only(body, "checkpointId", req.Mode, eventlog.ModeFromCheckpoint)
	only(body, "approved", req.Mode, eventlog.ModeWithConfirmation)
	only(body, "turn", req.Mode, eventlog.ModeRetry)
	return s.begin(w, r, req.SessionID, *body.err, func(ctx context.Context) (engine.Started, error) {
		return s.loop.Resume(ctx, req)
	})
}

// begin has a run begun for a body that was read. A client that leaves does
// not stop it half way: then nobody would drive what it asked for.
func (s *controlRoutes) begin(w http.ResponseWriter, r *request, session string, problem error,
	begin func(context.Context) (engine.Started, error),
) error {
	if problem != nil {
		return problem
	}
	if err := r.authorize(session); err != nil {
		return err
	}
	ctx, cancel := r.detached()
	defer cancel()
	started, err := begin(ctx)
	if err != nil {
		return err
	}
	return r.ok(w, api.Started(started))
}

// only refuses a member that would be ignored in another mode than with.
func only(o *object, name string, mode, with eventlog.RunMode) {
	if o.has(name) && mode != with {
		o.fail(name, "goes with the mode "+string(with))
	}
}
