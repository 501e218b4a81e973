package client

import (
	"context"
	"encoding/json"

	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/httpapi/api"
)

// Submission answers a call that waits. The
// session is always the root's; the call may be a sub-agent's.
type Submission struct {
	SessionID  string              `json:"sessionId,omitempty"`
	ToolCallID string              `json:"toolCallId"`
	Kind       fact.SubmissionKind `json:"kind"` // client-tool-result or approval-response

	// Of a client-tool-result exactly one.
	Result json.RawMessage `json:"result,omitempty"`
	Error  string          `json:"error,omitempty"`

	// Of an approval-response.
	Approved   bool   `json:"-"`
	Reason     string `json:"reason,omitempty"`
	ApprovalID string `json:"approvalId,omitempty"` // if set, it must be the pending call's
}

// SubmitToolResult stores the answer to a call that waits; the run continues
// when it is resumed. The first answer holds. It is repeated: if the answer to
// a first try was lost, the status is already_completed.
func (c *Client) SubmitToolResult(ctx context.Context, s Submission) (api.Submitted, error) {
	return fetch(ctx, c, post("submit-tool-result", true, s.body(s.SessionID)), isSubmitted)
}

func isSubmitted(s *api.Submitted) bool { return s.Status != "" }

func (s Submission) body(sessionID string) any {
	s.SessionID = sessionID
	body := struct {
		Submission
		Approved *bool `json:"approved,omitempty"`
	}{Submission: s}
	if s.Kind == fact.SubmitApproval {
		body.Approved = &s.Approved
	}
	return body
}
