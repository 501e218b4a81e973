package agentloop

// Codes of failed runs and calls.
const (
	CodeMaxSteps      = "agent_max_steps_exceeded"
	CodeMaxDepth      = "agent_max_depth_exceeded"
	CodeOutputMissing = "agent_output_missing"
	CodeUnknownAgent  = "agent_not_found"
	CodeToolFailed    = "tool_execution_failed"
	CodeToolTimeout   = "tool_timeout"
	CodeToolNotFound  = "tool_not_found"
	CodeToolInput     = "tool_input_invalid"
	// CodeToolOutput: the result of a tool with FinishWith does not fit the
	// agent's output schema.
	CodeToolOutput = "tool_output_invalid"
	CodeInternal   = "internal_error"
	CodeAborted    = "aborted"
	// CodeSessionExpired is of a session that a sweep has given up.
	CodeSessionExpired = "session_expired"

	// Of calls that waited for a person (see docs/reference/protocol.md#suspension).
	CodeClientToolTimeout   = "client_tool_timeout"
	CodeClientToolAbandoned = "client_tool_abandoned"
	CodeClientToolError     = "client_tool_error"
	CodeClientToolInvalid   = "client_tool_validation_failed"
	CodeApprovalDenied      = "approval_denied"
)

// CodeQuotaExceeded is the code of a model call that was refused because its tenant's
// tokens or money of the day are spent, and of the run that failed with it. The call is
// repeated while calls in progress may still return a part of what they reserved.
const CodeQuotaExceeded = "quota_exceeded"

// CodeRemoteClientTool: a remote agent waits for a person, which is not
// supported.
const CodeRemoteClientTool = "remote_client_tool_unsupported"

// CodePoisoned is the code of a run that is failed because one process after the other
// died while driving it.
const CodePoisoned = "agent_run_poisoned"

// CodeTooManyCalls is the code of a model call whose answer has more than
// MaxCalls tool calls, or more bytes than a record may have. It is not repeated.
const CodeTooManyCalls = "provider_invalid_response"
