package eventlog

import (
	"encoding/json"

	"github.com/helixd/helixd/eventlog/fact"
)

// Chunk is one element of a session's public stream. The set of
// implementations is closed: one small struct a variant, plus [Unknown] for
// kinds written by a later version. A type switch is the type guard.
type Chunk interface {
	// Type is the value of the JSON's "type" field.
	Type() string
	base() *Base
}

// chunkTypes has every type of chunk. CONTRIBUTING.md says what a new one needs besides its name
// here and its struct below.
var chunkTypes = table[Chunk](
	new(TextDelta), new(Thinking), new(ToolArgStreamStart), new(ToolArgStreamDelta), new(ToolArgStreamEnd),
	new(ToolStart), new(ToolEnd), new(ToolApprovalRequest), new(ToolApprovalResponse), new(ToolInputError),
	new(ToolOutputError), new(SubAgentStart), new(SubAgentEnd), new(CustomEvent), new(StatePatch), new(Error),
	new(Output), new(SourceURL), new(SourceDocument), new(StepStart), new(StepEnd), new(File), new(RunInterrupted),
	new(RunResumed), new(RunPaused), new(ExecutorSuperseded), new(CheckpointCreated), new(StepCommitted),
	new(StepDiscarded), new(StreamResync), new(SuspensionMarker),
)

// Base carries the fields that every chunk has.
type Base struct {
	AgentID   string `json:"agentId"`   // id of the session that produced the chunk, 1 to 256 bytes
	AgentType string `json:"agentType"` // name of its agent, 1 to 256 bytes
	Timestamp int64  `json:"timestamp"` // milliseconds since the epoch, not negative
	Step      int    `json:"step"`      // step within the turn, from 1; 0 outside of a step
}

func (b *Base) base() *Base { return b }

// BaseOf returns the fields that c shares with every chunk. An [Unknown]
// chunk has those that could be read.
func BaseOf(c Chunk) Base { return *c.base() }

// Chunks that a model emits.
type (
	// TextDelta is a piece of the model's text.
	TextDelta struct {
		Delta string `json:"delta"`
		Base
	}

	// Thinking is a piece of reasoning, or, with IsComplete, a whole block.
	Thinking struct {
		Content    string `json:"content"`
		IsComplete bool   `json:"isComplete"`
		Base
	}

	// ToolArgStreamStart begins the arguments of a tool call.
	ToolArgStreamStart struct {
		ToolCallID string `json:"toolCallId" helix:"id"`
		ToolName   string `json:"toolName" helix:"id"`
		Base
	}

	// ToolArgStreamDelta is a piece of a tool call's JSON arguments.
	ToolArgStreamDelta struct {
		ToolCallID string `json:"toolCallId" helix:"id"`
		Delta      string `json:"delta"`
		Base
	}

	// ToolArgStreamEnd ends the arguments of a tool call.
	ToolArgStreamEnd struct {
		ToolCallID string `json:"toolCallId" helix:"id"`
		Base
	}

	// SourceURL cites a web page.
	SourceURL struct {
		SourceID string  `json:"sourceId" helix:"id"`
		URL      string  `json:"url"`
		Title    *string `json:"title,omitempty"`
		Base
	}

	// SourceDocument cites a document.
	SourceDocument struct {
		SourceID  string  `json:"sourceId" helix:"id"`
		MediaType string  `json:"mediaType"`
		Title     string  `json:"title"`
		Filename  *string `json:"filename,omitempty"`
		Base
	}

	// File is a generated file; URL is a data URL or a hosted one.
	File struct {
		URL       string  `json:"url"`
		MediaType string  `json:"mediaType"`
		Filename  *string `json:"filename,omitempty"`
		Base
	}
)

