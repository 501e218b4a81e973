package httpapi

import (
	"errors"
	"math"
	"net/http"

	"github.com/oklog/ulid/v2"

	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
)

// RolledBack is the answer of POST /sessions/{id}/rollback.
type RolledBack struct {
	SessionID string `json:"sessionId"`
	// RolledBack is false if there was nothing to take back.
	RolledBack bool `json:"rolledBack"`
	// AfterSequence is the record that the session went back to, AtSequence
	// the last one that was truncated.
	AfterSequence uint64 `json:"afterSequence,omitempty"`
	AtSequence    uint64 `json:"atSequence,omitempty"`
}

// rollback answers POST /sessions/{id}/rollback {checkpointId | sequence}.
func (s *Server) rollback(w http.ResponseWriter, r *request) error {
	body, err := readObject(w, r)
	if err != nil {
		return err
	}
	at := body.target()
	if at == (engine.Target{}) {
		body.fail("checkpointId", "or sequence is required")
	}
	if *body.err != nil {
		return *body.err
	}
	ctx, cancel := detached(r)
	defer cancel()
	marker, err := s.loop.Rollback(ctx, r.session, at)
	if err != nil {
		return asTarget(err)
	}
	answer := RolledBack{SessionID: r.session}
	if marker != nil {
		answer.RolledBack, answer.AfterSequence, answer.AtSequence = true, marker.AfterSequence, marker.AtSequence
	}
	return s.ok(w, answer)
}

// fork answers POST /sessions/{id}/fork {sequence | checkpointId |
// messageIndex, sessionId?, edit?, run?, message?}; without a place it forks at
// the head. The caller must be allowed on the new session as well.
func (s *Server) fork(w http.ResponseWriter, r *request) error {
	body, err := readObject(w, r)
	if err != nil {
		return err
	}
	req := engine.ForkRequest{FromSessionID: r.session, Tenant: CallerOf(r.Context()).Tenant, At: body.target()}
	if body.has("messageIndex") {
		n := int(body.number("messageIndex", 0, math.MaxInt32))
		req.MessageIndex = &n
	}
	if body.has("sessionId") {
		req.NewSessionID = body.sessionID()
	} else {
		req.NewSessionID = "fork-" + ulid.Make().String()
	}
	req.Edit = body.edit()
	if body.has("run") {
		req.Run = body.flag("run")
	}
	if body.has("message") {
		req.Messages = body.messages()
	}
	if *body.err != nil {
		return *body.err
	}
	if err := s.authorizeAs(r, req.NewSessionID, true); err != nil {
		return err
	}
	ctx, cancel := detached(r)
	defer cancel()
	forked, err := s.loop.Fork(ctx, req)
	if err != nil {
		return asTarget(err)
	}
	return s.ok(w, forked)
}

// edit reads the member "edit" of a fork: {message?: {content, index?},
// toolResult?: {toolCallId, result | error}, systemPrompt?}.
func (o *object) edit() (e engine.ForkEdit) {
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
func (o *object) target() (at engine.Target) {
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

// checkpoints answers GET /sessions/{id}/checkpoints, oldest first.
func (s *Server) checkpoints(w http.ResponseWriter, r *request) error {
	return servePage(s, w, r, func(t *projector.Tree) []projector.Checkpoint { return t.Checkpoints })
}

// runs answers GET /sessions/{id}/runs, oldest first.
func (s *Server) runs(w http.ResponseWriter, r *request) error {
	return servePage(s, w, r, func(t *projector.Tree) []projector.Run { return t.Runs })
}

// servePage answers with a page of what a session has.
func servePage[T any](s *Server, w http.ResponseWriter, r *request, of func(*projector.Tree) []T) error {
	offset, limit, err := r.query.page()
	if err != nil {
		return err
	}
	t, err := s.states.Head(r.Context(), r.session)
	if err != nil {
		return err
	}
	all := of(t)
	from := min(offset, len(all))
	to := min(from+limit, len(all))
	return s.ok(w, Page[T]{
		Items: append([]T{}, all[from:to]...), Total: len(all), Offset: offset, Limit: limit, HasMore: to < len(all),
	})
}
