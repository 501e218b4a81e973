package anthropic_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/anthropic"
	"github.com/helixd/helixd/agentloop/model/modeltest"
	"github.com/helixd/helixd/eventlog/fact"
)

// sent makes a call and returns the request that the server got.
func sent(t *testing.T, opts anthropic.Options, req model.Request) modeltest.Request {
	t.Helper()
	s := modeltest.Serve(t, modeltest.Events(answer("end_turn")...))
	opts.BaseURL, opts.HTTPClient = s.URL, s.Client()
	modeltest.Ask(t, anthropic.New("some-model", &opts), req)
	return s.Requests()[0]
}

func call(id, name, arguments string) fact.TurnPart {
	return fact.TurnPart{ToolCall: &fact.ToolCall{ID: id, Name: name, Arguments: json.RawMessage(arguments)}}
}

func TestRequestBody(t *testing.T) {
	temperature := 0.0
	raw := func(s string) json.RawMessage { return json.RawMessage(s) }
	got := sent(t, anthropic.Options{APIKey: "sk-ant-test", MaxOutputTokens: 77, Temperature: &temperature}, model.Request{
		System: "be brief",
		Messages: []model.Message{
			{Role: model.RoleUser, Content: "look", Files: []fact.MessageFile{
				{Data: "data:image/png;base64,AA==", MediaType: "image/png"},
				{Data: "data:application/pdf;base64,BB==", MediaType: "application/pdf", Filename: "a.pdf"},
				{Data: "data:text/csv;base64,YSxi", MediaType: "text/csv", Filename: "a.csv"},
				{Data: "https://example.com/a.jpg", MediaType: "image/jpeg"},
				{Data: "https://example.com/b.pdf", MediaType: "application/pdf"},
			}},
			{Role: model.RoleAssistant, Parts: []fact.TurnPart{
				{Reasoning: "hm", ProviderData: raw(`{"provider":"anthropic","signature":"s+1=="}`)},
				{ProviderData: raw(`{"provider":"anthropic","redacted":"r+1"}`)},
				{Reasoning: "of another", ProviderData: raw(`{"provider":"openai-responses","signature":"x","redacted":"x"}`)},
				{Reasoning: "unsigned"},
				{Text: " \n"},
				{Text: "I look <b>."},
				{Source: &fact.Source{ID: "s", URL: "https://example.com"}},
				{File: &fact.MessageFile{Data: "data:image/png;base64,AA==", MediaType: "image/png"}},
				{ProviderData: raw(`{"provider":"anthropic","signature":"withheld"}`)},
				call("toolu_a", "f", `{"x": 1, "b": "<"}`),
				call("functions.f:1", "no.such tool", `"{\"x\": tru"`), // what was not JSON
				call("toolu_c", "f", `""`),
				call("toolu_d", "f", `[1]`),
			}},
			{Role: model.RoleTool, Content: "1", ToolCallID: "toolu_a", ToolName: "f"},
			{Role: model.RoleTool, Content: "Error: no", ToolCallID: "functions.f:1", ToolName: "no.such tool", Failed: true},
			{Role: model.RoleTool, Content: "", ToolCallID: "toolu_c", ToolName: "f"},
			{Role: model.RoleTool, Content: "4", ToolCallID: "toolu_d", ToolName: "f"},
			{Role: model.RoleUser, Content: "and?"},
			{Role: model.RoleAssistant}, // a refusal
			{Role: model.RoleUser, Content: " "},
			{Role: model.RoleUser, Content: "please"},
			{Role: model.RoleAssistant, Parts: []fact.TurnPart{
				{Text: "We"}, {Text: "ll,"},
				{Reasoning: "cut off", ProviderData: raw(`{"provider":"anthropic","signature":"s2"}`)},
			}},
			{Role: model.RoleUser, Content: "go on"},
		},
		Tools: []model.ToolSpec{
			{Name: "f", Description: "does f", InputSchema: raw(`{"type":"object","properties":{"z":{},"a":{}}}`)},
			{Name: "g"},
		},
	})
	require.Equal(t, "sk-ant-test", got.Header.Get("X-Api-Key"))
	require.Equal(t, "2023-06-01", got.Header.Get("Anthropic-Version"))
	require.Empty(t, got.Header.Get("Authorization"))
	require.JSONEq(t, `{
		"model": "some-model",
		"stream": true,
		"max_tokens": 77,
		"temperature": 0,
		"system": [{"type": "text", "text": "be brief"}],
		"messages": [
			{"role": "user", "content": [
				{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}},
				{"type": "document", "title": "a.pdf", "source": {"type": "base64", "media_type": "application/pdf", "data": "BB=="}},
				{"type": "document", "title": "a.csv", "source": {"type": "text", "media_type": "text/plain", "data": "a,b"}},
				{"type": "image", "source": {"type": "url", "url": "https://example.com/a.jpg"}},
				{"type": "document", "source": {"type": "url", "url": "https://example.com/b.pdf"}},
				{"type": "text", "text": "look"}
			]},
			{"role": "assistant", "content": [
				{"type": "thinking", "thinking": "hm", "signature": "s+1=="},
				{"type": "redacted_thinking", "data": "r+1"},
				{"type": "text", "text": "I look <b>."},
				{"type": "thinking", "thinking": "", "signature": "withheld"},
				{"type": "tool_use", "id": "toolu_a", "name": "f", "input": {"x": 1, "b": "<"}},
				{"type": "tool_use", "id": "call_d029b1d6167f9b6ebb0bc7a2883d642d", "name": "no_such_tool", "input": {"input": "{\"x\": tru"}},
				{"type": "tool_use", "id": "toolu_c", "name": "f", "input": {}},
				{"type": "tool_use", "id": "toolu_d", "name": "f", "input": {"input": "[1]"}}
			]},
			{"role": "user", "content": [
				{"type": "tool_result", "tool_use_id": "toolu_a", "content": [{"type": "text", "text": "1"}]},
				{"type": "tool_result", "tool_use_id": "call_d029b1d6167f9b6ebb0bc7a2883d642d", "is_error": true, "content": [{"type": "text", "text": "Error: no"}]},
				{"type": "tool_result", "tool_use_id": "toolu_c"},
				{"type": "tool_result", "tool_use_id": "toolu_d", "content": [{"type": "text", "text": "4"}]},
				{"type": "text", "text": "and?"},
				{"type": "text", "text": "please"}
			]},
			{"role": "assistant", "content": [{"type": "text", "text": "We"}, {"type": "text", "text": "ll,"}]},
			{"role": "user", "content": [{"type": "text", "text": "go on"}]}
		],
		"tools": [
			{"name": "f", "description": "does f", "input_schema": {"type": "object", "properties": {"z": {}, "a": {}}}},
			{"name": "g", "input_schema": {"type": "object", "properties": {}}}
		]
	}`, string(got.Body))
	require.Contains(t, string(got.Body), `{"z":{},"a":{}}`, "the schema's order is kept")
}

