package eventlog_test

import (
	"encoding/json"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
)

var factBase = fact.Base{SessionID: "session-1", Timestamp: 1700000000123}

var factSamples = []sample[fact.Fact]{
	{
		&fact.SessionCreated{
			AgentType: "writer", State: raw(`{"n":1}`), UserID: "user-1", Tags: []string{"a", "b"},
			Metadata: map[string]string{"k": "v", "l": "<&>"}, Base: factBase,
		},
		&fact.SessionCreated{AgentType: "a", Base: factBase},
	},
	{
		&fact.SessionImported{Records: 7, Base: factBase},
		&fact.SessionImported{Base: factBase},
	},
	{
		&fact.UserMessage{
			Content: "look < here", Files: []fact.MessageFile{{Data: "data:,x", MediaType: "text/plain", Filename: "x.txt"}},
			Metadata: raw(`{"hidden":true}`), Base: factBase,
		},
		&fact.UserMessage{Base: factBase},
	},
	{
		&fact.RunRequested{RunID: "run-1", Mode: fact.ModeWithMessage, Base: factBase},
		&fact.RunRequested{RunID: "r", Mode: fact.ModeStart, Base: factBase},
	},
	{
		&fact.RunClaimed{RunID: "run-1", Node: "node-1", Attempt: 2, Base: factBase},
		&fact.RunClaimed{RunID: "r", Base: factBase},
	},
	{
		&fact.ModelTurn{
			RunID: "run-1", StepID: "step-1", Step: 1, Model: "gpt", Parts: []fact.TurnPart{
				{Reasoning: "so"}, {Text: "a < b"},
				{ToolCall: &fact.ToolCall{ID: "call-1", Name: "search", Arguments: raw(`{"q":"x"}`)}},
			},
			StopReason: fact.StopToolUse, Usage: fact.TokenUsage{
				Prompt: 1, Completion: 2, Reasoning: 3, Cached: 4, CacheWrite: 5, Total: 6,
			}, Base: factBase,
		},
		&fact.ModelTurn{StepID: "s", Parts: []fact.TurnPart{}, StopReason: fact.StopEndTurn, Base: factBase},
	},
	{
		&fact.ModelFailed{
			RunID: "run-1", StepID: "step-1", Step: 1, Attempt: 2, Error: "503", Code: "provider_overloaded", Retryable: true,
			Base: factBase,
		},
		&fact.ModelFailed{Base: factBase},
	},
	{
		&fact.ToolResult{
			RunID: "run-1", StepID: "step-1", ToolCallID: "call-1", ToolName: "search", Result: raw(`{"ok":false}`),
			Error: "broke", ErrorCode: "tool_failed", Base: factBase,
		},
		&fact.ToolResult{ToolCallID: "c", Result: raw(`null`), Base: factBase},
	},
	{
		&fact.RunEnded{
			RunID: "run-1", Status: fact.RunFailed, Output: raw(`{"a":1}`), Error: "broke", ErrorCode: "internal", Base: factBase,
		},
		&fact.RunEnded{RunID: "r", Status: fact.RunCompleted, Base: factBase},
	},
	{
		&eventlog.Truncated{
			Reason: eventlog.ResyncRollback, Ranges: []eventlog.Range{{AgentID: "session-1", CallID: "call-1", From: 3, To: 7}},
			AtSequence: 9, Base: factBase,
		},
		&eventlog.Truncated{Reason: eventlog.ResyncRetry, Ranges: []eventlog.Range{}, Base: factBase},
	},
	{&fact.StreamPaused{Reason: "approval", Base: factBase}, &fact.StreamPaused{Base: factBase}},
	{&fact.StreamResumed{Base: factBase}, &fact.StreamResumed{Base: factBase}},
	{
		&fact.StreamEnd{StreamID: "session-1", Timestamp: 1700000000123, FinalOutput: raw(`{"answer":42}`)},
		&fact.StreamEnd{StreamID: "s"},
	},
	{&fact.StreamFailed{Error: "broke", Base: factBase}, &fact.StreamFailed{Base: factBase}},
	{&fact.Erased{Base: factBase}, &fact.Erased{Base: factBase}},
	{
		&fact.CallSuspended{
			RunID: "run-1", StepID: "step-1", ToolCallID: "call-1", ToolName: "delete", Kind: fact.PendingApproval,
			ApprovalID: "run-1::call-1", ChildSessionID: "session-1-sub-call-1", Deadline: 1700000600123, Base: factBase,
		},
		&fact.CallSuspended{ToolCallID: "c", Kind: fact.PendingClient, Base: factBase},
	},
	{
		&fact.ResultSubmitted{
			ToolCallID: "call-1", Kind: fact.SubmitApproval, Result: raw(`{"ok":true}`), Error: "broke", ErrorCode: "client_tool_error",
			Approved: true, Reason: "fine", Base: factBase,
		},
		&fact.ResultSubmitted{ToolCallID: "c", Kind: fact.SubmitTimeout, Base: factBase},
	},
	{
		&fact.InterruptRequested{
			RunID: "run-1", Kind: fact.StopAbort, Reason: "enough", Code: "tool_timeout", ByParent: true, Base: factBase,
		},
		&fact.InterruptRequested{RunID: "r", Kind: fact.StopInterrupt, Base: factBase},
	},
	{
		&fact.SessionForked{FromSessionID: "session-0", FromSequence: 42, State: raw(`{"sessionId":"session-1"}`), Base: factBase},
		&fact.SessionForked{FromSessionID: "s", State: raw(`{}`), Base: factBase},
	},
	{
		&fact.UsageRecorded{
			RunID: "run-1", StepCount: 2, Source: fact.UsageTool, SourceType: fact.ClientToolWait, SourceName: "pick",
			Amount: 1500.5, Base: factBase,
		},
		&fact.UsageRecorded{Source: fact.UsageAgent, SourceType: "pages", Base: factBase},
	},
	{
		&fact.RemoteProgress{ToolCallID: "call-1", RunID: "run-9", Sequence: 77, Base: factBase},
		&fact.RemoteProgress{ToolCallID: "c", Base: factBase},
	},
	{
		&fact.ClaimSettled{RunID: "run-1", Node: "node-1", How: fact.ClaimSurvived, Base: factBase},
		&fact.ClaimSettled{RunID: "r", How: fact.ClaimReleased, Base: factBase},
	},
	{
		&fact.MemorySaved{
			MemoryID: "memory-1", Content: "likes tea", Tags: []string{"taste"}, Metadata: raw(`{"a":1}`),
			Source: &fact.MemorySource{SessionID: "session-1", AgentType: "a", RunID: "run-1", ToolCallID: "call-1"}, Base: factBase,
		},
		&fact.MemorySaved{MemoryID: "m", Content: "c", Base: factBase},
	},
	{
		&fact.MemoryEmbedded{MemoryID: "memory-1", Model: "local", Vector: fact.Vector{0.5, -1, 0.25}, Base: factBase},
		&fact.MemoryEmbedded{MemoryID: "m", Model: "x", Vector: fact.Vector{1}, Base: factBase},
	},
	{
		&fact.MemoryForgotten{MemoryID: "memory-1", Base: factBase},
		&fact.MemoryForgotten{MemoryID: "m", Base: factBase},
	},
	{
		&fact.MemoryRecalled{
			RunID: "run-1", Query: "what to drink?", Error: "late",
			Memories: []fact.RecalledMemory{{MemoryID: "memory-1", Content: "likes tea", Score: 0.5}}, Base: factBase,
		},
		&fact.MemoryRecalled{RunID: "r", Base: factBase},
	},
	{
		&fact.WorkspaceOpened{
			Name: "files", ProviderID: "local", Capabilities: []fact.WorkspaceCapability{fact.WorkspaceFS}, Ref: raw(`{"dir":"a"}`),
			Base: factBase,
		},
		&fact.WorkspaceOpened{Name: "w", ProviderID: "p", Capabilities: []fact.WorkspaceCapability{}, Ref: raw(`{}`), Base: factBase},
	},
	{
		&fact.WorkspaceFailed{Name: "files", ProviderID: "local", Error: "gone", Base: factBase},
		&fact.WorkspaceFailed{Name: "w", ProviderID: "p", Base: factBase},
	},
	{
		&fact.WorkspaceSaved{Snapshot: raw(`{"id":"1"}`), Base: factBase},
		&fact.WorkspaceSaved{Snapshot: raw(`{}`), Base: factBase},
	},
	{
		&fact.WorkspaceRestored{Base: factBase},
		&fact.WorkspaceRestored{Base: factBase},
	},
	{
		&fact.WorkspaceClosed{Reason: "session_expired", Base: factBase},
		&fact.WorkspaceClosed{Base: factBase},
	},
	{
		&fact.MessageAdded{
			Role: fact.AddedTool, Content: "be brief", Parts: []fact.TurnPart{{Text: "hello"}}, ToolCallID: "call-1", ToolName: "search",
			Error: "broke", MessageID: "m-1", Base: factBase,
		},
		&fact.MessageAdded{Role: fact.AddedSystem, Base: factBase},
	},
	{
		&fact.MetadataReplaced{Metadata: map[string]string{"k": "v"}, Base: factBase},
		&fact.MetadataReplaced{Base: factBase},
	},
	{
		&fact.RunDeleted{RunID: "run-1", Base: factBase},
		&fact.RunDeleted{RunID: "r", Base: factBase},
	},
	{
		&fact.DurableCreated{
			ContentType: "text/plain; charset=utf-8", TTL: new(int64(60)), ExpiresAt: "2026-01-31T12:00:00Z",
			Source: &fact.DurableSource{Stream: "~stream/a", Ref: "ref-1", Position: 5, Sequence: 9, Depth: 1}, Base: factBase,
		},
		&fact.DurableCreated{ContentType: "application/json", Base: factBase},
	},
	{
		&fact.DurableAppended{
			Position: 7, Text: "a <b>", Data: []byte{0, 255}, Messages: []json.RawMessage{raw(`{"a":1}`), raw(`[2]`)},
			Producer: &fact.DurableProducer{ID: "producer-1", Epoch: 1, Seq: 2}, WriterSeq: "09", Closes: true, Base: factBase,
		},
		&fact.DurableAppended{Base: factBase},
	},
	{
		&fact.DurableChanged{Fork: &fact.DurableFork{Stream: "~stream/b", Ref: "ref-1", Gone: true}, Deleted: true, Base: factBase},
		&fact.DurableChanged{Base: factBase},
	},
}
