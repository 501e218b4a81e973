package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/eventlog"
)

// submitToolResult answers POST /submit-tool-result (documents 002 and 004,
// SubmitToolResult; facts 2.3). It only stores: the run goes on when it is
// resumed.
func (s *Server) submitToolResult(w http.ResponseWriter, r *request) error {
	raw, err := s.readSession(w, r, MaxSubmitBody, "sessionId")
	if err != nil {
		return err
	}
	sub, err := parseSubmission(raw)
	if err != nil {
		return s.refused(err)
	}
	if err := s.authorize(r, sub.SessionID); err != nil {
		return err
	}
	ctx, cancel := detached(r)
	defer cancel()
	submitted, err := s.submit(ctx, sub)
	if err != nil {
		return err
	}
	return s.ok(w, submitted)
}

// submit stores a submission, whichever route it came by, if it fits the
// server's own schema.
func (s *Server) submit(ctx context.Context, sub engine.Submission) (engine.Submitted, error) {
	if s.submitSchema != nil {
		if err := s.submitSchema.Validate(payloadOf(sub)); err != nil {
			return engine.Submitted{}, s.refused(&eventlog.ValidationError{Reason: "does not fit the server's schema of submissions: " + err.Error()})
		}
	}
	submitted, err := s.loop.Submit(ctx, sub)
	if err != nil {
		return engine.Submitted{}, s.refused(err)
	}
	return submitted, nil
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
	sub := body.submission()
	return sub, *body.err
}

func (o *object) submission() engine.Submission {
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
	return e.problem.Error(), fieldDetail{e.problem.Field}
}

// refused marks what is wrong with a submission as that.
func (s *Server) refused(err error) error {
	if problem, ok := errors.AsType[*eventlog.ValidationError](err); ok {
		return &submitError{problem, s.opts.VerboseValidationErrors}
	}
	return err
}