// Chunks of tool execution.
type (
	// ToolStart says that a tool begins to run.
	ToolStart struct {
		ToolCallID string          `json:"toolCallId" helix:"id"`
		ToolName   string          `json:"toolName" helix:"id"`
		Arguments  json.RawMessage `json:"arguments" helix:"object"`
		Base
	}

	// ToolEnd says that a tool has finished; Error is set when it failed.
	// An absent ProviderExecuted counts as "executed by the client".
	ToolEnd struct {
		ToolCallID       string          `json:"toolCallId" helix:"id"`
		ToolName         string          `json:"toolName" helix:"id"`
		Result           json.RawMessage `json:"result"`
		Error            *string         `json:"error,omitempty"`
		ErrorCode        *string         `json:"errorCode,omitempty"`
		ProviderExecuted *bool           `json:"providerExecuted,omitempty"`
		Base
	}

	// ToolApprovalRequest asks for a person's consent. ApprovalID is
	// "{runId}::{toolCallId}".
	ToolApprovalRequest struct {
		ToolCallID  string          `json:"toolCallId" helix:"id"`
		ToolName    string          `json:"toolName" helix:"id"`
		ApprovalID  string          `json:"approvalId" helix:"approval"`
		Input       json.RawMessage `json:"input"`
		IsAutomatic *bool           `json:"isAutomatic,omitempty"`
		Base
	}

	// ToolApprovalResponse is the answer to a [ToolApprovalRequest].
	ToolApprovalResponse struct {
		ToolCallID  string  `json:"toolCallId" helix:"id"`
		ToolName    string  `json:"toolName" helix:"id"`
		ApprovalID  string  `json:"approvalId" helix:"approval"`
		Approved    bool    `json:"approved"`
		Reason      *string `json:"reason,omitempty"`
		IsAutomatic *bool   `json:"isAutomatic,omitempty"`
		Base
	}

	// ToolInputError says that a call's arguments could not be used, so
	// that the tool was not started.
	ToolInputError struct {
		ToolCallID   string          `json:"toolCallId" helix:"id"`
		ToolName     string          `json:"toolName" helix:"id"`
		Error        string          `json:"error"`
		PartialInput json.RawMessage `json:"partialInput,omitempty"`
		Base
	}

	// ToolOutputError says that a call failed outside of its tool.
	ToolOutputError struct {
		ToolCallID string `json:"toolCallId" helix:"id"`
		ToolName   string `json:"toolName" helix:"id"`
		Error      string `json:"error"`
		Base
	}
)

// Chunks of sub-agents; their AgentID is the parent's.
type (
	// SubAgentStart says that a child session begins.
	SubAgentStart struct {
		SubAgentType string `json:"subAgentType" helix:"id"`
		SubSessionID string `json:"subSessionId" helix:"id"`
		CallID       string `json:"callId" helix:"id"`
		Base
	}

	// SubAgentEnd says that a child session has ended.
	SubAgentEnd struct {
		SubAgentType string          `json:"subAgentType" helix:"id"`
		SubSessionID string          `json:"subSessionId" helix:"id"`
		CallID       string          `json:"callId" helix:"id"`
		Result       json.RawMessage `json:"result"`
		Base
	}
)

// Chunks of applications, state, errors and results.
type (
	// CustomEvent is an application's own event.
	CustomEvent struct {
		EventName string          `json:"eventName" helix:"id"`
		Data      json.RawMessage `json:"data"`
		Base
	}

	// StatePatch changes the custom state by RFC 6902 operations.
	StatePatch struct {
		Patches []PatchOp `json:"patches"`
		Base
	}

	// Error reports an error; a recoverable one does not end the run.
	Error struct {
		Error       string       `json:"error"`
		Code        *string      `json:"code,omitempty"`
		ErrorDetail *ErrorDetail `json:"errorDetail,omitempty"`
		Recoverable bool         `json:"recoverable"`
		Base
	}

	// Output is the run's final structured output.
	Output struct {
		Output json.RawMessage `json:"output"`
		Base
	}
)

// PatchOp is one RFC 6902 operation.
type PatchOp struct {
	Op    string          `json:"op"`   // add, remove, replace, move, copy or test
	Path  string          `json:"path"` // JSON Pointer
	From  *string         `json:"from,omitempty"`
	Value json.RawMessage `json:"value,omitempty"`
}

// ErrorDetail classifies the error of an [Error] chunk.
type ErrorDetail struct {
	Message   string  `json:"message"`
	Code      *string `json:"code,omitempty"`
	Category  *string `json:"category,omitempty"`
	Cause     *string `json:"cause,omitempty"`
	Retryable *bool   `json:"retryable,omitempty"`
}

