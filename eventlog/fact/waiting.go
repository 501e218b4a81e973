package fact

import "encoding/json"

// Facts of waiting for people, and of stopping.
type (
	// CallSuspended says that a tool call waits: for a person, or for a
	// sub-agent. It is a commit point: what the call has streamed stays.
	CallSuspended struct {
		RunID      string      `json:"runId"`
		StepID     string      `json:"stepId"`
		ToolCallID string      `json:"toolCallId" helix:"id"`
		ToolName   string      `json:"toolName"`
		Kind       PendingKind `json:"kind"`
		ApprovalID string      `json:"approvalId,omitempty"` // of an approval
		// ChildSessionID is the sub-agent that is waited for.
		ChildSessionID string `json:"childSessionId,omitempty"`
		// Deadline is from when on an answer comes too late, in milliseconds
		// since the epoch; 0: never.
		Deadline int64 `json:"deadline,omitempty" helix:"count"`
		Base
	}

	// ResultSubmitted answers a suspended call. The first one counts. Of a client's result exactly
	// one of Result and Error is set.
	ResultSubmitted struct {
		ToolCallID string          `json:"toolCallId" helix:"id"`
		Kind       SubmissionKind  `json:"kind"`
		Result     json.RawMessage `json:"result,omitempty"`
		Error      string          `json:"error,omitempty"`
		ErrorCode  string          `json:"errorCode,omitempty"`
		Approved   bool            `json:"approved,omitempty"` // of an approval
		Reason     string          `json:"reason,omitempty"`   // of an approval
		// MessageID is the id that the client gave the message that brought the result.
		MessageID string `json:"messageId,omitempty" helix:"id"`
		Base
	}

	// InterruptRequested asks a run to stop. It is void if the run is not the
	// session's last one. A node that drives a run which can't stop at once appends the
	// same fact again as its acknowledgement.
	//
	// With Terminate it also ends a persistent sub-agent's session for good,
	// whether a run is under way or not: no further turn begins.
	InterruptRequested struct {
		RunID  string   `json:"runId" helix:"id"`
		Kind   StopKind `json:"kind"`
		Reason string   `json:"reason,omitempty"`
		// Code is the error code of an aborted run; empty: aborted.
		Code string `json:"code,omitempty"`
		// ByParent is set if the parent was stopped: the child then continues
		// with its parent.
		ByParent bool `json:"byParent,omitempty"`
		// Terminate goes with an abort.
		Terminate bool `json:"terminate,omitempty"`
		Base
	}
)

// PendingKind says what a suspended call waits for.
type PendingKind string

// Kinds of pending calls (see docs/reference/protocol.md#suspension).
const (
	PendingClient   PendingKind = "client"
	PendingApproval PendingKind = "approval"
	PendingChild    PendingKind = "child"
)

// SubmissionKind says what answers a suspended call.
type SubmissionKind string

// Kinds of submissions. The first two come from clients.
const (
	SubmitClientResult SubmissionKind = "client-tool-result"
	SubmitApproval     SubmissionKind = "approval-response"
	SubmitTimeout      SubmissionKind = "timeout"   // the deadline has passed
	SubmitAbandoned    SubmissionKind = "abandoned" // the user continued without it
)

// StopKind says how a run is to stop.
type StopKind string

// Kinds of stops.
const (
	StopInterrupt StopKind = "interrupt" // soft: it can be resumed
	StopAbort     StopKind = "abort"     // hard: it has failed
)

func (*CallSuspended) Type() string      { return "call_suspended" }
func (*ResultSubmitted) Type() string    { return "result_submitted" }
func (*InterruptRequested) Type() string { return "interrupt_requested" }
