package httpapi

import (
	"encoding/json"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
)

// PendingToolCall is a call that waits for a person (facts 2.2): what POST
// /submit-tool-result answers, under the root's session id.
type PendingToolCall struct {
	ToolCallID     string               `json:"toolCallId"`
	ToolName       string               `json:"toolName"`
	Input          json.RawMessage      `json:"input"`
	Kind           eventlog.PendingKind `json:"kind"` // client or approval
	ApprovalID     string               `json:"approvalId,omitempty"`
	OwnerSessionID string               `json:"ownerSessionId"`     // the root or a sub-agent
	CreatedAt      int64                `json:"createdAt"`          // ms since the epoch
	Deadline       int64                `json:"deadline,omitempty"` // ms since the epoch; 0: none
}

// pendingCalls returns the calls of the tree that wait and have no answer.
func pendingCalls(t *projector.Tree) []PendingToolCall {
	calls := []PendingToolCall{}
	for _, a := range t.AwaitedCalls() {
		calls = append(calls, PendingToolCall{
			ToolCallID: a.Call.ID, ToolName: a.Call.Name, Input: a.Call.Arguments, Kind: a.Call.Pending.Kind,
			ApprovalID: a.Call.Pending.ApprovalID, OwnerSessionID: a.Session.SessionID,
			CreatedAt: a.Call.Pending.CreatedAt, Deadline: a.Call.Pending.Deadline,
		})
	}
	return calls
}
