package chat

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/internal/control"
	"github.com/helixd/helixd/httpapi/internal/web"
	"github.com/helixd/helixd/projector"
	"github.com/helixd/helixd/projector/uimessage"
)

// Stream answers GET /chat/{id}/stream. It answers 204 if no message is under way or the
// session does not exist. A client with a resume position also gets the rest of a message
// that has ended meanwhile.
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
	return s.replyWith(w, r, r.Session, reply)
}

// resumePosition returns the portion for a client that reconnects: the frames after its
// position, which is in X-Resume-From-Sequence, else in Last-Event-ID. Without a position
// it is the whole message.
func (s *Routes) resumePosition(r *web.Request) (portion, error) {
	reply := portion{whole: true, messageID: r.Header.Get(api.HeaderExistingMessage)}
	if reply.messageID != "" && eventlog.ValidateID(reply.messageID) != nil {
		return portion{}, web.Invalid(api.HeaderExistingMessage, "must be a valid id")
	}
	for _, name := range []string{api.HeaderResumeFrom, api.HeaderLastEventID} {
		if v := r.Header.Get(name); v != "" {
			at, err := web.ParsePosition(name, v)
			if err != nil {
				return portion{}, err
			}
			reply.whole, reply.after = false, at
			reply.resync = name == api.HeaderResumeFrom && !s.options().NoResyncOnResume
			break
		}
	}
	return reply, nil
}

// textParts reports whether a client wants TextStreamParts instead of UI message parts.
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

// SubmitToolResult answers POST /chat/{id}/submit-tool-result: it does the same as POST
// /submit-tool-result, and then resumes the session if no other call is open. A session
// that was interrupted still waits for its user.
func (s *Routes) SubmitToolResult(w http.ResponseWriter, r *web.Request) error {
	raw, err := r.ReadBody(w, api.MaxSubmitBody)
	if err != nil {
		return err
	}
	body, err := r.Parse(raw)
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

// autoResume resumes a session without open calls. If it fails, the client repeats the
// submission, which tries again.
func (s *Routes) autoResume(ctx context.Context, session string) error {
	t, err := s.states.Head(ctx, session)
	if err != nil || t.Status == projector.SessionInterrupted {
		return err
	}
	return s.goOn(ctx, session)
}

// goOn resumes a session. That another request resumed it first is no error.
func (s *Routes) goOn(ctx context.Context, session string) error {
	_, err := s.loop.Resume(ctx, engine.ResumeRequest{SessionID: session, Mode: fact.ModeContinue})
	if errors.Is(err, agentloop.ErrAlreadyCompleted) || errors.Is(err, agentloop.ErrNothingToResume) {
		return nil
	}
	return err
}

// inSession sets a body's session to the one in the path. It is a problem if the body
// names another one.
func inSession(o *web.Object, session string) {
	if o.Has("sessionId") && o.Text("sessionId") != session {
		o.Fail("sessionId", "is not the path's")
	}
	o.Members["sessionId"], _ = eventlog.Marshal(session)
}

// Interrupt and Abort answer POST /chat/{id}/interrupt and /abort: as
// POST /interrupt and /abort, but the body may be empty (Content-Length: 0),
// as a browser's fetch without one sends it.
func (s *Routes) Interrupt(w http.ResponseWriter, r *web.Request) error {
	return s.stop(w, r, s.loop.Interrupt)
}

func (s *Routes) Abort(w http.ResponseWriter, r *web.Request) error {
	return s.stop(w, r, s.loop.Abort)
}

func (s *Routes) stop(w http.ResponseWriter, r *web.Request, ask control.Stopper) error {
	body, err := r.ReadOptObject(w)
	if err != nil {
		return err
	}
	inSession(body, r.Session)
	reason := body.OptText("reason")
	if *body.Err != nil {
		return *body.Err
	}
	return s.control.StopSession(w, r, r.Session, reason, ask)
}
