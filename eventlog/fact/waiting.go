package fact

import "encoding/json"

// Facts of waiting for people, of stopping, and of sub-agents.
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

	// SessionForked is the first record of a session that was copied from another one. It
	// does not depend on that session.
	SessionForked struct {
		FromSessionID string `json:"fromSessionId" helix:"id"`
		FromSequence  uint64 `json:"fromSequence"` // in that session's log
		// State is the state of the new session, an object that package
		// projector writes and reads.
		State json.RawMessage `json:"state" helix:"object"`
		// Edits names the differences between State and the other session's state;
		// nil: there are none.
		Edits *ForkEdits `json:"edits,omitempty"`
		Base
	}

	// UsageRecorded has usage that no other record contains.
	UsageRecorded struct {
		RunID      string      `json:"runId"`
		StepCount  int         `json:"stepCount"`
		Source     UsageSource `json:"source"`
		SourceType string      `json:"sourceType" helix:"id"` // client_tool_wait_ms, or the name that a tool gave
		SourceName string      `json:"sourceName"`            // of the tool
		Amount     float64     `json:"amount"`
		Base
	}

	// RemoteProgress says how far a remote sub-agent's stream has been copied. It is appended with the chunks that it covers.
	RemoteProgress struct {
		ToolCallID string `json:"toolCallId" helix:"id"`
		RunID      string `json:"runId,omitempty"` // of the remote session
		Sequence   uint64 `json:"sequence"`        // in the remote session's stream
		// Calls are the tool calls that have begun or ended since.
		Calls []RemoteCall `json:"calls,omitempty"`
		Base
	}
)

// RemoteCall is a tool call of a remote sub-agent. Its server calls it by an id
// that another call of the tree may have.
type RemoteCall struct {
	ID       string `json:"id" helix:"id"`       // in this log
	RemoteID string `json:"remoteId" helix:"id"` // on the server
	AgentID  string `json:"agentId,omitempty"`   // of the session that made the call; empty: the remote sub-agent's
	Over     bool   `json:"over,omitempty"`      // it has ended
}

// ForkEdits names what was edited in a fork's first state.
type ForkEdits struct {
	Message      *int   `json:"message,omitempty" helix:"count"` // the index of a user's message whose text was changed
	ToolCallID   string `json:"toolCallId,omitempty" helix:"id"` // whose result is another one, or was given
	SystemPrompt bool   `json:"systemPrompt,omitempty"`          // the session has its own
	Digest       string `json:"digest" helix:"id"`               // of the request; a repeated request has the same one
}

// SubSession is how a sub-agent's session belongs to its parent.
type SubSession struct {
	ParentSessionID string         `json:"parentSessionId" helix:"id"`
	CallID          string         `json:"callId" helix:"id"` // the parent's call that made it
	Mode            SubSessionMode `json:"mode"`
	Name            string         `json:"name,omitempty"`     // of a persistent one
	Blocking        bool           `json:"blocking,omitempty"` // of a persistent one
	Remote          bool           `json:"remote,omitempty"`   // runs on another server
	// Deadline is when an ephemeral one is stopped, in milliseconds since the
	// epoch; 0: never.
	Deadline int64 `json:"deadline,omitempty"`
}

// SubSessionMode says how long a sub-agent lives.
type SubSessionMode string

// Sub-session modes.
const (
	SubSessionEphemeral  SubSessionMode = "ephemeral"
	SubSessionPersistent SubSessionMode = "persistent"
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

// UsageSource is what used something.
type UsageSource string

// Usage sources.
const (
	UsageAgent    UsageSource = "agent"
	UsageTool     UsageSource = "tool"
	UsageSubAgent UsageSource = "subagent"
)

// ClientToolWait is the source type of the time that a suspended call has
// waited, in milliseconds.
const ClientToolWait = "client_tool_wait_ms"

func (*CallSuspended) Type() string      { return "call_suspended" }
func (*ResultSubmitted) Type() string    { return "result_submitted" }
func (*InterruptRequested) Type() string { return "interrupt_requested" }
func (*SessionForked) Type() string      { return "session_forked" }
func (*UsageRecorded) Type() string      { return "usage_recorded" }
func (*RemoteProgress) Type() string     { return "remote_progress" }