// Chunks of the run's life cycle; the runtime writes them, never a model.
type (
	// StepStart begins a step.
	StepStart struct {
		StepID *string `json:"stepId,omitempty" helix:"id"`
		Base
	}

	// StepEnd ends a step.
	StepEnd struct {
		StepID       *string       `json:"stepId,omitempty" helix:"id"`
		Usage        *StepUsage    `json:"usage,omitempty"`
		FinishReason *FinishReason `json:"finishReason,omitempty"`
		Base
	}

	// RunInterrupted says that a run was stopped and can be resumed.
	RunInterrupted struct {
		RunID        string  `json:"runId" helix:"id"`
		CheckpointID *string `json:"checkpointId"` // null if no checkpoint could be made
		Reason       *string `json:"reason,omitempty"`
		Base
	}

	// RunResumed says that a run continues an earlier one.
	RunResumed struct {
		RunID            string  `json:"runId" helix:"id"`
		FromCheckpointID *string `json:"fromCheckpointId"` // null without a checkpoint
		FromStepCount    int     `json:"fromStepCount" helix:"count"`
		Mode             string  `json:"mode"`
		Base
	}

	// RunPaused says that a run waits, usually for a person.
	RunPaused struct {
		RunID             string  `json:"runId" helix:"id"`
		Reason            string  `json:"reason"`
		PendingToolName   *string `json:"pendingToolName,omitempty"`
		PendingToolCallID *string `json:"pendingToolCallId,omitempty" helix:"id"`
		Base
	}

	// ExecutorSuperseded says that another executor has taken over.
	ExecutorSuperseded struct {
		Reason *string `json:"reason,omitempty"`
		Base
	}

	// CheckpointCreated marks a checkpoint: state is the fold up to here.
	CheckpointCreated struct {
		RunID        string `json:"runId" helix:"id"`
		CheckpointID string `json:"checkpointId" helix:"checkpoint"`
		StepCount    int    `json:"stepCount" helix:"count"`
		Base
	}

	// StepCommitted says that a step's changes are final.
	StepCommitted struct {
		RunID        string `json:"runId" helix:"id"`
		StepID       string `json:"stepId" helix:"id"`
		CheckpointID string `json:"checkpointId" helix:"checkpoint"`
		Base
	}

	// StepDiscarded reports that a step ends without a StepEnd: its changes are
	// dropped, or its model call is made again in another StepStart. RunID is the
	// run that the step was in.
	StepDiscarded struct {
		RunID  string `json:"runId" helix:"id"`
		StepID string `json:"stepId" helix:"id"`
		Reason string `json:"reason"`
		Base
	}

	// StreamResync notifies clients that earlier chunks were truncated and that
	// they should reload. Its fields describe one checkpoint, the agent's last one
	// that is left; FromSequence is the checkpoint's. Without a checkpoint they are
	// "" and 0.
	StreamResync struct {
		CheckpointID string       `json:"checkpointId"`
		StepCount    int          `json:"stepCount" helix:"count"`
		MessageCount int          `json:"messageCount" helix:"count"`
		FromSequence uint64       `json:"fromSequence"`
		Reason       ResyncReason `json:"reason"`
		Base
	}

	// SuspensionMarker is internal coordination and is never shown to
	// AI SDK clients; helixd reads it but does not write it.
	SuspensionMarker struct {
		Kind    SuspensionKind  `json:"kind"`
		Payload json.RawMessage `json:"payload" helix:"object"`
		Base
	}
)

// Reasons of a [StepDiscarded] of this package's users; outside producers may
// have others.
const (
	DiscardFailure   = "failure"   // the model call failed, or the run did
	DiscardInterrupt = "interrupt" // the run was interrupted
	DiscardAbort     = "abort"     // the run was aborted
	DiscardCrash     = "crash"     // the process that drove the run stopped or died
	DiscardRollback  = "rollback"  // the session went back to before the step, or into it
	DiscardSupersede = "supersede" // another run of the session took over
)

