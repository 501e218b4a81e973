package control

import (
	"cmp"
	"context"
	"math"
	"net/http"

	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/auth"
	"github.com/helixd/helixd/httpapi/internal/web"
)

// Start answers POST /start. It is idempotent until the
// session's run ends. The members userId and tags are helixd's own, and label a new
// session.
func (s *Routes) Start(w http.ResponseWriter, r *web.Request) error {
	body, err := r.ReadNamed(w, "sessionId")
	if err != nil {
		return err
	}
	labels := LabelsOf(body)
	req := engine.StartRequest{
		SessionID: body.SessionID(),
		AgentType: body.Word("agentType"),
		Messages:  messagesOf(body),
		State:     body.OptObject("state"),
		UserID:    labels.UserID,
		Tags:      labels.Tags,
		Metadata:  body.OptTexts("metadata"),
	}
	return s.begin(w, r, req.SessionID, *body.Err, func(ctx context.Context) (engine.Started, error) {
		if err := auth.CallerOf(ctx).CheckUser(req.UserID); err != nil {
			return engine.Started{}, err
		}
		req.Tenant = auth.CallerOf(ctx).Tenant
		req.UserID = cmp.Or(req.UserID, auth.CallerOf(ctx).User)
		return s.loop.Start(ctx, req)
	})
}

// Resume answers POST /resume. The members
// mode, checkpointId, turn and approved are helixd's own.
func (s *Routes) Resume(w http.ResponseWriter, r *web.Request) error {
	body, err := r.ReadNamed(w, "sessionId")
	if err != nil {
		return err
	}
	req := engine.ResumeRequest{SessionID: body.SessionID()}
	if body.Has("message") {
		req.Messages = messagesOf(body)
	}
	req.Mode = fact.RunMode(body.OptWord("mode"))
	switch req.Mode {
	case fact.ModeFromCheckpoint:
		req.CheckpointID = body.Word("checkpointId")
	case fact.ModeWithConfirmation:
		req.Approved = body.Flag("approved")
	case fact.ModeRetry:
		if body.Has("turn") {
			req.Turn = int(body.Number("turn", 1, math.MaxInt32))
		}
	}
	only(body, "checkpointId", req.Mode, fact.ModeFromCheckpoint)
	only(body, "approved", req.Mode, fact.ModeWithConfirmation)
	only(body, "turn", req.Mode, fact.ModeRetry)
	return s.begin(w, r, req.SessionID, *body.Err, func(ctx context.Context) (engine.Started, error) {
		return s.loop.Resume(ctx, req)
	})
}

// begin begins a run after the body was read. A client that leaves does not stop it
// halfway: then no node would drive the run.
func (s *Routes) begin(w http.ResponseWriter, r *web.Request, session string, problem error,
	begin func(context.Context) (engine.Started, error),
) error {
	if problem != nil {
		return problem
	}
	if err := r.Authorize(session); err != nil {
		return err
	}
	ctx, cancel := r.Detached()
	defer cancel()
	started, err := begin(ctx)
	if err != nil {
		return err
	}
	return r.OK(w, api.Started(started))
}

// only fails if a member is given that counts only in the mode with.
func only(o *web.Object, name string, mode, with fact.RunMode) {
	if o.Has(name) && mode != with {
		o.Fail(name, "goes with the mode "+string(with))
	}
}
