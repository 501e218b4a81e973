package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/httpapi/api"
)

// submitToolResult answers POST /submit-tool-result (documents 002 and 004,
// SubmitToolResult; facts 2.3). It only stores: the run goes on when it is
// resumed.
func (s *controlRoutes) submitToolResult(w http.ResponseWriter, r *request) error {
	raw, err := r.readSession(w, api.MaxSubmitBody, "sessionId")
	if err != nil {
		return err
	}
	sub, err := parseSubmission(raw)
	if err != nil {
		return s.refused(err)
	}
	if err := r.authorize(sub.SessionID); err != nil {
		return err
	}
	ctx, cancel := r.detached()
	defer cancel()
	submitted, err := s.submit(ctx, sub)
	if err != nil {
		return err
	}
	return r.ok(w, answerOf(submitted))
}

// submit stores a submission, whichever route it came by, if it fits the
// server's own schema.
func (s *controlRoutes) submit(ctx context.Context, sub engine.Submission) (engine.Submitted, error) {
	if s.submissions != nil {
		if err := s.submissions.Validate(payloadOf(sub)); err != nil {
			return engine.Submitted{}, s.refused(&eventlog.ValidationError{Reason: "does not fit the server's schema of submissions: " + err.Error()})
		}
	}
	submitted, err := s.loop.Submit(ctx, sub)
	if err != nil {
		return engine.Submitted{}, s.refused(err)
	}
	return submitted, nil
}

// answerOf is what the client reads of a submission.
func answerOf(done engine.Submitted) api.Submitted {
	return api.Submitted{
		Status: string(done.Status), Reason: done.Reason, SessionID: done.SessionID, ToolCallID: done.ToolCallID,
		PendingToolCallIDs: done.PendingToolCallIDs,
	}
}

// payloadOf is a submission as document 002 has it.
func payloadOf(sub engine.Submission) map[string]any {
	payload := map[string]any{"sessionId": sub.SessionID, "toolCallId": sub.ToolCallID, "kind": string(sub.Kind)}
	optional := func(key, text string) {
		if text != "" {
			payload[key] = text
		}
	}
	if sub.Kind == eventlog.SubmitApproval {
		payload["approved"] = sub.Approved
		optional("reason", sub.Reason)
		optional("approvalId", sub.ApprovalID)
		return payload
	}
	optional("error", sub.Error)
	var result any
	if sub.Result != nil && json.Unmarshal(sub.Result, &result) == nil { // else the loop refuses it
		payload["result"] = result
	}
	return payload
}

func parseSubmission(raw []byte) (engine.Submission, error) {
	body, err := parseObject(raw)
	if err != nil {
		return engine.Submission{}, err
	}
	sub := submissionOf(body)
	return sub, *body.err
}

func submissionOf(o *object) engine.Submission {
	sub := engine.Submission{
		SessionID:  o.sessionID(),
		ToolCallID: o.word("toolCallId"),
		Kind:       eventlog.SubmissionKind(o.word("kind")),
	}
	switch sub.Kind {
	case eventlog.SubmitClientResult:
		if o.has("result") == o.has("error") {
			o.fail("result", "exactly one of result and error is required")
		}
		sub.Result = o.members["result"]
		if o.has("error") {
			sub.Error = o.word("error")
		}
	case eventlog.SubmitApproval:
		sub.Approved = o.flag("approved")
		sub.Reason = o.optText("reason")
		if o.has("approvalId") {
			sub.ApprovalID = o.word("approvalId")
		}
	}
	return sub
}

// submitError tells that a submission is not valid.
type submitError struct {
	problem *eventlog.ValidationError
	verbose bool // show what is wrong with it
}

func (e *submitError) Error() string { return "httpapi: submission: " + e.problem.Error() }

func (e *submitError) show() (text string, detail any) {
	switch {
	case !e.verbose:
		return "the submission is not valid", nil
	case e.problem.Field == "":
		return e.problem.Error(), nil
	}
	return e.problem.Error(), api.FieldDetail{Field: e.problem.Field}
}

// refused marks what is wrong with a submission as that.
func (s *controlRoutes) refused(err error) error {
	if problem, ok := errors.AsType[*eventlog.ValidationError](err); ok {
		return &submitError{problem, s.verbose}
	}
	return err
}
