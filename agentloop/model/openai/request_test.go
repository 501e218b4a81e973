package openai_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/modeltest"
	"github.com/helixd/helixd/agentloop/model/openai"
	"github.com/helixd/helixd/eventlog/fact"
)

// sent makes a call and returns the request that the server got.
func sent(t *testing.T, s *modeltest.Server, opts *openai.Options, req model.Request) modeltest.Request {
	t.Helper()
	_, err := openai.New("some-model", opts).Generate(t.Context(), req, func(model.Event) error { return nil })
	require.NoError(t, err)
	requests := s.Requests()
	return requests[len(requests)-1]
}

func TestRequestBody(t *testing.T) {
	s := modeltest.Serve(t, deltas(`"stop"`))
	opts := options(s)
	opts.MaxOutputTokens = 77
	temperature := 0.0
	opts.Temperature = &temperature
	opts.Effort = "low"
	got := sent(t, s, opts, model.Request{
		System: "be brief",
		Messages: []model.Message{
			{Role: model.RoleUser, Content: "look", Files: []fact.MessageFile{
				{Data: "data:image/png;base64,AA==", MediaType: "image/png"},
				{Data: "data:application/pdf;base64,BB==", MediaType: "application/pdf", Filename: "a.pdf"},
				{Data: "data:text/csv;base64,CC==", MediaType: "text/csv"},
			}},
			{Role: model.RoleAssistant, Parts: []fact.TurnPart{
				{Reasoning: "hm", ProviderData: json.RawMessage(`{"provider":"another"}`)},
				{ToolCall: &fact.ToolCall{ID: "a", Name: "f", Arguments: json.RawMessage(`{"x": 1}`)}},
				{ToolCall: &fact.ToolCall{ID: "b", Name: "f", Arguments: json.RawMessage(`"{\"x\": tru"`)}}, // what was not JSON
				{ToolCall: &fact.ToolCall{ID: "c", Name: "f", Arguments: json.RawMessage(`""`)}},
			}},
			{Role: model.RoleTool, Content: "1", ToolCallID: "a", ToolName: "f"},
			{Role: model.RoleTool, Content: "2", ToolCallID: "b", ToolName: "f"},
			{Role: model.RoleTool, Content: "", ToolCallID: "c", ToolName: "f"},
			{Role: model.RoleAssistant, Parts: []fact.TurnPart{{Text: "do"}, {Source: &fact.Source{ID: "s"}}, {Text: "ne"}}},
			{Role: model.RoleAssistant},
			{Role: model.RoleUser, Content: "thanks <b>"},
		},
		Tools: []model.ToolSpec{
			{Name: "f", Description: "does f", InputSchema: json.RawMessage(`{"type":"object","properties":{"z":{},"a":{}}}`)},
			{Name: "g"},
		},
	})
	require.Equal(t, "/v1/chat/completions", got.Path)
	require.Equal(t, "Bearer "+testKey, got.Header.Get("Authorization"))
	require.JSONEq(t, `{
		"model": "some-model",
		"stream": true,
		"stream_options": {"include_usage": true},
		"max_tokens": 77,
		"temperature": 0,
		"reasoning_effort": "low",
		"messages": [
			{"role": "system", "content": "be brief"},
			{"role": "user", "content": [
				{"type": "text", "text": "look"},
				{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}},
				{"type": "file", "file": {"file_data": "data:application/pdf;base64,BB==", "filename": "a.pdf"}},
				{"type": "file", "file": {"file_data": "data:text/csv;base64,CC==", "filename": "file"}}
			]},
			{"role": "assistant", "tool_calls": [
				{"id": "a", "type": "function", "function": {"name": "f", "arguments": "{\"x\": 1}"}},
				{"id": "b", "type": "function", "function": {"name": "f", "arguments": "{\"x\": tru"}},
				{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
			]},
			{"role": "tool", "tool_call_id": "a", "content": "1"},
			{"role": "tool", "tool_call_id": "b", "content": "2"},
			{"role": "tool", "tool_call_id": "c", "content": ""},
			{"role": "assistant", "content": "done"},
			{"role": "assistant", "content": ""},
			{"role": "user", "content": "thanks <b>"}
		],
		"tools": [
			{"type": "function", "function": {"name": "f", "description": "does f", "parameters": {"type": "object", "properties": {"z": {}, "a": {}}}}},
			{"type": "function", "function": {"name": "g"}}
		]
	}`, string(got.Body))
	require.Contains(t, string(got.Body), `{"z":{},"a":{}}`, "the schema's order is kept")
}

func TestSmallestRequest(t *testing.T) {
	s := modeltest.Serve(t, deltas(`"stop"`))
	got := sent(t, s, &openai.Options{BaseURL: s.URL + "/v1/", HTTPClient: s.Client()}, hello())
	require.Equal(t, "/v1/chat/completions", got.Path)
	require.NotContains(t, got.Header, "Authorization")
	require.JSONEq(t, `{
		"model": "some-model", "stream": true, "stream_options": {"include_usage": true},
		"messages": [{"role": "user", "content": "hello"}]
	}`, string(got.Body))
}
