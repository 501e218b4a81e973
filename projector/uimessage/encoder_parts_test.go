package uimessage_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector/uimessage"
)

func base() eventlog.Base { return eventlog.Base{AgentID: "s", AgentType: "a", Timestamp: 1, Step: 1} }

func of(agent string) eventlog.Base {
	b := base()
	b.AgentID = agent
	return b
}

// told returns the parts of some chunks, those of the root under the session s.
func told(t *testing.T, o uimessage.EncoderOptions, chunks ...eventlog.Chunk) string {
	t.Helper()
	o.Root = "s"
	e := uimessage.NewEncoder(o)
	var all []string
	for i, c := range chunks {
		entry, err := eventlog.NewChunk(c, eventlog.Labels{Run: "r"})
		require.NoError(t, err)
		for _, f := range e.Encode(eventlog.Record{Sequence: uint64(i + 1), Entry: entry}) {
			all = append(all, string(f))
		}
	}
	return "[" + strings.Join(all, ",") + "]"
}

func ptr[T any](v T) *T { return &v }

func TestPartsOfChunks(t *testing.T) {
	raw := func(s string) json.RawMessage { return json.RawMessage(s) }
	start := &eventlog.ToolStart{ToolCallID: "c", ToolName: "look", Arguments: raw(`{"a":1}`), Base: base()}
	const shown = `{"type":"tool-input-start","toolCallId":"c","toolName":"look"},
		{"type":"tool-input-available","toolCallId":"c","toolName":"look","input":{"a":1},"providerExecuted":true}`
	for name, c := range map[string]struct {
		chunks []eventlog.Chunk
		want   string
	}{
		"a tool's result": {[]eventlog.Chunk{start, &eventlog.ToolEnd{
			ToolCallID: "c", ToolName: "look", Result: raw(`null`), ProviderExecuted: ptr(true), Base: base(),
		}}, `[` + shown + `,{"type":"tool-output-available","toolCallId":"c","output":null,"providerExecuted":true}]`},
		"a failure is sent once": {[]eventlog.Chunk{start,
			&eventlog.ToolOutputError{ToolCallID: "c", ToolName: "look", Error: "no", Base: base()},
			&eventlog.ToolEnd{ToolCallID: "c", ToolName: "look", Result: raw(`null`), Error: ptr("no"), Base: base()},
		}, `[` + shown + `,{"type":"tool-output-error","toolCallId":"c","errorText":"no","providerExecuted":true}]`},
		"a result of a call that the message has not": {[]eventlog.Chunk{&eventlog.ToolEnd{
			ToolCallID: "old", ToolName: "look", Result: raw(`1`), Base: base(),
		}}, `[]`},
		"input that can't be used": {[]eventlog.Chunk{&eventlog.ToolInputError{
			ToolCallID: "c", ToolName: "look", Error: "bad", Base: base(),
		}}, `[{"type":"tool-input-error","toolCallId":"c","toolName":"look","input":{},"errorText":"bad","providerExecuted":true}]`},
		"reasoning that comes whole": {[]eventlog.Chunk{
			&eventlog.Thinking{Content: "hm", IsComplete: true, Base: base()}, &eventlog.TextDelta{Delta: "<a>", Base: base()},
		}, `[{"type":"reasoning-start","id":"reasoning-0"},{"type":"reasoning-delta","id":"reasoning-0","delta":"hm"},
			{"type":"reasoning-end","id":"reasoning-0"},{"type":"text-start","id":"text-0"},
			{"type":"text-delta","id":"text-0","delta":"<a>"}]`},
		"sources and files": {[]eventlog.Chunk{
			&eventlog.SourceURL{SourceID: "1", URL: "https://a.example", Base: base()},
			&eventlog.SourceDocument{SourceID: "2", MediaType: "text/plain", Title: "B", Filename: ptr("b"), Base: base()},
			&eventlog.File{URL: "data:,x", MediaType: "text/plain", Filename: ptr("x"), Base: base()},
		}, `[{"type":"source-url","sourceId":"1","url":"https://a.example"},
			{"type":"source-document","sourceId":"2","mediaType":"text/plain","title":"B","filename":"b"},
			{"type":"file","url":"data:,x","mediaType":"text/plain"}]`},
		"state, errors": {[]eventlog.Chunk{
			&eventlog.StatePatch{Patches: []eventlog.PatchOp{{Op: "add", Path: "/a", Value: raw(`1`)}}, Base: base()},
			&eventlog.Error{Error: "fatal", Base: base()},
		}, `[{"type":"data-state-patch","transient":true,"data":{"patches":[{"op":"add","path":"/a","value":1}]}},
			{"type":"error","errorText":"fatal"}]`},
		"a step that is discarded": {[]eventlog.Chunk{
			&eventlog.StepStart{StepID: ptr("st"), Base: base()}, &eventlog.TextDelta{Delta: "a", Base: base()},
			&eventlog.StepDiscarded{RunID: "r", StepID: "st", Reason: eventlog.DiscardFailure, Base: base()},
			&eventlog.Error{Error: "fatal", Base: base()},
		}, `[{"type":"start-step"},{"type":"text-start","id":"text-0"},{"type":"text-delta","id":"text-0","delta":"a"},
			{"type":"text-end","id":"text-0"},{"type":"finish-step"},{"type":"error","errorText":"fatal"}]`},
		"what is not for these clients": {[]eventlog.Chunk{
			&eventlog.CheckpointCreated{RunID: "r", CheckpointID: "cp", StepCount: 1, Base: base()},
			&eventlog.StepCommitted{RunID: "r", StepID: "st", CheckpointID: "cp", Base: base()},
			&eventlog.StepDiscarded{RunID: "r", StepID: "st", Reason: eventlog.DiscardCrash, Base: base()},
		}, `[]`},
		"custom events": {[]eventlog.Chunk{
			&eventlog.CustomEvent{EventName: "progress", Data: raw(`{"id":"p","n":1}`), Base: base()},
			&eventlog.CustomEvent{EventName: "progress", Data: raw(`{"transient":true,"n":1}`), Base: base()},
			&eventlog.CustomEvent{EventName: "output", Data: raw(`7`), Base: base()},
			&eventlog.CustomEvent{EventName: "My Event", Data: raw(`{"id":"p"}`), Base: base()},
		}, `[{"type":"data-progress","id":"p","data":{"n":1}},{"type":"data-progress","transient":true,"data":{"n":1}},
			{"type":"data-custom","data":{"eventName":"output","data":7}},
			{"type":"data-custom","data":{"eventName":"My Event","data":{"id":"p"}}}]`},
		"a sub-agent's text": {[]eventlog.Chunk{&eventlog.TextDelta{Delta: "x", Base: of("child")}},
			`[{"type":"data-subagent-chunk","transient":true,"data":{"subSessionId":"child","agentType":"a",
				"chunk":{"type":"text_delta","delta":"x","agentId":"child","agentType":"a","timestamp":1,"step":1}}}]`},
		"an approval": {[]eventlog.Chunk{
			&eventlog.ToolApprovalRequest{ToolCallID: "c", ToolName: "pay", ApprovalID: "r::c", Input: raw(`{}`), Base: base()},
			&eventlog.ToolApprovalResponse{ToolCallID: "c", ToolName: "pay", ApprovalID: "r::c", Base: base()},
			&eventlog.ToolEnd{ToolCallID: "c", ToolName: "pay", Result: raw(`null`), Error: ptr("denied"), Base: base()},
		}, `[{"type":"tool-input-start","toolCallId":"c","toolName":"pay"},
			{"type":"tool-input-available","toolCallId":"c","toolName":"pay","input":{}},
			{"type":"tool-approval-request","approvalId":"r::c","toolCallId":"c"},{"type":"tool-output-denied","toolCallId":"c"}]`},
		"keys that kill a client's stream": {[]eventlog.Chunk{start, &eventlog.ToolEnd{
			ToolCallID: "c", ToolName: "look", ProviderExecuted: ptr(true), Base: base(),
			Result: raw(`[{"__proto__":{"x":1},"big":12345678901234567890},{"constructor":{"prototype":1}},{"constructor":"kept"},{"\u005f_proto__":1}]`),
		}}, `[` + shown + `,{"type":"tool-output-available","toolCallId":"c","providerExecuted":true,
			"output":[{"big":12345678901234567890},{},{"constructor":"kept"},{}]}]`},
	} {
		t.Run(name, func(t *testing.T) {
			require.JSONEq(t, c.want, told(t, uimessage.EncoderOptions{}, c.chunks...))
		})
	}
}

