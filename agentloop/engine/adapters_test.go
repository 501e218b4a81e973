package engine_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/model/anthropic"
	"github.com/helixd/helixd/agentloop/model/modeltest"
	"github.com/helixd/helixd/agentloop/model/openairesponses"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/projector"
)

// thinks is an answer of the Messages API: signed thinking, redacted thinking,
// text, a call.
func thinks() modeltest.Stream {
	return modeltest.Events(
		`{"type":"message_start","message":{"model":"claude","content":[],"usage":{"input_tokens":3,"output_tokens":1}}}`,
		`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"I must add."}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"sig+/=="}}`,
		`{"type":"content_block_stop","index":0}`,
		`{"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"red+/=="}}`,
		`{"type":"content_block_stop","index":1}`,
		`{"type":"content_block_start","index":2,"content_block":{"type":"text","text":"I add."}}`,
		`{"type":"content_block_stop","index":2}`,
		`{"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"toolu_1","name":"add","input":{}}}`,
		`{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"{\"by\": 2}"}}`,
		`{"type":"content_block_stop","index":3}`,
		`{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":9}}`,
		`{"type":"message_stop"}`,
	)
}

func says(text string) modeltest.Stream {
	return modeltest.Events(
		`{"type":"message_start","message":{"model":"claude","content":[],"usage":{"input_tokens":3,"output_tokens":1}}}`,
		`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"`+text+`"}}`,
		`{"type":"content_block_stop","index":0}`,
		`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":9}}`,
		`{"type":"message_stop"}`,
	)
}

func claude(s *modeltest.Server) agentloop.Agent {
	return agentloop.Agent{
		Name: "a", Tools: []agentloop.Tool{addTool()},
		Model: anthropic.New("claude", &anthropic.Options{BaseURL: s.URL, HTTPClient: s.Client()}),
	}
}

func gpt(s *modeltest.Server) agentloop.Agent {
	return agentloop.Agent{
		Name: "a", Tools: []agentloop.Tool{addTool()},
		Model: openairesponses.New("gpt-5", &openairesponses.Options{BaseURL: s.URL + "/v1", HTTPClient: s.Client()}),
	}
}

// sentIn is the value of a key in the n-th request that a server got.
func sentIn(t *testing.T, s *modeltest.Server, n int, key string) string {
	t.Helper()
	require.Greater(t, len(s.Requests()), n)
	var body map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(s.Requests()[n].Body, &body))
	return string(body[key])
}

// calculator is the tool of a recorded conversation.
func calculator() agentloop.Tool {
	type in struct {
		A  int    `json:"a"`
		B  int    `json:"b"`
		Op string `json:"op"`
	}
	return agentloop.NewTool("calculator", "Calculates.", func(_ context.Context, _ *agentloop.Call, in in) (int, error) {
		if in.Op == "add" {
			return in.A + in.B, nil
		}
		return in.A * in.B, nil
	})
}

