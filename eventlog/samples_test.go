package eventlog_test

import (
	"encoding/json"

	"github.com/helixd/helixd/eventlog"
)

// sample is a chunk or a fact with every field set, and one with as few as
// its schema allows. The full one is frozen in testdata/wire and therefore
// never changes: a new field gets its own sample.
type sample[T any] struct{ full, minimal T }

var base = eventlog.Base{AgentID: "session-1", AgentType: "writer", Timestamp: 1700000000123, Step: 2}

func raw(s string) json.RawMessage { return json.RawMessage(s) }

var chunkSamples = []sample[eventlog.Chunk]{
	{&eventlog.TextDelta{Delta: "a < b & c > d \"é\u2028\" \\ \n", Base: base}, &eventlog.TextDelta{Base: base}},
	{&eventlog.Thinking{Content: "hm", IsComplete: true, Base: base}, &eventlog.Thinking{Base: base}},
	{
		&eventlog.ToolArgStreamStart{ToolCallID: "call-1", ToolName: "search", Base: base},
		&eventlog.ToolArgStreamStart{ToolCallID: "c", ToolName: "t", Base: base},
	},
	{
		&eventlog.ToolArgStreamDelta{ToolCallID: "call-1", Delta: `{"q":"<`, Base: base},
		&eventlog.ToolArgStreamDelta{ToolCallID: "c", Base: base},
	},
	{&eventlog.ToolArgStreamEnd{ToolCallID: "call-1", Base: base}, &eventlog.ToolArgStreamEnd{ToolCallID: "c", Base: base}},
	{
		&eventlog.SourceURL{SourceID: "src-1", URL: "https://example.com/?a=1&b=2", Title: new("Example"), Base: base},
		&eventlog.SourceURL{SourceID: "s", Base: base},
	},
	{
		&eventlog.SourceDocument{SourceID: "src-2", MediaType: "application/pdf", Title: "Doc", Filename: new("d.pdf"), Base: base},
		&eventlog.SourceDocument{SourceID: "s", Base: base},
	},
	{
		&eventlog.File{URL: "data:text/plain,hi", MediaType: "text/plain", Filename: new("hi.txt"), Base: base},
		&eventlog.File{Base: base},
	},
	{
		&eventlog.ToolStart{ToolCallID: "call-1", ToolName: "search", Arguments: raw(`{"q":"x < y","n":1.50,"deep":{"a":[null]}}`), Base: base},
		&eventlog.ToolStart{ToolCallID: "c", ToolName: "t", Arguments: raw(`{}`), Base: base},
	},
	{
		&eventlog.ToolEnd{
			ToolCallID: "call-1", ToolName: "search", Result: raw(`[1,"two",{"three":3}]`), Error: new("timed out"),
			ErrorCode: new("client_tool_timeout"), ProviderExecuted: new(false), Base: base,
		},
		&eventlog.ToolEnd{ToolCallID: "c", ToolName: "t", Result: raw(`null`), Base: base},
	},
	{
		&eventlog.ToolApprovalRequest{
			ToolCallID: "call-1", ToolName: "pay", ApprovalID: "run-1::call-1", Input: raw(`{"amount":12345678901234567890}`),
			IsAutomatic: new(true), Base: base,
		},
		&eventlog.ToolApprovalRequest{ToolCallID: "c", ToolName: "t", ApprovalID: "r::c", Input: raw(`null`), Base: base},
	},
	{
		&eventlog.ToolApprovalResponse{
			ToolCallID: "call-1", ToolName: "pay", ApprovalID: "run-1::call-1", Approved: true, Reason: new("fine"),
			IsAutomatic: new(false), Base: base,
		},
		&eventlog.ToolApprovalResponse{ToolCallID: "c", ToolName: "t", ApprovalID: "r::c", Base: base},
	},
	{
		&eventlog.ToolInputError{ToolCallID: "call-1", ToolName: "search", Error: "bad JSON", PartialInput: raw(`"{\"q\":"`), Base: base},
		&eventlog.ToolInputError{ToolCallID: "c", ToolName: "t", Base: base},
	},
	{
		&eventlog.ToolOutputError{ToolCallID: "call-1", ToolName: "search", Error: "broke", Base: base},
		&eventlog.ToolOutputError{ToolCallID: "c", ToolName: "t", Base: base},
	},
	{
		&eventlog.SubAgentStart{SubAgentType: "researcher", SubSessionID: "session-2", CallID: "call-2", Base: base},
		&eventlog.SubAgentStart{SubAgentType: "a", SubSessionID: "s", CallID: "c", Base: base},
	},
	{
		&eventlog.SubAgentEnd{SubAgentType: "researcher", SubSessionID: "session-2", CallID: "call-2", Result: raw(`{"found":true}`), Base: base},
		&eventlog.SubAgentEnd{SubAgentType: "a", SubSessionID: "s", CallID: "c", Result: raw(`null`), Base: base},
	},
	{
		&eventlog.CustomEvent{EventName: "progress", Data: raw(`{"percent":50}`), Base: base},
		&eventlog.CustomEvent{EventName: "e", Data: raw(`null`), Base: base},
	},
	{
		&eventlog.StatePatch{Patches: []eventlog.PatchOp{
			{Op: "add", Path: "/a", Value: raw(`{"b":1}`)}, {Op: "remove", Path: "/c"}, {Op: "replace", Path: "", Value: raw(`null`)},
			{Op: "move", Path: "/d", From: new("/e")}, {Op: "copy", Path: "/f", From: new("")}, {Op: "test", Path: "/~1", Value: raw(`0`)},
		}, Base: base},
		&eventlog.StatePatch{Patches: []eventlog.PatchOp{}, Base: base},
	},
	{
		&eventlog.Error{
			Error: "overloaded", Code: new("provider_overloaded"), ErrorDetail: &eventlog.ErrorDetail{
				Message: "529", Code: new("overloaded_error"), Category: new("provider"), Cause: new("upstream"), Retryable: new(true),
			}, Recoverable: true, Base: base,
		},
		&eventlog.Error{Base: base},
	},
	{&eventlog.Output{Output: raw(`{"answer":42}`), Base: base}, &eventlog.Output{Output: raw(`null`), Base: base}},
	{&eventlog.StepStart{StepID: new("step-2"), Base: base}, &eventlog.StepStart{Base: base}},
	{
		&eventlog.StepEnd{
			StepID: new("step-2"), FinishReason: new(eventlog.FinishToolCalls), Usage: &eventlog.StepUsage{
				InputTokens: 10, OutputTokens: 20, CachedTokens: new(int64(3)), CacheWriteTokens: new(int64(0)),
			}, Base: base,
		},
		&eventlog.StepEnd{Base: base},
	},
	{
		&eventlog.RunInterrupted{RunID: "run-1", CheckpointID: new("cp-1"), Reason: new("user"), Base: base},
		&eventlog.RunInterrupted{RunID: "r", Base: base},
	},
	{
		&eventlog.RunResumed{RunID: "run-1", FromCheckpointID: new("cp-1"), FromStepCount: 2, Mode: "continue", Base: base},
		&eventlog.RunResumed{RunID: "r", Base: base},
	},
	{
		&eventlog.RunPaused{RunID: "run-1", Reason: "approval", PendingToolName: new("pay"), PendingToolCallID: new("call-1"), Base: base},
		&eventlog.RunPaused{RunID: "r", Base: base},
	},
	{&eventlog.ExecutorSuperseded{Reason: new("stale state"), Base: base}, &eventlog.ExecutorSuperseded{Base: base}},
	{
		&eventlog.CheckpointCreated{RunID: "run-1", CheckpointID: "cp-1", StepCount: 2, Base: base},
		&eventlog.CheckpointCreated{RunID: "r", CheckpointID: "c", Base: base},
	},
	{
		&eventlog.StepCommitted{RunID: "run-1", StepID: "step-2", CheckpointID: "cp-1", Base: base},
		&eventlog.StepCommitted{RunID: "r", StepID: "s", CheckpointID: "c", Base: base},
	},
	{
		&eventlog.StepDiscarded{RunID: "run-1", StepID: "step-2", Reason: "model failed", Base: base},
		&eventlog.StepDiscarded{RunID: "r", StepID: "s", Base: base},
	},
	{
		&eventlog.StreamResync{
			CheckpointID: "cp-1", StepCount: 2, MessageCount: 3, FromSequence: 1<<64 - 1, Reason: eventlog.ResyncCrashRecovery, Base: base,
		},
		&eventlog.StreamResync{Reason: eventlog.ResyncRetry, Base: base},
	},
	{
		&eventlog.SuspensionMarker{Kind: eventlog.SuspendedStepPartial, Payload: raw(`{"toolCallIds":["call-1"],"stepId":"step-2"}`), Base: base},
		&eventlog.SuspensionMarker{Kind: eventlog.SuspendedClientTool, Payload: raw(`{}`), Base: base},
	},
}
