package textstream_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
)

// Every type of chunk, and what a client gets of it.
func TestChunks(t *testing.T) {
	text := &eventlog.TextDelta{Delta: "Hi <b>", Base: of(root)}
	start := &eventlog.ToolStart{ToolCallID: "c", ToolName: "look", Arguments: raw(`{"at":1}`), Base: of(root)}
	argStart := &eventlog.ToolArgStreamStart{ToolCallID: "c", ToolName: "look", Base: of(root)}
	argDelta := &eventlog.ToolArgStreamDelta{ToolCallID: "c", Delta: `{"at"`, Base: of(root)}
	nothing := []struct {
		name   string
		chunks []any
		want   string
	}{
		{"tool_arg_stream_end", []any{&eventlog.ToolArgStreamEnd{ToolCallID: "c", Base: of(root)}}, ""},
		{"tool_approval_response", []any{&eventlog.ToolApprovalResponse{ToolCallID: "c", ToolName: "look", ApprovalID: "r::c", Base: of(root)}}, ""},
		{"subagent_start", []any{&eventlog.SubAgentStart{SubAgentType: "h", SubSessionID: child, CallID: "a", Base: of(root)}}, ""},
		{"subagent_end", []any{&eventlog.SubAgentEnd{SubAgentType: "h", SubSessionID: child, CallID: "a", Result: raw("1"), Base: of(root)}}, ""},
		{"custom", []any{&eventlog.CustomEvent{EventName: "progress", Data: raw("1"), Base: of(root)}}, ""},
		{"state_patch", []any{&eventlog.StatePatch{Patches: []eventlog.PatchOp{}, Base: of(root)}}, ""},
		{"output", []any{&eventlog.Output{Output: raw("1"), Base: of(root)}}, ""},
		{"source_url", []any{&eventlog.SourceURL{SourceID: "x", URL: "https://a.example", Base: of(root)}}, ""},
		{"source_document", []any{&eventlog.SourceDocument{SourceID: "x", Base: of(root)}}, ""},
		{"file", []any{&eventlog.File{URL: "data:,", MediaType: "text/plain", Base: of(root)}}, ""},
		{"run_interrupted", []any{&eventlog.RunInterrupted{RunID: "r", Base: of(root)}}, ""},
		{"run_resumed", []any{&eventlog.RunResumed{RunID: "r", Mode: "continue", Base: of(root)}}, ""},
		{"run_paused", []any{&eventlog.RunPaused{RunID: "r", Reason: "client_tool", Base: of(root)}}, ""},
		{"executor_superseded", []any{&eventlog.ExecutorSuperseded{Base: of(root)}}, ""},
		{"checkpoint_created", []any{&eventlog.CheckpointCreated{RunID: "r", CheckpointID: "cp", Base: of(root)}}, ""},
		{"step_committed", []any{&eventlog.StepCommitted{RunID: "r", StepID: "1", CheckpointID: "cp", Base: of(root)}}, ""},
		{"step_discarded", []any{&eventlog.StepDiscarded{RunID: "r", StepID: "1", Base: of(root)}}, ""},
		{"stream_resync", []any{&eventlog.StreamResync{Reason: eventlog.ResyncRetry, Base: of(root)}}, ""},
		{"suspension_marker", []any{&eventlog.SuspensionMarker{Kind: eventlog.SuspendedClientTool, Payload: raw("{}"), Base: of(root)}}, ""},
	}
	tests := append(nothing, []struct {
		name   string
		chunks []any
		want   string
	}{
		{"step_discarded ends what is open", []any{
			&eventlog.StepStart{StepID: new("1"), Base: of(root)}, text,
			&eventlog.StepDiscarded{RunID: "r", StepID: "1", Reason: eventlog.DiscardCrash, Base: of(root)},
			&eventlog.StepStart{StepID: new("1"), Base: of(root)},
		}, `
			{"type":"start-step"}
			{"type":"text-start","id":"text-0"}
			{"type":"text-delta","id":"text-0","text":"Hi <b>"}
			{"type":"text-end","id":"text-0"}
			{"type":"finish-step"}
			{"type":"start-step"}
			END
			{"type":"finish-step"}`},
		{"text_delta", []any{text, text}, `
			{"type":"text-start","id":"text-0"}
			{"type":"text-delta","id":"text-0","text":"Hi <b>"}
			{"type":"text-delta","id":"text-0","text":"Hi <b>"}
			END
			{"type":"text-end","id":"text-0"}`},
		{"thinking", []any{
			&eventlog.Thinking{Content: "a", Base: of(root)},
			&eventlog.Thinking{Content: "b", Base: of(root)},
			&eventlog.Thinking{Content: "ab", IsComplete: true, Base: of(root)},
		}, `
			{"type":"reasoning-start","id":"reasoning-0"}
			{"type":"reasoning-delta","id":"reasoning-0","text":"a"}
			{"type":"reasoning-delta","id":"reasoning-0","text":"b"}
			{"type":"reasoning-end","id":"reasoning-0"}`},
		{"tool_arg_stream_start", []any{argStart}, `
			{"type":"tool-input-start","id":"c","toolName":"look"}
			END
			{"type":"tool-input-end","id":"c"}`},
		{"tool_arg_stream_delta", []any{argDelta, argStart, argDelta, &eventlog.ToolArgStreamEnd{ToolCallID: "c", Base: of(root)}, argDelta}, `
			{"type":"tool-input-start","id":"c","toolName":"look"}
			{"type":"tool-input-delta","id":"c","delta":"{\"at\""}
			{"type":"tool-input-end","id":"c"}`},
		{"tool_start", []any{argStart, start, start}, `
			{"type":"tool-input-start","id":"c","toolName":"look"}
			{"type":"tool-input-end","id":"c"}
			{"type":"tool-call","toolCallId":"c","toolName":"look","input":{"at":1}}`},
		{"tool_end", []any{start, &eventlog.ToolEnd{ToolCallID: "c", ToolName: "look", Result: raw(`{"x": [1]}`), Base: of(root)}}, `
			{"type":"tool-call","toolCallId":"c","toolName":"look","input":{"at":1}}
			{"type":"tool-result","toolCallId":"c","toolName":"look","output":{"x":[1]}}`},
		{"tool_approval_request", []any{
			&eventlog.ToolApprovalRequest{ToolCallID: "c", ToolName: "look", ApprovalID: "r::c", Input: raw(`{"at":1}`), Base: of(root)},
			start, // when it is approved
		}, `
			{"type":"tool-call","toolCallId":"c","toolName":"look","input":{"at":1}}`},
		{"tool_input_error", []any{&eventlog.ToolInputError{ToolCallID: "c", ToolName: "look", Error: "bad", PartialInput: raw(`"{"`), Base: of(root)}}, `
			{"type":"tool-call","toolCallId":"c","toolName":"look","input":{}}
			{"type":"tool-result","toolCallId":"c","toolName":"look","output":{"error":"bad"}}`},
		{"tool_output_error", []any{
			start, &eventlog.ToolOutputError{ToolCallID: "c", ToolName: "look", Error: "no", Base: of(root)},
			&eventlog.ToolEnd{ToolCallID: "c", ToolName: "look", Result: raw("null"), Error: new("no"), Base: of(root)},
		}, `
			{"type":"tool-call","toolCallId":"c","toolName":"look","input":{"at":1}}
			{"type":"tool-result","toolCallId":"c","toolName":"look","output":{"error":"no"}}`},
		{"step_start", []any{&eventlog.StepStart{Base: of(root)}}, `
			{"type":"start-step"}
			END
			{"type":"finish-step"}`},
		{"step_end", []any{&eventlog.StepStart{Base: of(root)}, text, &eventlog.StepEnd{Base: of(root)}}, `
			{"type":"start-step"}
			{"type":"text-start","id":"text-0"}
			{"type":"text-delta","id":"text-0","text":"Hi <b>"}
			{"type":"text-end","id":"text-0"}
			{"type":"finish-step"}`},
		{"error", []any{
			&eventlog.Error{Error: "soon", Recoverable: true, Base: of(root)},
			&eventlog.Error{Error: "hers", Base: of(child)},
			&eventlog.Error{Error: "broke", Base: of(root)},
			&eventlog.Error{Error: "again", Base: of(root)},
		}, `
			{"type":"error","error":"broke"}`},
	}...)
	covered := map[string]bool{}
	for _, test := range tests {
		covered[test.name] = true
		t.Run(test.name, func(t *testing.T) {
			require.Equal(t, script(test.want), told(t, 0, test.chunks...))
		})
	}
	for _, typ := range eventlog.ChunkTypes() {
		require.True(t, covered[typ], typ)
	}
}