func TestThinkingGoesBackSigned(t *testing.T) {
	s := modeltest.Serve(t, thinks(), says("2 it is."))
	log := memory.New()
	g := newRigOn(t, log, claude(s))
	g.start("s", "a", "Add 2.")
	state := g.ended("s")
	require.Equal(t, projector.SessionCompleted, state.Status)
	require.JSONEq(t, `{"count":2}`, state.CustomState.String())
	require.Equal(t, []fact.TurnPart{
		{Reasoning: "I must add.", ProviderData: json.RawMessage(`{"provider":"anthropic","signature":"sig+/=="}`)},
		{ProviderData: json.RawMessage(`{"provider":"anthropic","redacted":"red+/=="}`)},
		{Text: "I add."},
		{ToolCall: &fact.ToolCall{ID: "toolu_1", Name: "add", Arguments: json.RawMessage(`{"by":2}`)}},
	}, state.Messages[1].Parts)
	require.Equal(t, []string{
		"[session_created]", "[user_message]", "[run_requested]", "[run_claimed]",
		"step_start", "thinking", "thinking", "text_delta", "tool_arg_stream_start", "tool_arg_stream_delta", "tool_arg_stream_end",
		"[model_turn]",
	}, g.types("s")[:12], "what is opaque is no chunk")

	require.Len(t, s.Requests(), 2)
	require.JSONEq(t, `[
		{"role": "user", "content": [{"type": "text", "text": "Add 2."}]},
		{"role": "assistant", "content": [
			{"type": "thinking", "thinking": "I must add.", "signature": "sig+/=="},
			{"type": "redacted_thinking", "data": "red+/=="},
			{"type": "text", "text": "I add."},
			{"type": "tool_use", "id": "toolu_1", "name": "add", "input": {"by": 2}}
		]},
		{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": "2"}]}]}
	]`, sentIn(t, s, 1, "messages"))

	// Another provider continues with the conversation, and gets none of it.
	other := modeltest.Serve(t, modeltest.Events(
		`{"type":"response.output_text.delta","output_index":0,"delta":"Welcome."}`,
		`{"type":"response.completed","response":{"model":"gpt-5"}}`))
	g = newRigOn(t, log, gpt(other))
	h, err := g.loop.Execute(t.Context(), engine.StartRequest{
		SessionID: "s", AgentType: "a", Messages: []agentloop.Input{{Content: "Thanks."}},
	})
	require.NoError(t, err)
	_, err = h.Result(t.Context())
	require.NoError(t, err)
	require.JSONEq(t, `[
		{"role": "user", "content": [{"type": "input_text", "text": "Add 2."}]},
		{"role": "assistant", "content": "I add."},
		{"type": "function_call", "call_id": "toolu_1", "name": "add", "arguments": "{\"by\":2}"},
		{"type": "function_call_output", "call_id": "toolu_1", "output": "2"},
		{"role": "assistant", "content": "2 it is."},
		{"role": "user", "content": [{"type": "input_text", "text": "Thanks."}]}
	]`, sentIn(t, other, 0, "input"))
}

func TestEncryptedReasoningGoesBack(t *testing.T) {
	s := modeltest.Serve(t,
		modeltest.Events(
			`{"type":"response.created","response":{"model":"gpt-5"}}`,
			`{"type":"response.output_item.added","output_index":0,"item":{"type":"reasoning","id":"rs_1","summary":[]}}`,
			`{"type":"response.reasoning_summary_part.added","output_index":0,"summary_index":0}`,
			`{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":0,"delta":"I must"}`,
			`{"type":"response.reasoning_summary_part.added","output_index":0,"summary_index":1}`,
			`{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":1,"delta":"add."}`,
			`{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","id":"rs_1","encrypted_content":"gAAA","summary":[]}}`,
			`{"type":"response.output_item.done","output_index":1,"item":{"type":"function_call","call_id":"call_1","name":"add","arguments":"{\"by\":2}"}}`,
			`{"type":"response.completed","response":{"model":"gpt-5"}}`),
		modeltest.Events(
			`{"type":"response.output_text.delta","output_index":0,"delta":"2 it is."}`,
			`{"type":"response.completed","response":{"model":"gpt-5"}}`))
	g := newRig(t, gpt(s))
	g.start("s", "a", "Add 2.")
	state := g.ended("s")
	require.Equal(t, []fact.TurnPart{
		{Reasoning: "I must"},
		{Reasoning: "add.", ProviderData: json.RawMessage(`{"provider":"openai-responses","itemId":"rs_1","encrypted":"gAAA"}`)},
		{ToolCall: &fact.ToolCall{ID: "call_1", Name: "add", Arguments: json.RawMessage(`{"by":2}`)}},
	}, state.Messages[1].Parts)
	require.JSONEq(t, `[
		{"role": "user", "content": [{"type": "input_text", "text": "Add 2."}]},
		{"type": "reasoning", "id": "rs_1", "encrypted_content": "gAAA", "summary": [
			{"type": "summary_text", "text": "I must"}, {"type": "summary_text", "text": "add."}
		]},
		{"type": "function_call", "call_id": "call_1", "name": "add", "arguments": "{\"by\":2}"},
		{"type": "function_call_output", "call_id": "call_1", "output": "2"}
	]`, sentIn(t, s, 1, "input"))
}

