package control

import (
	"errors"
	"math"
	"net/http"

	"github.com/oklog/ulid/v2"

	"github.com/helixd/helixd/agentloop/engine/timetravel"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/auth"
	"github.com/helixd/helixd/httpapi/internal/web"
)

// Rollback answers POST /sessions/{id}/rollback {checkpointId | sequence}.
func (s *Routes) Rollback(w http.ResponseWriter, r *web.Request) error {
	body, err := r.ReadObject(w)
	if err != nil {
		return err
	}
	at := targetOf(body)
	if at == (timetravel.Target{}) {
		body.Fail("checkpointId", "or sequence is required")
	}
	if *body.Err != nil {
		return *body.Err
	}
	ctx, cancel := r.Detached()
	defer cancel()
	marker, err := s.loop.TimeTravel.Rollback(ctx, r.Session, at)
	if err != nil {
		return asTarget(err)
	}
	answer := api.RolledBack{SessionID: r.Session}
	if marker != nil {
		answer.RolledBack, answer.AfterSequence, answer.AtSequence = true, marker.AfterSequence, marker.AtSequence
	}
	return r.OK(w, answer)
}

// Fork answers POST /sessions/{id}/fork {sequence | checkpointId |
// messageIndex, sessionId?, edit?, run?, message?}. Without a place it forks at the head.
// The caller must be allowed on the new session, too.
func (s *Routes) Fork(w http.ResponseWriter, r *web.Request) error {
	body, err := r.ReadObject(w)
	if err != nil {
		return err
	}
	req := timetravel.ForkRequest{FromSessionID: r.Session, Tenant: auth.CallerOf(r.Context()).Tenant, At: targetOf(body)}
	if body.Has("messageIndex") {
		n := int(body.Number("messageIndex", 0, math.MaxInt32))
		req.MessageIndex = &n
	}
	if body.Has("sessionId") {
		req.NewSessionID = body.SessionID()
	} else {
		req.NewSessionID = "fork-" + ulid.Make().String()
	}
	req.Edit = editOf(body)
	if body.Has("run") {
		req.Run = body.Flag("run")
	}
	if body.Has("message") {
		req.Messages = messagesOf(body)
	}
	if *body.Err != nil {
		return *body.Err
	}
	if err := r.AuthorizeAs(req.NewSessionID, true); err != nil {
		return err
	}
	ctx, cancel := r.Detached()
	defer cancel()
	forked, err := s.loop.TimeTravel.Fork(ctx, req)
	if err != nil {
		return asTarget(err)
	}
	return r.OK(w, api.Forked(forked))
}

// editOf reads the member "edit" of a fork: {message?: {content, index?},
// toolResult?: {toolCallId, result | error}, systemPrompt?}.
func editOf(o *web.Object) (e timetravel.ForkEdit) {
	if !o.Has("edit") {
		return e
	}
	edit := o.Object("edit")
	if m := edit.Object("message"); m != nil {
		e.Message = &timetravel.MessageEdit{Content: m.Text("content")}
		if m.Has("index") {
			n := int(m.Number("index", 0, math.MaxInt32))
			e.Message.Index = &n
		}
	}
	if t := edit.Object("toolResult"); t != nil {
		e.ToolResult = &timetravel.ResultEdit{ToolCallID: t.Word("toolCallId"), Result: t.Members["result"], Error: t.OptWord("error")}
	}
	if edit != nil && edit.Has("systemPrompt") {
		prompt := edit.Text("systemPrompt")
		e.SystemPrompt = &prompt
	}
	if e == (timetravel.ForkEdit{}) {
		o.Fail("edit", "must hold message, toolResult or systemPrompt")
	}
	return e
}

// targetOf reads a place in a session's history, or the zero value if there is none.
func targetOf(o *web.Object) (at timetravel.Target) {
	at.CheckpointID = o.OptWord("checkpointId")
	if o.Has("sequence") {
		at.Sequence = o.Number("sequence", 1, math.MaxInt64)
	}
	return at
}

// asTarget renames the field of a problem: the log calls the sequence after.
func asTarget(err error) error {
	if problem, ok := errors.AsType[*eventlog.ValidationError](err); ok && problem.Field == "after" {
		return web.Invalid("sequence", problem.Reason)
	}
	return err
}
