package chat

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/internal/control"
	"github.com/helixd/helixd/httpapi/internal/web"
	"github.com/helixd/helixd/projector"
	"github.com/helixd/helixd/projector/uimessage"
)

// Stream answers GET /chat/{id}/stream: 204 if nothing is under way, also
// for a session that there is not; but who says where to resume gets the rest
// of what has ended meanwhile.
func (s *Routes) Stream(w http.ResponseWriter, r *web.Request) error {
	parts, err := textParts(r.Query)
	if err != nil {
		return err
	}
	reply, err := s.resumePosition(r)
	if err != nil {
		return err
	}
	reply.textParts = parts
	reply.shown = reply.whole && s.options().NoContentReplay || !reply.whole && strings.HasSuffix(reply.messageID, uimessage.Partial)
	return s.replyChat(w, r, r.Session, reply)
}

// resumePosition returns what a client that reconnects gets: what lies behind
// its position, which X-Resume-From-Sequence says, else Last-Event-ID; without
// one the whole message.
func (s *Routes) resumePosition(r *web.Request) (chatReply, error) {
	reply := chatReply{whole: true, messageID: r.Header.Get(api.HeaderExistingMessage)}
	if reply.messageID != "" && eventlog.ValidateID(reply.messageID) != nil {
		return chatReply{}, web.Invalid(api.HeaderExistingMessage, "must be a valid id")
	}
	for _, name := range []string{api.HeaderResumeFrom, api.HeaderLastEventID} {
		if v := r.Header.Get(name); v != "" {
			at, err := web.ParsePosition(name, v)
			if err != nil {
				return chatReply{}, err
			}
			reply.whole, reply.after = false, at
			reply.resync = name == api.HeaderResumeFrom && !s.options().NoResyncOnResume
			break
		}
	}
	return reply, nil
}

// textParts reports whether a client wants document 003's dialect (facts 11).
func textParts(q web.Query) (bool, error) {
	switch q.Values.Get("format") {
	case "text-stream-part":
		return true, nil
	case "":
		if !q.Values.Has("format") {
			return false, nil
		}
	}
	return false, web.Invalid("format", "must be text-stream-part, or left out")
}

// SubmitToolResult answers POST /chat/{id}/submit-tool-result: what POST
// /submit-tool-result does, and then the session goes on by itself if nothing
// else is open. One that was interrupted waits for its user all the same.
func (s *Routes) SubmitToolResult(w http.ResponseWriter, r *web.Request) error {
	raw, err := r.ReadBody(w, api.MaxSubmitBody, web.DefaultBodyTimeout)
	if err != nil {
		return err
	}
	body, err := web.ParseObject(raw)
	if err != nil {
		return s.control.Refused(err)
	}
	inSession(body, r.Session)
	sub := control.SubmissionOf(body)
	if *body.Err != nil {
		return s.control.Refused(*body.Err)
	}
	ctx, cancel := r.Detached()
	defer cancel()
	submitted, err := s.control.Submit(ctx, sub)
	if err != nil {
		return err
	}
	if len(submitted.PendingToolCallIDs) == 0 && !s.options().NoAutoResume {
		if err := s.autoResume(ctx, r.Session); err != nil {
			return err
		}
	}
	return r.OK(w, control.AnswerOf(submitted))
}

// autoResume has a session go on that waits for nothing any more. A client that
// is told that this failed repeats the submission, which tries it again.
func (s *Routes) autoResume(ctx context.Context, session string) error {
	t, err := s.states.Head(ctx, session)
	if err != nil || t.Status == projector.SessionInterrupted {
		return err
	}
	_, err = s.loop.Resume(ctx, engine.ResumeRequest{SessionID: session, Mode: eventlog.ModeContinue})
	if errors.Is(err, agentloop.ErrAlreadyCompleted) || errors.Is(err, agentloop.ErrNothingToResume) {
		return nil
	}
	return err
}

// inSession has a body speak of the session that the path names. One that
// speaks of another is refused.
func inSession(o *web.Object, session string) {
	if o.Has("sessionId") && o.Text("sessionId") != session {
		o.Fail("sessionId", "is not the path's")
	}
	o.Members["sessionId"], _ = web.Marshal(session)
}

// Interrupt and Abort answer POST /chat/{id}/interrupt and /abort: as
// POST /interrupt and /abort, but the body may be empty (Content-Length: 0),
// as a browser's fetch without one sends it.
func (s *Routes) Interrupt(w http.ResponseWriter, r *web.Request) error {
	return s.chatStop(w, r, s.loop.Interrupt)
}

func (s *Routes) Abort(w http.ResponseWriter, r *web.Request) error {
	return s.chatStop(w, r, s.loop.Abort)
}

func (s *Routes) chatStop(w http.ResponseWriter, r *web.Request, ask control.Stopper) error {
	raw, err := r.ReadBody(w, api.MaxBody, web.DefaultBodyTimeout)
	if err != nil {
		return err
	}
	reason := ""
	if len(raw) > 0 {
		body, err := web.ParseObject(raw)
		if err != nil {
			return err
		}
		inSession(body, r.Session)
		if reason = body.OptText("reason"); *body.Err != nil {
			return *body.Err
		}
	}
	return s.control.StopSession(w, r, r.Session, reason, ask)
}
