package eventlog

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Limits of what is written, in bytes of UTF-8.
const (
	MaxSessionID = 256 // a session id
	MaxID        = 256 // any other id, and a name
)

// ValidateSessionID reports whether id can name a session: valid UTF-8, 1 to
// [MaxSessionID] bytes, no control characters. The replacement character is
// refused too, since JSON decoding puts it for whatever was not valid.
func ValidateSessionID(id string) error {
	if reason := idProblem(id, MaxSessionID); reason != "" {
		return &ValidationError{Field: "sessionId", Reason: reason}
	}
	return nil
}

// ValidateClientSessionID reports whether a client may use id for a session: as
// ValidateSessionID, and the logs of memory scopes are not sessions.
func ValidateClientSessionID(id string) error {
	if IsMemoryLog(id) {
		return &ValidationError{Field: "sessionId", Reason: "must not begin with " + memoryLogs}
	}
	return ValidateSessionID(id)
}

// ValidateID reports whether id can name anything but a session: 1 to [MaxID]
// bytes under the rules of ValidateSessionID.
func ValidateID(id string) error {
	if reason := idProblem(id, MaxID); reason != "" {
		return &ValidationError{Reason: reason}
	}
	return nil
}

func idProblem(id string, limit int) string {
	switch {
	case id == "":
		return "must not be empty"
	case len(id) > limit:
		return fmt.Sprintf("must be at most %d bytes, not %d", limit, len(id))
	case !utf8.ValidString(id) || strings.ContainsRune(id, utf8.RuneError):
		return "must be valid UTF-8"
	case strings.ContainsFunc(id, isControl):
		return "must not hold control characters"
	}
	return ""
}

// traceParent is the form of the header traceparent, version 00.
var traceParent = regexp.MustCompile(`^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$`)

func isControl(r rune) bool { return r < 0x20 || r >= 0x7f && r < 0xa0 }

// checker collects the first problem of a record.
type checker struct {
	typ string
	err *ValidationError
}

func (k *checker) fail(name, reason string) {
	if k.err == nil {
		k.err = &ValidationError{Type: k.typ, Field: name, Reason: reason}
	}
}

func (k *checker) id(name, v string) {
	if reason := idProblem(v, MaxID); reason != "" {
		k.fail(name, reason)
	}
}

func (k *checker) optID(name string, v *string) {
	if v != nil {
		k.id(name, *v)
	}
}

func (k *checker) json(name string, raw json.RawMessage) {
	if len(raw) > 0 && !(json.Valid(raw) && utf8.Valid(raw)) {
		k.fail(name, "must be valid JSON")
	}
}

func (k *checker) object(name string, raw json.RawMessage) {
	if !isObject(raw) || !utf8.Valid(raw) {
		k.fail(name, "must be an object")
	}
}

func (k *checker) notNegative(name string, v int64) {
	if v < 0 {
		k.fail(name, "must not be negative")
	}
}

func (k *checker) optNotNegative(name string, v *int64) {
	if v != nil {
		k.notNegative(name, *v)
	}
}

func oneOf[T ~string](k *checker, name string, v T, allowed ...T) {
	if !slices.Contains(allowed, v) {
		k.fail(name, fmt.Sprintf("%q is none of %v", v, allowed))
	}
}

func (k *checker) result() error {
	if k.err == nil {
		return nil
	}
	return k.err
}

