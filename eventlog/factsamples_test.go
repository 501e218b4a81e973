package eventlog_test

import "github.com/helixd/helixd/eventlog"

var factBase = eventlog.FactBase{SessionID: "session-1", Timestamp: 1700000000123}

var factSamples = []sample[eventlog.Fact]{
	{
		&eventlog.SessionCreated{
			AgentType: "writer", State: raw(`{"n":1}`), UserID: "user-1", Tags: []string{"a", "b"},
			Metadata: map[string]string{"k": "v", "l": "<&>"}, FactBase: factBase,
		},
		&eventlog.SessionCreated{AgentType: "a", FactBase: factBase},
	},
	{
		&eventlog.SessionImported{Records: 7, FactBase: factBase},
		&eventlog.SessionImported{FactBase: factBase},
	},
	{
		&eventlog.UserMessage{
			Content: "look < here", Files: []eventlog.MessageFile{{Data: "data:,x", MediaType: "text/plain", Filename: "x.txt"}},
			Metadata: raw(`{"hidden":true}`), FactBase: factBase,
		},
		&eventlog.UserMessage{FactBase: factBase},
	},
	{
		&eventlog.RunRequested{RunID: "run-1", Mode: eventlog.ModeWithMessage, FactBase: factBase},
		&eventlog.RunRequested{RunID: "r", Mode: eventlog.ModeStart, FactBase: factBase},
	},
	{
		&eventlog.RunClaimed{RunID: "run-1", Node: "node-1", Attempt: 2, FactBase: factBase},
		&eventlog.RunClaimed{RunID: "r", FactBase: factBase},
	},
	{
		&eventlog.ModelTurn{
			RunID: "run-1", StepID: "step-1", Step: 1, Model: "gpt", Parts: []eventlog.TurnPart{
				{Reasoning: "so"}, {Text: "a < b"},
				{ToolCall: &eventlog.ToolCall{ID: "call-1", Name: "search", Arguments: raw(`{"q":"x"}`)}},
			},
			StopReason: eventlog.StopToolUse, Usage: eventlog.TokenUsage{
				Prompt: 1, Completion: 2, Reasoning: 3, Cached: 4, CacheWrite: 5, Total: 6,
			}, FactBase: factBase,
		},
		&eventlog.ModelTurn{StepID: "s", Parts: []eventlog.TurnPart{}, StopReason: eventlog.StopEndTurn, FactBase: factBase},
	},
	{
		&eventlog.ModelFailed{
			RunID: "run-1", StepID: "step-1", Step: 1, Attempt: 2, Error: "503", Code: "provider_overloaded", Retryable: true,
			FactBase: factBase,
		},
		&eventlog.ModelFailed{FactBase: factBase},
	},
	{
		&eventlog.ToolResult{
			RunID: "run-1", StepID: "step-1", ToolCallID: "call-1", ToolName: "search", Result: raw(`{"ok":false}`),
			Error: "broke", ErrorCode: "tool_failed", FactBase: factBase,
		},
		&eventlog.ToolResult{ToolCallID: "c", Result: raw(`null`), FactBase: factBase},
	},
	{
		&eventlog.RunEnded{
			RunID: "run-1", Status: eventlog.RunFailed, Output: raw(`{"a":1}`), Error: "broke", ErrorCode: "internal", FactBase: factBase,
		},
		&eventlog.RunEnded{RunID: "r", Status: eventlog.RunCompleted, FactBase: factBase},
	},
	{
		&eventlog.Truncated{
			Reason: eventlog.ResyncRollback, Ranges: []eventlog.Range{{AgentID: "session-1", CallID: "call-1", From: 3, To: 7}},
			AtSequence: 9, FactBase: factBase,
		},
		&eventlog.Truncated{Reason: eventlog.ResyncRetry, Ranges: []eventlog.Range{}, FactBase: factBase},
	},
	{&eventlog.StreamPaused{Reason: "approval", FactBase: factBase}, &eventlog.StreamPaused{FactBase: factBase}},
	{&eventlog.StreamResumed{FactBase: factBase}, &eventlog.StreamResumed{FactBase: factBase}},
	{
		&eventlog.StreamEnd{StreamID: "session-1", Timestamp: 1700000000123, FinalOutput: raw(`{"answer":42}`)},
		&eventlog.StreamEnd{StreamID: "s"},
	},
	{&eventlog.StreamFailed{Error: "broke", FactBase: factBase}, &eventlog.StreamFailed{FactBase: factBase}},
	{&eventlog.Erased{FactBase: factBase}, &eventlog.Erased{FactBase: factBase}},
	{
		&eventlog.CallSuspended{
			RunID: "run-1", StepID: "step-1", ToolCallID: "call-1", ToolName: "delete", Kind: eventlog.PendingApproval,
			ApprovalID: "run-1::call-1", ChildSessionID: "session-1-sub-call-1", Deadline: 1700000600123, FactBase: factBase,
		},
		&eventlog.CallSuspended{ToolCallID: "c", Kind: eventlog.PendingClient, FactBase: factBase},
	},
	{
		&eventlog.ResultSubmitted{
			ToolCallID: "call-1", Kind: eventlog.SubmitApproval, Result: raw(`{"ok":true}`), Error: "broke", ErrorCode: "client_tool_error",
			Approved: true, Reason: "fine", FactBase: factBase,
		},
		&eventlog.ResultSubmitted{ToolCallID: "c", Kind: eventlog.SubmitTimeout, FactBase: factBase},
	},
	{
		&eventlog.InterruptRequested{
			RunID: "run-1", Kind: eventlog.StopAbort, Reason: "enough", Code: "tool_timeout", ByParent: true, FactBase: factBase,
		},
		&eventlog.InterruptRequested{RunID: "r", Kind: eventlog.StopInterrupt, FactBase: factBase},
	},
	{
		&eventlog.SessionForked{FromSessionID: "session-0", FromSequence: 42, State: raw(`{"sessionId":"session-1"}`), FactBase: factBase},
		&eventlog.SessionForked{FromSessionID: "s", State: raw(`{}`), FactBase: factBase},
	},
	{
		&eventlog.UsageRecorded{
			RunID: "run-1", StepCount: 2, Source: eventlog.UsageTool, SourceType: eventlog.ClientToolWait, SourceName: "pick",
			Amount: 1500.5, FactBase: factBase,
		},
		&eventlog.UsageRecorded{Source: eventlog.UsageAgent, SourceType: "pages", FactBase: factBase},
	},
	{
		&eventlog.RemoteProgress{ToolCallID: "call-1", RunID: "run-9", Sequence: 77, FactBase: factBase},
		&eventlog.RemoteProgress{ToolCallID: "c", FactBase: factBase},
	},
	{
		&eventlog.ClaimSettled{RunID: "run-1", Node: "node-1", How: eventlog.ClaimSurvived, FactBase: factBase},
		&eventlog.ClaimSettled{RunID: "r", How: eventlog.ClaimReleased, FactBase: factBase},
	},
	{
		&eventlog.MemorySaved{
			MemoryID: "memory-1", Content: "likes tea", Tags: []string{"taste"}, Metadata: raw(`{"a":1}`),
			Source: &eventlog.MemorySource{SessionID: "session-1", AgentType: "a", RunID: "run-1", ToolCallID: "call-1"}, FactBase: factBase,
		},
		&eventlog.MemorySaved{MemoryID: "m", Content: "c", FactBase: factBase},
	},
	{
		&eventlog.MemoryEmbedded{MemoryID: "memory-1", Model: "local", Vector: eventlog.Vector{0.5, -1, 0.25}, FactBase: factBase},
		&eventlog.MemoryEmbedded{MemoryID: "m", Model: "x", Vector: eventlog.Vector{1}, FactBase: factBase},
	},
	{
		&eventlog.MemoryForgotten{MemoryID: "memory-1", FactBase: factBase},
		&eventlog.MemoryForgotten{MemoryID: "m", FactBase: factBase},
	},
	{
		&eventlog.MemoryRecalled{
			RunID: "run-1", Query: "what to drink?", Error: "late",
			Memories: []eventlog.RecalledMemory{{MemoryID: "memory-1", Content: "likes tea", Score: 0.5}}, FactBase: factBase,
		},
		&eventlog.MemoryRecalled{RunID: "r", FactBase: factBase},
	},
	{
		&eventlog.WorkspaceOpened{
			Name: "files", ProviderID: "local", Capabilities: []eventlog.WorkspaceCapability{eventlog.WorkspaceFS}, Ref: raw(`{"dir":"a"}`),
			FactBase: factBase,
		},
		&eventlog.WorkspaceOpened{Name: "w", ProviderID: "p", Capabilities: []eventlog.WorkspaceCapability{}, Ref: raw(`{}`), FactBase: factBase},
	},
	{
		&eventlog.WorkspaceFailed{Name: "files", ProviderID: "local", Error: "gone", FactBase: factBase},
		&eventlog.WorkspaceFailed{Name: "w", ProviderID: "p", FactBase: factBase},
	},
	{
		&eventlog.WorkspaceSaved{Snapshot: raw(`{"id":"1"}`), FactBase: factBase},
		&eventlog.WorkspaceSaved{Snapshot: raw(`{}`), FactBase: factBase},
	},
	{
		&eventlog.WorkspaceRestored{FactBase: factBase},
		&eventlog.WorkspaceRestored{FactBase: factBase},
	},
	{
		&eventlog.WorkspaceClosed{Reason: "session_expired", FactBase: factBase},
		&eventlog.WorkspaceClosed{FactBase: factBase},
	},
}
