package httpapi

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
	"github.com/helixd/helixd/projector/uimessage"
)

// Headers of a client that reconnects (document 000, Resume Headers).
const (
	headerResumeFrom      = "X-Resume-From-Sequence"
	headerLastEventID     = "Last-Event-ID"
	headerExistingMessage = "X-Existing-Message-Id"
)

// chatStream answers GET /chat/{id}/stream: 204 if nothing is under way, also
// for a session that there is not; but who says where to resume gets the rest
// of what has ended meanwhile.
func (s *Server) chatStream(w http.ResponseWriter, r *request) error {
	textParts, err := r.query.textParts()
	if err != nil {
		return err
	}
	reply, err := s.resumePosition(r)
	if err != nil {
		return err
	}
	reply.textParts = textParts
	reply.shown = reply.whole && s.chat().NoContentReplay || !reply.whole && strings.HasSuffix(reply.messageID, uimessage.Partial)
	return s.replyChat(w, r, r.session, reply)
}

// resumePosition returns what a client that reconnects gets: what lies behind
// its position, which X-Resume-From-Sequence says, else Last-Event-ID; without
// one the whole message.
func (s *Server) resumePosition(r *request) (chatReply, error) {
	reply := chatReply{whole: true, messageID: r.Header.Get(headerExistingMessage)}
	if reply.messageID != "" && eventlog.ValidateID(reply.messageID) != nil {
		return chatReply{}, invalid(headerExistingMessage, "must be a valid id")
	}
	for _, name := range []string{headerResumeFrom, headerLastEventID} {
		if v := r.Header.Get(name); v != "" {
			at, err := parsePosition(name, v)
			if err != nil {
				return chatReply{}, err
			}
			reply.whole, reply.after = false, at
			reply.resync = name == headerResumeFrom && !s.chat().NoResyncOnResume
			break
		}
	}
	return reply, nil
}

// textParts reports whether a client wants document 003's dialect (facts 11).
func (q query) textParts() (bool, error) {
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
func (s *Server) chatSubmit(w http.ResponseWriter, r *request) error {
	raw, err := readBody(w, r, MaxSubmitBody, bodyTimeout)
	if err != nil {
		return err
	}
	body, err := parseObject(raw)
	if err != nil {
		return s.refused(err)
	}
	body.inSession(r.session)
	sub := body.submission()
	if *body.err != nil {
		return s.refused(*body.err)
	}
	ctx, cancel := detached(r)
	defer cancel()
	submitted, err := s.submit(ctx, sub)
	if err != nil {
		return err
	}
	if len(submitted.PendingToolCallIDs) == 0 && !s.chat().NoAutoResume {
		if err := s.autoResume(ctx, r.session); err != nil {
			return err
		}
	}
	return s.ok(w, submitted)
}

// autoResume has a session go on that waits for nothing any more. A client that
// is told that this failed repeats the submission, which tries it again.
func (s *Server) autoResume(ctx context.Context, session string) error {
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
func (o *object) inSession(session string) {
	if o.has("sessionId") && o.text("sessionId") != session {
		o.fail("sessionId", "is not the path's")
	}
	o.members["sessionId"], _ = marshal(session)
}

// chatInterrupt and chatAbort answer POST /chat/{id}/interrupt and /abort: as
// POST /interrupt and /abort, but the body may be empty (Content-Length: 0),
// as a browser's fetch without one sends it.
func (s *Server) chatInterrupt(w http.ResponseWriter, r *request) error {
	return s.chatStop(w, r, s.loop.Interrupt)
}

func (s *Server) chatAbort(w http.ResponseWriter, r *request) error {
	return s.chatStop(w, r, s.loop.Abort)
}

func (s *Server) chatStop(w http.ResponseWriter, r *request, ask stopper) error {
	raw, err := readBody(w, r, MaxBody, bodyTimeout)
	if err != nil {
		return err
	}
	reason := ""
	if len(raw) > 0 {
		body, err := parseObject(raw)
		if err != nil {
			return err
		}
		body.inSession(r.session)
		if reason = body.optText("reason"); *body.err != nil {
			return *body.err
		}
	}
	return s.stopSession(w, r, r.session, reason, ask)
}
