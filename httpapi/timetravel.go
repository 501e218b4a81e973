package httpapi

import (
	"errors"
	"math"
	"net/http"

	"github.com/oklog/ulid/v2"

	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/auth"
)

// rollback answers POST /sessions/{id}/rollback {checkpointId | sequence}.
func (s *controlRoutes) rollback(w http.ResponseWriter, r *request) error {
	body, err := r.readObject(w)
	if err != nil {
		return err
	}
	at := targetOf(body)
	if at == (engine.Target{}) {
		body.fail("checkpointId", "or sequence is required")
	}
	if *body.err != nil {
		return *body.err
	}
	ctx, cancel := r.detached()
	defer cancel()
	marker, err := s.loop.Rollback(ctx, r.session, at)
	if err != nil {
		return asTarget(err)
	}
	answer := api.RolledBack{SessionID: r.session}
	if marker != nil {
		answer.RolledBack, answer.AfterSequence, answer.AtSequence = true, marker.AfterSequence, marker.AtSequence
	}
	return r.ok(w, answer)
}

// fork answers POST /sessions/{id}/fork {sequence | checkpointId |
// messageIndex, sessionId?, edit?, run?, message?}; without a place it forks at
// the head. The caller must be allowed on the new session as well.
func (s *controlRoutes) fork(w http.ResponseWriter, r *request) error {
	body, err := r.readObject(w)
	if err != nil {
		return err
	}
	req := engine.ForkRequest{FromSessionID: r.session, Tenant: auth.CallerOf(r.Context()).Tenant, At: targetOf(body)}
	if body.has("messageIndex") {
		n := int(body.number("messageIndex", 0, math.MaxInt32))
		req.MessageIndex = &n
	}
	if body.has("sessionId") {
		req.NewSessionID = body.sessionID()
	} else {
		req.NewSessionID = "fork-" + ulid.Make().String()
	}
	req.Edit = editOf(body)
	if body.has("run") {
		req.Run = body.flag("run")
	}
	if body.has("message") {
		req.Messages = messagesOf(body)
	}
	if *body.err != nil {
		return *body.err
	}
	if err := r.authorizeAs(req.NewSessionID, true); err != nil {
		return err
	}
	ctx, cancel := r.detached()
	defer cancel()
	forked, err := s.loop.Fork(ctx, req)
	if err != nil {
		return asTarget(err)
	}
	return r.ok(w, api.Forked(forked))
}

// edit reads the member "edit" of a fork: {message?: {content, index?},
// toolResult?: {toolCallId, result | error}, systemPrompt?}.
func editOf(o *object) (e engine.ForkEdit) {
	if !o.has("edit") {
		return e
	}
	edit := o.object("edit")
	if m := edit.object("message"); m != nil {
		e.Message = &engine.MessageEdit{Content: m.text("content")}
		if m.has("index") {
			n := int(m.number("index", 0, math.MaxInt32))
			e.Message.Index = &n
		}
	}
	if t := edit.object("toolResult"); t != nil {
		e.ToolResult = &engine.ResultEdit{ToolCallID: t.word("toolCallId"), Result: t.members["result"]}
		if t.has("error") {
			e.ToolResult.Error = t.word("error")
		}
	}
	if edit != nil && edit.has("systemPrompt") {
		prompt := edit.text("systemPrompt")
		e.SystemPrompt = &prompt
	}
	if e == (engine.ForkEdit{}) {
		o.fail("edit", "must hold message, toolResult or systemPrompt")
	}
	return e
}

// target reads where to go in a session's history: the zero value if nothing
// is said.
func targetOf(o *object) (at engine.Target) {
	if o.has("checkpointId") {
		at.CheckpointID = o.word("checkpointId")
	}
	if o.has("sequence") {
		at.Sequence = o.number("sequence", 1, math.MaxInt64)
	}
	return at
}

// asTarget names the member that the log calls after.
func asTarget(err error) error {
	if problem, ok := errors.AsType[*eventlog.ValidationError](err); ok && problem.Field == "after" {
		return invalid("sequence", problem.Reason)
	}
	return err
}