func TestAMessageBeginsWithStart(t *testing.T) {
	require.JSONEq(t, `{"type":"start"}`, string(newEncoder().Start()))
}

// Content of the model between two pieces of text makes two blocks of them; other content
// does not.
func TestTextEndsWhereOtherContentBegins(t *testing.T) {
	text := &eventlog.TextDelta{Delta: "x", Base: of(root)}
	blocks := func(c eventlog.Chunk) (n int) { // of the root
		for _, f := range encoded(newEncoder(), records(t, text, c, text), 0) {
			if p := parse(t, f); p.Type == "text-start" && p.Metadata.ParentToolUseID == "" {
				n++
			}
		}
		return n
	}
	for _, c := range []eventlog.Chunk{
		&eventlog.Thinking{Content: "hm", Base: of(root)},
		&eventlog.Thinking{Content: "hm", IsComplete: true, Base: of(root)},
		&eventlog.ToolArgStreamStart{ToolCallID: "c", ToolName: "t", Base: of(root)},
		&eventlog.ToolStart{ToolCallID: "c", ToolName: "t", Arguments: raw("{}"), Base: of(root)},
		&eventlog.ToolApprovalRequest{ToolCallID: "c", ToolName: "t", ApprovalID: "r::c", Base: of(root)},
		&eventlog.ToolInputError{ToolCallID: "c", ToolName: "t", Base: of(root)},
		&eventlog.ToolEnd{ToolCallID: "c", ToolName: "t", Result: raw("1"), Base: of(root)},
		&eventlog.SourceURL{SourceID: "x", Base: of(root)},
		&eventlog.SourceDocument{SourceID: "x", Base: of(root)},
		&eventlog.File{Base: of(root)},
		&eventlog.StepEnd{Base: of(root)},
		&eventlog.StepStart{Base: of(root)},
	} {
		require.Equal(t, 2, blocks(c), c.Type())
	}
	for _, c := range []eventlog.Chunk{
		&eventlog.CustomEvent{EventName: "x", Data: raw("1"), Base: of(root)},
		&eventlog.StatePatch{Patches: []eventlog.PatchOp{}, Base: of(root)},
		&eventlog.TextDelta{Delta: "hers", Base: of(child)},
		&eventlog.StepEnd{Base: of(child)},
	} {
		require.Equal(t, 1, blocks(c), c.Type())
	}
}

