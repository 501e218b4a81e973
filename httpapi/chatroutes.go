package httpapi

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/projector"
	"github.com/helixd/helixd/projector/uimessage"
)

// chatStream answers GET /chat/{id}/stream: 204 if nothing is under way, also
// for a session that there is not; but who says where to resume gets the rest
// of what has ended meanwhile.
func (s *chatRoutes) chatStream(w http.ResponseWriter, r *request) error {
	parts, err := textParts(r.query)
	if err != nil {
		return err
	}
	reply, err := s.resumePosition(r)
	if err != nil {
		return err
	}
	reply.textParts = parts
	reply.shown = reply.whole && s.options().NoContentReplay || !reply.whole && strings.HasSuffix(reply.messageID, uimessage.Partial)
	return s.replyChat(w, r, r.session, reply)
}

// resumePosition returns what a client that reconnects gets: what lies behind
// its position, which X-Resume-From-Sequence says, else Last-Event-ID; without
// one the whole message.
func (s *chatRoutes) resumePosition(r *request) (chatReply, error) {
	reply := chatReply{whole: true, messageID: r.Header.Get(api.HeaderExistingMessage)}
	if reply.messageID != "" && eventlog.ValidateID(reply.messageID) != nil {
		return chatReply{}, invalid(api.HeaderExistingMessage, "must be a valid id")
	}
	for _, name := range []string{api.HeaderResumeFrom, api.HeaderLastEventID} {
		if v := r.Header.Get(name); v != "" {
			at, err := parsePosition(name, v)
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
func textParts(q query) (bool, error) {
	switch q.values.Get("format") {
	case "text-stream-part":
		return true, nil
	case "":
		if !q.values.Has("format") {
			return false, nil
		}
	}
	return false, invalid("format", "must be text-stream-part, or left out")
}

// chatSubmit answers POST /chat/{id}/submit-tool-result: what POST
// /submit-tool-result does, and then the session goes on by itself if nothing
// else is open. One that was interrupted waits for its user all the same.
func (s *chatRoutes) chatSubmit(w http.ResponseWriter, r *request) error {
	raw, err := r.readBody(w, api.MaxSubmitBody, defaultBodyTimeout)
	if err != nil {
		return err
	}
	body, err := parseObject(raw)
	if err != nil {
		return s.control.refused(err)
	}
	inSession(body, r.session)
	sub := submissionOf(body)
	if *body.err != nil {
		return s.control.refused(*body.err)
	}
	ctx, cancel := r.detached()
	defer cancel()
	submitted, err := s.control.submit(ctx, sub)
	if err != nil {
		return err
	}
	if len(submitted.PendingToolCallIDs) == 0 && !s.options().NoAutoResume {
		if err := s.autoResume(ctx, r.session); err != nil {
			return err
		}
	}
	return r.ok(w, answerOf(submitted))
}

// autoResume has a session go on that waits for nothing any more. A client that
// is told that this failed repeats the submission, which tries it again.
func (s *chatRoutes) autoResume(ctx context.Context, session string) error {
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
func inSession(o *object, session string) {
	if o.has("sessionId") && o.text("sessionId") != session {
		o.fail("sessionId", "is not the path's")
	}
	o.members["sessionId"], _ = marshal(session)
}

// chatInterrupt and chatAbort answer POST /chat/{id}/interrupt and /abort: as
// POST /interrupt and /abort, but the body may be empty (Content-Length: 0),
// as a browser's fetch without one sends it.
func (s *chatRoutes) chatInterrupt(w http.ResponseWriter, r *request) error {
	return s.chatStop(w, r, s.loop.Interrupt)
}

func (s *chatRoutes) chatAbort(w http.ResponseWriter, r *request) error {
	return s.chatStop(w, r, s.loop.Abort)
}

func (s *chatRoutes) chatStop(w http.ResponseWriter, r *request, ask stopper) error {
	raw, err := r.readBody(w, api.MaxBody, defaultBodyTimeout)
	if err != nil {
		return err
	}
	reason := ""
	if len(raw) > 0 {
		body, err := parseObject(raw)
		if err != nil {
			return err
		}
		inSession(body, r.session)
		if reason = body.optText("reason"); *body.err != nil {
			return *body.err
		}
	}
	return s.control.stopSession(w, r, r.session, reason, ask)
}