func validateChunk(c Chunk) error {
	k := &checker{typ: c.Type()}
	b := c.base()
	k.id("agentId", b.AgentID)
	k.id("agentType", b.AgentType)
	k.notNegative("timestamp", b.Timestamp)
	k.notNegative("step", int64(b.Step))
	switch c := c.(type) {
	case *ToolArgStreamStart:
		k.id("toolCallId", c.ToolCallID)
		k.id("toolName", c.ToolName)
	case *ToolArgStreamDelta:
		k.id("toolCallId", c.ToolCallID)
	case *ToolArgStreamEnd:
		k.id("toolCallId", c.ToolCallID)
	case *ToolStart:
		k.id("toolCallId", c.ToolCallID)
		k.id("toolName", c.ToolName)
		k.object("arguments", c.Arguments)
	case *ToolEnd:
		k.id("toolCallId", c.ToolCallID)
		k.id("toolName", c.ToolName)
		k.json("result", c.Result)
	case *ToolApprovalRequest:
		k.id("toolCallId", c.ToolCallID)
		k.id("toolName", c.ToolName)
		k.approvalID(c.ApprovalID)
		k.json("input", c.Input)
	case *ToolApprovalResponse:
		k.id("toolCallId", c.ToolCallID)
		k.id("toolName", c.ToolName)
		k.approvalID(c.ApprovalID)
	case *ToolInputError:
		k.id("toolCallId", c.ToolCallID)
		k.id("toolName", c.ToolName)
		k.json("partialInput", c.PartialInput)
	case *ToolOutputError:
		k.id("toolCallId", c.ToolCallID)
		k.id("toolName", c.ToolName)
	case *SubAgentStart:
		k.id("subAgentType", c.SubAgentType)
		k.id("subSessionId", c.SubSessionID)
		k.id("callId", c.CallID)
	case *SubAgentEnd:
		k.id("subAgentType", c.SubAgentType)
		k.id("subSessionId", c.SubSessionID)
		k.id("callId", c.CallID)
		k.json("result", c.Result)
	case *CustomEvent:
		k.id("eventName", c.EventName)
		k.json("data", c.Data)
	case *StatePatch:
		if c.Patches == nil {
			k.fail("patches", "must be an array")
		}
		for i, op := range c.Patches {
			k.patchOp(fmt.Sprintf("patches[%d].", i), op)
		}
	case *Output:
		k.json("output", c.Output)
	case *SourceURL:
		k.id("sourceId", c.SourceID)
	case *SourceDocument:
		k.id("sourceId", c.SourceID)
	case *StepStart:
		k.optID("stepId", c.StepID)
	case *StepEnd:
		k.optID("stepId", c.StepID)
		if c.FinishReason != nil {
			oneOf(k, "finishReason", *c.FinishReason, FinishStop, FinishLength, FinishToolCalls,
				FinishContentFilter, FinishError, FinishOther)
		}
		if u := c.Usage; u != nil {
			k.notNegative("usage.inputTokens", u.InputTokens)
			k.notNegative("usage.outputTokens", u.OutputTokens)
			k.optNotNegative("usage.cachedTokens", u.CachedTokens)
			k.optNotNegative("usage.cacheWriteTokens", u.CacheWriteTokens)
		}
	case *RunInterrupted:
		k.id("runId", c.RunID)
	case *RunResumed:
		k.id("runId", c.RunID)
		k.notNegative("fromStepCount", int64(c.FromStepCount))
	case *RunPaused:
		k.id("runId", c.RunID)
		k.optID("pendingToolCallId", c.PendingToolCallID)
	case *CheckpointCreated:
		k.id("runId", c.RunID)
		k.checkpointID(c.CheckpointID)
		k.notNegative("stepCount", int64(c.StepCount))
	case *StepCommitted:
		k.id("runId", c.RunID)
		k.id("stepId", c.StepID)
		k.checkpointID(c.CheckpointID)
	case *StepDiscarded:
		k.id("runId", c.RunID)
		k.id("stepId", c.StepID)
	case *StreamResync:
		k.notNegative("stepCount", int64(c.StepCount))
		k.notNegative("messageCount", int64(c.MessageCount))
		oneOf(k, "reason", c.Reason, ResyncCrashRecovery, ResyncRollback, ResyncBranch, ResyncRetry)
	case *SuspensionMarker:
		oneOf(k, "kind", c.Kind, SuspendedClientTool, SuspendedAwaitingChildren, SuspendedStepPartial)
		k.object("payload", c.Payload)
	}
	return k.result()
}

// approvalID allows for "{runId}::{toolCallId}".
func (k *checker) approvalID(v string) {
	if reason := idProblem(v, 2*MaxID+2); reason != "" {
		k.fail("approvalId", reason)
	}
}

