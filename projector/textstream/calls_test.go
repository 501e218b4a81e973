package textstream_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
)

// turn is a model's turn with a call.
func turn(id, args string) *fact.ModelTurn {
	return &fact.ModelTurn{
		RunID: "r", StepID: "1", Step: 1, StopReason: fact.StopToolUse,
		Parts: []fact.TurnPart{{Text: "x"}, {ToolCall: &fact.ToolCall{ID: id, Name: "look", Arguments: raw(args)}}},
	}
}

func TestACallThatNeverBeganIsShownWithItsResult(t *testing.T) {
	aborted := &eventlog.ToolEnd{ToolCallID: "c", ToolName: "look", Result: raw("null"), Error: new("aborted"), Base: of(root)}
	require.Equal(t, script(`
		{"type":"tool-call","toolCallId":"c","toolName":"look","input":{"at":1}}
		{"type":"tool-result","toolCallId":"c","toolName":"look","output":{"error":"aborted"}}`),
		told(t, 0, turn("c", `{"at":1}`), aborted))
	require.Equal(t, script(`
		{"type":"tool-call","toolCallId":"c","toolName":"look","input":{}}
		{"type":"tool-result","toolCallId":"c","toolName":"look","output":{"error":"aborted"}}`),
		told(t, 0, turn("c", `"{at"`), aborted), "what is no object is none")
	require.Equal(t, script(`
		{"type":"tool-result","toolCallId":"c","toolName":"look","output":{"error":"aborted"}}`),
		told(t, 0, aborted), "the call is of an earlier message")
}

func TestARefusedCallIsShownAsTheModelMadeIt(t *testing.T) {
	require.Equal(t, script(`
		{"type":"tool-call","toolCallId":"c","toolName":"look","input":{"at":1}}
		{"type":"tool-result","toolCallId":"c","toolName":"look","output":{"error":"there is no such tool"}}`),
		told(t, 0, turn("c", `{"at":1}`),
			&eventlog.ToolInputError{ToolCallID: "c", ToolName: "look", Error: "there is no such tool", Base: of(root)}))
}

func TestAResultMayBeNullOrMissing(t *testing.T) {
	require.Equal(t, `{"type":"tool-result","toolCallId":"c","toolName":"look","output":null}`,
		told(t, 0, &eventlog.ToolEnd{ToolCallID: "c", ToolName: "look", Result: raw("null"), Base: of(root)}))
	absent := eventlog.Record{Entry: eventlog.Entry{
		Envelope: eventlog.Envelope{Kind: eventlog.KindChunk, Type: "tool_end", Agent: root},
		Payload:  []byte(`{"type":"tool_end","toolCallId":"c","toolName":"look"}`),
	}}
	require.Equal(t, `{"type":"tool-result","toolCallId":"c","toolName":"look"}`, told(t, 0, absent))
}

func TestInputsStreamSideBySide(t *testing.T) {
	start := func(id string) any {
		return &eventlog.ToolArgStreamStart{ToolCallID: id, ToolName: "t", Base: of(root)}
	}
	delta := func(id, text string) any {
		return &eventlog.ToolArgStreamDelta{ToolCallID: id, Delta: text, Base: of(root)}
	}
	end := func(id string) any { return &eventlog.ToolArgStreamEnd{ToolCallID: id, Base: of(root)} }
	require.Equal(t, script(`
		{"type":"tool-input-start","id":"c","toolName":"t"}
		{"type":"tool-input-start","id":"d","toolName":"t"}
		{"type":"tool-input-delta","id":"d","delta":"1"}
		{"type":"tool-input-delta","id":"c","delta":"2"}
		{"type":"tool-input-end","id":"c"}
		{"type":"tool-input-end","id":"d"}
		{"type":"tool-input-start","id":"d","toolName":"t"}
		END
		{"type":"tool-input-end","id":"d"}`),
		told(t, 0, start("c"), start("d"), delta("d", "1"), delta("c", "2"), end("c"), start("d")))
}
