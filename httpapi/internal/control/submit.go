package control

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/internal/web"
)

// SubmitToolResult answers POST /submit-tool-result (see docs/reference/protocol.md#suspension). It only stores the answer: the run continues when it is
// resumed.
func (s *Routes) SubmitToolResult(w http.ResponseWriter, r *web.Request) error {
	raw, err := r.ReadSession(w, api.MaxSubmitBody, "sessionId")
	if err != nil {
		return err
	}
	body, err := r.Parse(raw)
	if err != nil {
		return s.Refused(err)
	}
	sub := SubmissionOf(body)
	if *body.Err != nil {
		return s.Refused(*body.Err)
	}
	if err := r.Authorize(sub.SessionID); err != nil {
		return err
	}
	ctx, cancel := r.Detached()
	defer cancel()
	submitted, err := s.Submit(ctx, sub)
	if err != nil {
		return err
	}
	return r.OK(w, AnswerOf(submitted))
}

// Submit stores a submission of any route, if it fits the server's schema.
func (s *Routes) Submit(ctx context.Context, sub engine.Submission) (engine.Submitted, error) {
	if s.submissions != nil {
		if err := s.submissions.Validate(payloadOf(sub)); err != nil {
			return engine.Submitted{}, s.Refused(&eventlog.ValidationError{Reason: "does not fit the server's schema of submissions: " + err.Error()})
		}
	}
	submitted, err := s.loop.Submit(ctx, sub)
	if err != nil {
		return engine.Submitted{}, s.Refused(err)
	}
	return submitted, nil
}

// AnswerOf returns the answer to a submission.
func AnswerOf(done engine.Submitted) api.Submitted {
	return api.Submitted{
		Status: string(done.Status), Reason: done.Reason, SessionID: done.SessionID, ToolCallID: done.ToolCallID,
		PendingToolCallIDs: done.PendingToolCallIDs,
	}
}

// payloadOf returns a submission as a JSON object, for the schema of Options.
func payloadOf(sub engine.Submission) map[string]any {
	payload := map[string]any{"sessionId": sub.SessionID, "toolCallId": sub.ToolCallID, "kind": string(sub.Kind)}
	optional := func(key, text string) {
		if text != "" {
			payload[key] = text
		}
	}
	if sub.Kind == fact.SubmitApproval {
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

func SubmissionOf(o *web.Object) engine.Submission {
	sub := engine.Submission{
		SessionID:  o.SessionID(),
		ToolCallID: o.Word("toolCallId"),
		Kind:       fact.SubmissionKind(o.Word("kind")),
	}
	switch sub.Kind {
	case fact.SubmitClientResult:
		if o.Has("result") == o.Has("error") {
			o.Fail("result", "exactly one of result and error is required")
		}
		sub.Result, sub.Error = o.Members["result"], o.OptWord("error")
	case fact.SubmitApproval:
		sub.Approved = o.Flag("approved")
		sub.Reason, sub.ApprovalID = o.OptText("reason"), o.OptWord("approvalId")
	}
	return sub
}

// SubmitError: a submission is not valid.
type SubmitError struct {
	Problem *eventlog.ValidationError
	Verbose bool // show what is wrong with it
}

func (e *SubmitError) Error() string { return "httpapi: submission: " + e.Problem.Error() }

func (e *SubmitError) Show() (text string, detail any) {
	switch {
	case !e.Verbose:
		return "the submission is not valid", nil
	case e.Problem.Field == "":
		return e.Problem.Error(), nil
	}
	return e.Problem.Error(), api.FieldDetail{Field: e.Problem.Field}
}

// Refused returns a *SubmitError for a problem of a submission, and other errors as they
// are.
func (s *Routes) Refused(err error) error {
	if problem, ok := errors.AsType[*eventlog.ValidationError](err); ok {
		return &SubmitError{problem, s.verbose}
	}
	return err
}