// checkpointID allows for the session id that it holds.
func (k *checker) checkpointID(v string) {
	if reason := idProblem(v, MaxSessionID+MaxID); reason != "" {
		k.fail("checkpointId", reason)
	}
}

func (k *checker) patchOp(path string, op PatchOp) {
	oneOf(k, path+"op", op.Op, "add", "remove", "replace", "move", "copy", "test")
	if op.Path != "" && op.Path[0] != '/' {
		k.fail(path+"path", "must be a JSON Pointer")
	}
	k.json(path+"value", op.Value)
	switch op.Op {
	case "add", "replace", "test":
		if len(op.Value) == 0 {
			k.fail(path+"value", "is required for "+op.Op)
		}
	case "move", "copy":
		if op.From == nil || *op.From != "" && (*op.From)[0] != '/' {
			k.fail(path+"from", "must be a JSON Pointer")
		}
	}
}

func validateFact(f Fact) error {
	k := &checker{typ: f.Type()}
	k.notNegative("timestamp", f.At())
	switch f := f.(type) {
	case *SessionCreated:
		k.id("agentType", f.AgentType)
		if f.Tenant != "" {
			k.id("tenant", f.Tenant)
		}
		if f.State != nil {
			k.object("state", f.State)
		}
		if c := f.Child; c != nil {
			k.id("child.parentSessionId", c.ParentSessionID)
			k.id("child.callId", c.CallID)
			oneOf(k, "child.mode", c.Mode, SubSessionEphemeral, SubSessionPersistent)
		}
	case *SessionImported:
		k.notNegative("records", int64(f.Records))
		k.notNegative("backup", f.Backup)
	case *UserMessage:
		if f.Metadata != nil {
			k.object("metadata", f.Metadata)
		}
		if f.MessageID != "" {
			k.id("messageId", f.MessageID)
		}
	case *RunRequested:
		k.id("runId", f.RunID)
		k.notNegative("expiresAt", f.ExpiresAt)
		if f.TraceParent != "" && !traceParent.MatchString(f.TraceParent) {
			k.fail("traceParent", "is not in the form of W3C Trace Context")
		}
	case *RunClaimed:
		k.id("runId", f.RunID)
	case *ModelTurn:
		k.id("stepId", f.StepID)
		for i, p := range f.Parts {
			if c := p.ToolCall; c != nil {
				k.id(fmt.Sprintf("parts[%d].toolCall.toolCallId", i), c.ID)
				k.json(fmt.Sprintf("parts[%d].toolCall.arguments", i), c.Arguments)
			}
			if p.Source != nil {
				k.id(fmt.Sprintf("parts[%d].source.sourceId", i), p.Source.ID)
			}
			if p.ProviderData != nil {
				k.object(fmt.Sprintf("parts[%d].providerData", i), p.ProviderData)
			}
		}
	case *ToolResult:
		k.id("toolCallId", f.ToolCallID)
		k.json("result", f.Result)
	case *RunEnded:
		k.id("runId", f.RunID)
		k.json("output", f.Output)
	case *Truncated:
		for i, r := range f.Ranges {
			if r.From == 0 || r.From > r.To {
				k.fail(fmt.Sprintf("ranges[%d]", i), "must be a range of sequences")
			}
			oneOf(k, fmt.Sprintf("ranges[%d].scope", i), r.Scope, ScopeRun, ScopeContent, ScopeChunks, ScopeStream, ScopeAll)
			if r.Scope.AnyCall() && r.CallID != "" {
				k.fail(fmt.Sprintf("ranges[%d].callId", i), "must be empty where all calls are meant")
			}
		}
		if f.TruncatedAtStep != nil {
			k.notNegative("truncatedAtStep", int64(*f.TruncatedAtStep))
		}
		if f.AfterSequence > f.AtSequence {
			k.fail("afterSequence", "must not be after atSequence")
		}
		if f.Restore != nil {
			k.object("restore", f.Restore)
		}
	case *StreamEnd:
		k.id("streamId", f.StreamID)
		k.json("finalOutput", f.FinalOutput)
	case *CallSuspended:
		k.id("toolCallId", f.ToolCallID)
		oneOf(k, "kind", f.Kind, PendingClient, PendingApproval, PendingChild)
		k.notNegative("deadline", f.Deadline)
	case *ResultSubmitted:
		k.id("toolCallId", f.ToolCallID)
		oneOf(k, "kind", f.Kind, SubmitClientResult, SubmitApproval, SubmitTimeout, SubmitAbandoned)
		k.json("result", f.Result)
	case *InterruptRequested:
		k.id("runId", f.RunID)
		oneOf(k, "kind", f.Kind, StopInterrupt, StopAbort)
		if f.Terminate && f.Kind != StopAbort {
			k.fail("terminate", "goes with an abort")
		}
	case *SessionForked:
		k.id("fromSessionId", f.FromSessionID)
		k.object("state", f.State)
		if e := f.Edits; e != nil {
			if e.Message != nil {
				k.notNegative("edits.message", int64(*e.Message))
			}
			if e.ToolCallID != "" {
				k.id("edits.toolCallId", e.ToolCallID)
			}
			k.id("edits.digest", e.Digest)
		}
	case *UsageRecorded:
		oneOf(k, "source", f.Source, UsageAgent, UsageTool, UsageSubAgent)
		k.id("sourceType", f.SourceType)
	case *RemoteProgress:
		k.id("toolCallId", f.ToolCallID)
		for i, c := range f.Calls {
			k.id(fmt.Sprintf("calls[%d].id", i), c.ID)
			k.id(fmt.Sprintf("calls[%d].remoteId", i), c.RemoteID)
		}
	case *ClaimSettled:
		k.id("runId", f.RunID)
		oneOf(k, "how", f.How, ClaimReleased, ClaimSurvived)
	case *MemorySaved:
		k.id("memoryId", f.MemoryID)
		k.text("content", f.Content, MaxMemory)
		if f.Metadata != nil {
			k.object("metadata", f.Metadata)
			k.size("metadata", len(f.Metadata), MaxMemoryMetadata)
		}
		if len(f.Tags) > MaxMemoryTags {
			k.fail("tags", fmt.Sprintf("must be at most %d", MaxMemoryTags))
		}
		for i, tag := range f.Tags {
			k.id(fmt.Sprintf("tags[%d]", i), tag)
		}
		if s := f.Source; s != nil {
			k.id("source.sessionId", s.SessionID)
		}
	case *MemoryEmbedded:
		k.id("memoryId", f.MemoryID)
		k.id("model", f.Model)
		switch {
		case len(f.Vector) == 0 || len(f.Vector) > MaxDimensions:
			k.fail("vector", fmt.Sprintf("must have 1 to %d numbers", MaxDimensions))
		case !f.Vector.finite():
			k.fail("vector", "must be of finite numbers")
		}
	case *MemoryForgotten:
		k.id("memoryId", f.MemoryID)
	case *MemoryRecalled:
		k.id("runId", f.RunID)
		for i, m := range f.Memories {
			k.id(fmt.Sprintf("memories[%d].memoryId", i), m.MemoryID)
		}
	case *WorkspaceOpened:
		k.id("name", f.Name)
		k.id("providerId", f.ProviderID)
		k.object("ref", f.Ref)
	case *WorkspaceFailed:
		k.id("name", f.Name)
		k.id("providerId", f.ProviderID)
	case *WorkspaceSaved:
		k.object("snapshot", f.Snapshot)
	}
	return k.result()
}

// text checks a text of 1 to limit bytes.
func (k *checker) text(name, v string, limit int) {
	switch {
	case v == "":
		k.fail(name, "must not be empty")
	case !utf8.ValidString(v):
		k.fail(name, "must be valid UTF-8")
	}
	k.size(name, len(v), limit)
}

func (k *checker) size(name string, n, limit int) {
	if n > limit {
		k.fail(name, fmt.Sprintf("must be at most %d bytes, not %d", limit, n))
	}
}