func TestReasoning(t *testing.T) {
	piece := &eventlog.Thinking{Content: "a", Base: of(root)}
	whole := &eventlog.Thinking{Content: "a", IsComplete: true, Base: of(root)}
	text := &eventlog.TextDelta{Delta: "x", Base: of(root)}
	const first = `{"type":"reasoning-start","id":"reasoning-0"}
		{"type":"reasoning-delta","id":"reasoning-0","text":"a"}`
	const second = `{"type":"reasoning-start","id":"reasoning-1"}
		{"type":"reasoning-delta","id":"reasoning-1","text":"a"}`
	const said = `{"type":"text-start","id":"text-0"}
		{"type":"text-delta","id":"text-0","text":"x"}`
	t.Run("a whole block alone is ended with what comes next", func(t *testing.T) {
		require.Equal(t, script(first+`
			{"type":"reasoning-end","id":"reasoning-0"}
			`+said+`
			END
			{"type":"text-end","id":"text-0"}`), told(t, 0, whole, text))
	})
	t.Run("two whole blocks are two", func(t *testing.T) {
		require.Equal(t, script(first+`
			{"type":"reasoning-end","id":"reasoning-0"}
			`+second+`
			END
			{"type":"reasoning-end","id":"reasoning-1"}`), told(t, 0, whole, whole))
	})
	t.Run("pieces after a whole block are another one", func(t *testing.T) {
		require.Equal(t, script(first+`
			{"type":"reasoning-end","id":"reasoning-0"}
			`+second+`
			{"type":"reasoning-end","id":"reasoning-1"}`), told(t, 0, whole, piece, whole))
	})
	t.Run("the whole may come late", func(t *testing.T) {
		require.Equal(t, script(first+`
			{"type":"reasoning-end","id":"reasoning-0"}
			`+said+`
			END
			{"type":"text-end","id":"text-0"}`), told(t, 0, piece, text, whole))
	})
	t.Run("a step without its whole", func(t *testing.T) {
		require.Equal(t, script(first+`
			{"type":"reasoning-end","id":"reasoning-0"}
			`+second+`
			END
			{"type":"reasoning-end","id":"reasoning-1"}`), told(t, 0, piece, &eventlog.StepEnd{Base: of(root)}, whole))
	})
}