func TestOptionsOfAnEncoder(t *testing.T) {
	checkpoint := &eventlog.CheckpointCreated{RunID: "r", CheckpointID: "cp", StepCount: 1, Base: base()}
	require.Contains(t, told(t, uimessage.EncoderOptions{Checkpoints: true}, checkpoint), `{"type":"data-checkpoint-created"`)

	o := uimessage.EncoderOptions{
		MessageID: "m", StartMetadata: json.RawMessage(`{"a":1}`), FinishMetadata: json.RawMessage(`{"b":2}`),
	}
	e := uimessage.NewEncoder(o)
	require.JSONEq(t, `{"type":"start","messageId":"m","messageMetadata":{"a":1}}`, string(e.Start()))
	end := e.End(uimessage.Ending{Outcome: uimessage.Completed})
	require.JSONEq(t, `{"type":"finish","finishReason":"stop","messageMetadata":{"b":2}}`, string(end[0]))
	o.Loose = true
	end = uimessage.NewEncoder(o).End(uimessage.Ending{Outcome: uimessage.Waiting})
	require.JSONEq(t, `{"type":"finish","finishReason":"tool-calls","messageMetadata":{"b":2},"messageId":"m"}`, string(end[0]))
}

func TestEndings(t *testing.T) {
	for outcome, want := range map[uimessage.Outcome]string{
		uimessage.Completed:   `[{"type":"finish","finishReason":"stop"}]`,
		uimessage.Waiting:     `[{"type":"finish","finishReason":"tool-calls"}]`,
		uimessage.Failed:      `[{"type":"error","errorText":"why"},{"type":"finish","finishReason":"error"}]`,
		uimessage.Interrupted: `[{"type":"abort"}]`,
		uimessage.Aborted:     `[{"type":"abort"}]`,
	} {
		var parts []string
		for _, f := range uimessage.NewEncoder(uimessage.EncoderOptions{}).End(uimessage.Ending{Outcome: outcome, Error: "why"}) {
			parts = append(parts, string(f))
		}
		require.JSONEq(t, want, "["+strings.Join(parts, ",")+"]", outcome)
	}
}