func TestSmallestRequest(t *testing.T) {
	got := sent(t, anthropic.Options{}, modeltest.Hello())
	require.JSONEq(t, `{
		"model": "some-model", "stream": true, "max_tokens": 8192,
		"messages": [{"role": "user", "content": [{"type": "text", "text": "hello"}]}]
	}`, string(got.Body))
}

func TestHowMuchItThinks(t *testing.T) {
	body := func(opts anthropic.Options) (fields struct {
		MaxTokens    int64 `json:"max_tokens"`
		Thinking     json.RawMessage
		OutputConfig json.RawMessage `json:"output_config"`
	}) {
		require.NoError(t, json.Unmarshal(sent(t, opts, modeltest.Hello()).Body, &fields))
		return fields
	}
	got := body(anthropic.Options{Effort: "high"})
	require.JSONEq(t, `{"type":"adaptive","display":"summarized"}`, string(got.Thinking))
	require.JSONEq(t, `{"effort":"high"}`, string(got.OutputConfig))

	got = body(anthropic.Options{ThinkingTokens: 2000})
	require.JSONEq(t, `{"type":"enabled","budget_tokens":2000}`, string(got.Thinking))
	require.Empty(t, got.OutputConfig)
	require.EqualValues(t, 10192, got.MaxTokens, "the answer's share stays")

	got = body(anthropic.Options{ThinkingTokens: 2000, MaxOutputTokens: 3000})
	require.EqualValues(t, 3000, got.MaxTokens)
}

func TestFilesThatCannotBeSent(t *testing.T) {
	s := modeltest.Serve(t, modeltest.Events(answer("end_turn")...))
	for _, f := range []fact.MessageFile{
		{Data: "data:audio/mpeg;base64,AA==", MediaType: "audio/mpeg", Filename: "a.mp3"},
		{Data: "https://example.com/a.txt", MediaType: "text/plain"},
		{Data: "data:text/plain;base64,/w==", MediaType: "text/plain"},
		{Data: "nothing", MediaType: "image/png"},
	} {
		req := model.Request{Messages: []model.Message{{Role: model.RoleUser, Files: []fact.MessageFile{f}}}}
		e, _ := modeltest.AskFor(t, modelOn(s), req)
		require.Equal(t, model.CodeInvalidRequest, e.Code)
		require.False(t, e.Retryable)
	}
	require.Empty(t, s.Requests())
}
