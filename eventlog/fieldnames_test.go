package eventlog_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
)

// The wire form of each chunk, written by hand: the codec can't agree with its own mistakes.
func TestWireForm(t *testing.T) {
	const tail = `"agentId":"session-1","agentType":"writer","timestamp":1700000000123,"step":2}`
	for _, tc := range []struct {
		chunk eventlog.Chunk
		want  string
	}{
		{
			&eventlog.TextDelta{Delta: "if a < b && c > d {}", Base: base},
			`{"type":"text_delta","delta":"if a < b && c > d {}",`,
		},
		{&eventlog.ToolEnd{ToolCallID: "c", ToolName: "t", Base: base}, `{"type":"tool_end","toolCallId":"c","toolName":"t","result":null,`},
		{
			&eventlog.ToolEnd{
				ToolCallID: "c", ToolName: "t", Result: raw("{ \"html\": \"<b>&amp;</b>\" }\n"), Error: new(""), ErrorCode: new("aborted"),
				ProviderExecuted: new(false), Base: base,
			},
			`{"type":"tool_end","toolCallId":"c","toolName":"t","result":{"html":"<b>&amp;</b>"},"error":"","errorCode":"aborted","providerExecuted":false,`,
		},
		{&eventlog.RunInterrupted{RunID: "r", Base: base}, `{"type":"run_interrupted","runId":"r","checkpointId":null,`},
		{
			&eventlog.RunResumed{RunID: "r", Mode: "continue", Base: base},
			`{"type":"run_resumed","runId":"r","fromCheckpointId":null,"fromStepCount":0,"mode":"continue",`,
		},
		{
			&eventlog.StepEnd{
				StepID: new("s"), Usage: &eventlog.StepUsage{InputTokens: 1, OutputTokens: 2, CachedTokens: new(int64(3)), CacheWriteTokens: new(int64(4))},
				FinishReason: new(eventlog.FinishContentFilter), Base: base,
			},
			`{"type":"step_end","stepId":"s","usage":{"inputTokens":1,"outputTokens":2,"cachedTokens":3,"cacheWriteTokens":4},"finishReason":"content-filter",`,
		},
		{
			&eventlog.Error{Error: "e", Code: new("c"), ErrorDetail: &eventlog.ErrorDetail{
				Message: "m", Code: new("c"), Category: new("k"), Cause: new("w"), Retryable: new(false),
			}, Base: base},
			`{"type":"error","error":"e","code":"c","errorDetail":{"message":"m","code":"c","category":"k","cause":"w","retryable":false},"recoverable":false,`,
		},
		{
			&eventlog.StatePatch{Patches: []eventlog.PatchOp{{Op: "add", Path: "/a", Value: raw("null")}, {Op: "move", Path: "/a", From: new("/b")}}, Base: base},
			`{"type":"state_patch","patches":[{"op":"add","path":"/a","value":null},{"op":"move","path":"/a","from":"/b"}],`,
		},
		{
			&eventlog.StreamResync{CheckpointID: "cp", StepCount: 1, MessageCount: 2, FromSequence: 3, Reason: eventlog.ResyncBranch, Base: base},
			`{"type":"stream_resync","checkpointId":"cp","stepCount":1,"messageCount":2,"fromSequence":3,"reason":"branch",`,
		},
		{
			&eventlog.SubAgentEnd{SubAgentType: "a", SubSessionID: "s", CallID: "c", Base: base},
			`{"type":"subagent_end","subAgentType":"a","subSessionId":"s","callId":"c","result":null,`,
		},
	} {
		got, err := eventlog.EncodeChunk(tc.chunk)
		require.NoError(t, err)
		require.Equal(t, tc.want+tail, string(got))
	}

	end, err := eventlog.EncodeFact(&fact.StreamEnd{StreamID: "s", Timestamp: 5})
	require.NoError(t, err)
	require.Equal(t, `{"type":"stream_end","streamId":"s","timestamp":5}`, string(end))
}
