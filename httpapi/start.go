package httpapi

import (
	"context"
	"net/http"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/eventlog"
)

// start answers POST /start (document 004, RemoteStartRequest). It is
// idempotent while the session's run is not over.
func (s *Server) start(w http.ResponseWriter, r *request) error {
	body, err := readObject(w, r.Request)
	if err != nil {
		return err
	}
	req := agentloop.StartRequest{
		SessionID: body.sessionID(),
		AgentType: body.word("agentType"),
		Messages:  body.messages(),
		State:     body.optObject("state"),
		Metadata:  body.optTexts("metadata"),
	}
	return s.begin(w, r, req.SessionID, *body.err, func(ctx context.Context) (agentloop.Started, error) {
		return s.loop.Start(ctx, req)
	})
}

// resume answers POST /resume (document 004, RemoteResumeRequest).
func (s *Server) resume(w http.ResponseWriter, r *request) error {
	body, err := readObject(w, r.Request)
	if err != nil {
		return err
	}
	req := agentloop.ResumeRequest{SessionID: body.sessionID()}
	if body.has("message") {
		req.Messages = body.messages()
	}
	return s.begin(w, r, req.SessionID, *body.err, func(ctx context.Context) (agentloop.Started, error) {
		return s.loop.Resume(ctx, req)
	})
}

// begin has a run begun for a body that was read. A client that leaves does
// not stop it half way: then nobody would drive what it asked for.
func (s *Server) begin(w http.ResponseWriter, r *request, session string, problem error,
	begin func(context.Context) (agentloop.Started, error),
) error {
	if problem != nil {
		return problem
	}
	if err := s.authorize(r, session); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), startTimeout)
	defer cancel()
	started, err := begin(ctx)
	if err != nil {
		return err
	}
	return s.ok(w, started)
}

func (o *object) sessionID() string {
	id := o.text("sessionId")
	if err := eventlog.ValidateSessionID(id); err != nil && *o.err == nil {
		*o.err = err
	}
	return id
}