// StepUsage is the token use of one step.
type StepUsage struct {
	InputTokens      int64  `json:"inputTokens" helix:"count"`
	OutputTokens     int64  `json:"outputTokens" helix:"count"`
	CachedTokens     *int64 `json:"cachedTokens,omitempty" helix:"count"`
	CacheWriteTokens *int64 `json:"cacheWriteTokens,omitempty" helix:"count"`
}

// FinishReason says why the model stopped.
type FinishReason string

// Finish reasons.
const (
	FinishStop          FinishReason = "stop"
	FinishLength        FinishReason = "length"
	FinishToolCalls     FinishReason = "tool-calls"
	FinishContentFilter FinishReason = "content-filter"
	FinishError         FinishReason = "error"
	FinishOther         FinishReason = "other"
)

// FinishReasonOf returns the wire form of a model's stop reason.
func FinishReasonOf(r fact.StopReason) FinishReason {
	switch r {
	case fact.StopEndTurn, fact.StopSequence:
		return FinishStop
	case fact.StopToolUse:
		return FinishToolCalls
	case fact.StopMaxTokens:
		return FinishLength
	case fact.StopContentFilter:
		return FinishContentFilter
	case fact.StopError:
		return FinishError
	default:
		return FinishOther
	}
}

// ResyncReason says why records were truncated.
type ResyncReason string

// Resync reasons.
const (
	ResyncCrashRecovery ResyncReason = "crash_recovery"
	ResyncRollback      ResyncReason = "rollback"
	ResyncBranch        ResyncReason = "branch"
	ResyncRetry         ResyncReason = "retry"
)

// SuspensionKind is the kind of a [SuspensionMarker].
type SuspensionKind string

// Suspension kinds.
const (
	SuspendedClientTool       SuspensionKind = "suspended_client_tool"
	SuspendedAwaitingChildren SuspensionKind = "suspended_awaiting_children"
	SuspendedStepPartial      SuspensionKind = "suspended_step_partial"
)

// Unknown is a chunk of a kind that this version does not know. It keeps the
// original bytes and encodes to them.
type Unknown struct {
	Kind string
	Raw  json.RawMessage
	Base
}

func (*TextDelta) Type() string            { return "text_delta" }
func (*Thinking) Type() string             { return "thinking" }
func (*ToolArgStreamStart) Type() string   { return "tool_arg_stream_start" }
func (*ToolArgStreamDelta) Type() string   { return "tool_arg_stream_delta" }
func (*ToolArgStreamEnd) Type() string     { return "tool_arg_stream_end" }
func (*ToolStart) Type() string            { return "tool_start" }
func (*ToolEnd) Type() string              { return "tool_end" }
func (*ToolApprovalRequest) Type() string  { return "tool_approval_request" }
func (*ToolApprovalResponse) Type() string { return "tool_approval_response" }
func (*ToolInputError) Type() string       { return "tool_input_error" }
func (*ToolOutputError) Type() string      { return "tool_output_error" }
func (*SubAgentStart) Type() string        { return "subagent_start" }
func (*SubAgentEnd) Type() string          { return "subagent_end" }
func (*CustomEvent) Type() string          { return "custom" }
func (*StatePatch) Type() string           { return "state_patch" }
func (*Error) Type() string                { return "error" }
func (*Output) Type() string               { return "output" }
func (*SourceURL) Type() string            { return "source_url" }
func (*SourceDocument) Type() string       { return "source_document" }
func (*StepStart) Type() string            { return "step_start" }
func (*StepEnd) Type() string              { return "step_end" }
func (*File) Type() string                 { return "file" }
func (*RunInterrupted) Type() string       { return "run_interrupted" }
func (*RunResumed) Type() string           { return "run_resumed" }
func (*RunPaused) Type() string            { return "run_paused" }
func (*ExecutorSuperseded) Type() string   { return "executor_superseded" }
func (*CheckpointCreated) Type() string    { return "checkpoint_created" }
func (*StepCommitted) Type() string        { return "step_committed" }
func (*StepDiscarded) Type() string        { return "step_discarded" }
func (*StreamResync) Type() string         { return "stream_resync" }
func (*SuspensionMarker) Type() string     { return "suspension_marker" }

// Type returns the kind that the writer gave.
func (u *Unknown) Type() string { return u.Kind }