func TestRecordedConversationOfFourAnswers(t *testing.T) {
	s := modeltest.Serve(t, modeltest.Fixture(t, "openai-reasoning-encrypted-content.1").Split("response.created")...)
	a := gpt(s)
	a.Tools = []agentloop.Tool{calculator()}
	g := newRig(t, a)
	g.start("s", "a", "Calculate.")
	state := g.ended("s")
	require.Equal(t, projector.SessionCompleted, state.Status)
	require.JSONEq(t, `"The final result is **570**."`, string(state.Output))
	require.Len(t, s.Requests(), 4)
	for n := 1; n < 4; n++ { // in each of them, in its place
		var items []struct {
			Type      string
			Encrypted string `json:"encrypted_content"`
		}
		require.NoError(t, json.Unmarshal([]byte(sentIn(t, s, n, "input")), &items))
		require.Equal(t, "reasoning", items[1].Type)
		require.NotEmpty(t, items[1].Encrypted)
		require.Equal(t, "function_call", items[2].Type)
	}
}

func TestSourcesAndFilesAreChunksAndParts(t *testing.T) {
	s := modeltest.Serve(t, modeltest.Events(
		`{"type":"response.output_text.delta","output_index":0,"delta":"Green."}`,
		`{"type":"response.output_item.done","output_index":0,"item":{"type":"message","content":[{"type":"output_text","text":"Green.","annotations":[`+
			`{"type":"url_citation","url":"https://example.com/g","title":"Grass"},{"type":"url_citation","url":"https://example.com/h","title":""},`+
			`{"type":"file_citation","file_id":"f","filename":"g.txt"}]}]}}`,
		`{"type":"response.output_item.done","output_index":1,"item":{"type":"image_generation_call","id":"ig_1","result":"iVBO"}}`,
		`{"type":"response.completed","response":{"model":"gpt-5"}}`))
	g := newRig(t, gpt(s))
	g.start("s", "a", "Which colour has grass?")
	state := g.ended("s")
	data := json.RawMessage(`{"provider":"openai-responses","itemId":"ig_1"}`)
	require.Equal(t, []fact.TurnPart{
		{Text: "Green."},
		{Source: &fact.Source{ID: "source_1_1", URL: "https://example.com/g", Title: "Grass"}},
		{Source: &fact.Source{ID: "source_1_2", URL: "https://example.com/h"}},
		{Source: &fact.Source{ID: "source_1_3", MediaType: "text/plain", Title: "g.txt", Filename: "g.txt"}},
		{File: &fact.MessageFile{Data: "data:image/png;base64,iVBO", MediaType: "image/png"}, ProviderData: data},
	}, state.Messages[1].Parts)
	require.Equal(t, "Green.", state.Messages[1].Content)

	var chunks []eventlog.Chunk
	for r, err := range eventlog.Effective(t.Context(), g.log, "s", 0, 0) {
		require.NoError(t, err)
		switch r.Type {
		case "source_url", "source_document", "file":
			c, err := r.Chunk()
			require.NoError(t, err)
			chunks = append(chunks, c)
		}
	}
	require.Len(t, chunks, 4)
	base := eventlog.BaseOf(chunks[0])
	require.Equal(t, 1, base.Step)
	require.Equal(t, &eventlog.SourceURL{SourceID: "source_1_1", URL: "https://example.com/g", Title: new("Grass"), Base: base}, chunks[0])
	base = eventlog.BaseOf(chunks[1])
	require.Equal(t, &eventlog.SourceURL{SourceID: "source_1_2", URL: "https://example.com/h", Base: base}, chunks[1])
	base = eventlog.BaseOf(chunks[2])
	require.Equal(t, &eventlog.SourceDocument{
		SourceID: "source_1_3", MediaType: "text/plain", Title: "g.txt", Filename: new("g.txt"), Base: base,
	}, chunks[2])
	base = eventlog.BaseOf(chunks[3])
	require.Equal(t, &eventlog.File{URL: "data:image/png;base64,iVBO", MediaType: "image/png", Base: base}, chunks[3])
}
