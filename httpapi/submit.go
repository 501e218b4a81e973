package httpapi

import (
	"errors"
	"net/http"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/eventlog"
)

// submitToolResult answers POST /submit-tool-result (documents 002 and 004,
// SubmitToolResult; facts 2.3). It only stores: the run goes on when it is
// resumed.
func (s *Server) submitToolResult(w http.ResponseWriter, r *request) error {
	raw, err := readBody(w, r.Request, MaxSubmitBody, bodyTimeout)
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
	submitted, err := s.loop.Submit(ctx, sub)
	if err != nil {
		return s.refused(err)
	}
	return s.ok(w, submitted)
}

func parseSubmission(raw []byte) (agentloop.Submission, error) {
	body, err := parseObject(raw)
	if err != nil {
		return agentloop.Submission{}, err
	}
	sub := agentloop.Submission{
		SessionID:  body.sessionID(),
		ToolCallID: body.word("toolCallId"),
		Kind:       eventlog.SubmissionKind(body.word("kind")),
	}
	switch sub.Kind {
	case eventlog.SubmitClientResult:
		if body.has("result") == body.has("error") {
			body.fail("result", "exactly one of result and error is required")
		}
		sub.Result = body.members["result"]
		if body.has("error") {
			sub.Error = body.word("error")
		}
	case eventlog.SubmitApproval:
		sub.Approved = body.flag("approved")
		sub.Reason = body.optText("reason")
		if body.has("approvalId") {
			sub.ApprovalID = body.word("approvalId")
		}
	}
	return sub, *body.err
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
