package openairesponses_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/modeltest"
	"github.com/helixd/helixd/agentloop/model/openairesponses"
	"github.com/helixd/helixd/eventlog/fact"
)

// sent makes a call and returns the request that the server got.
func sent(t *testing.T, name string, opts openairesponses.Options, req model.Request) modeltest.Request {
	t.Helper()
	s := modeltest.Serve(t, modeltest.Events(created, text(0, "x"), completed))
	opts.BaseURL, opts.HTTPClient = s.URL+"/v1", s.Client()
	modeltest.Ask(t, openairesponses.New(name, &opts), req)
	return s.Requests()[0]
}

func raw(s string) json.RawMessage { return json.RawMessage(s) }

// said is an answer with all kinds of parts.
func said() model.Message {
	call := func(id, name, arguments string) fact.TurnPart {
		return fact.TurnPart{ToolCall: &fact.ToolCall{ID: id, Name: name, Arguments: raw(arguments)}}
	}
	return model.Message{Role: model.RoleAssistant, Parts: []fact.TurnPart{
		{Reasoning: "First."},
		{Reasoning: "Then.", ProviderData: raw(`{"provider":"openai-responses","itemId":"rs_1","encrypted":"g+A=="}`)},
		{ProviderData: raw(`{"provider":"openai-responses","itemId":"rs_2","encrypted":"gB"}`)},
		{Reasoning: "of another", ProviderData: raw(`{"provider":"anthropic","signature":"s","itemId":"x","encrypted":"x"}`)},
		{ProviderData: raw(`{"provider":"anthropic","redacted":"r"}`)},
		{Text: "I look <b>.", ProviderData: raw(`{"provider":"openai-responses","phase":"commentary"}`)},
		{Source: &fact.Source{ID: "s", URL: "https://example.com"}},
		{
			File:         &fact.MessageFile{Data: "data:image/png;base64,iVBO", MediaType: "image/png"},
			ProviderData: raw(`{"provider":"openai-responses","itemId":"ig_1"}`),
		},
		{File: &fact.MessageFile{Data: "data:image/png;base64,iVBO", MediaType: "image/png"}},
		call("call_a", "f", `{"x": 1}`),
		call("functions.f:1", "no.such tool", `"{\"x\": tru"`), // what was not JSON
		{Reasoning: "cut off", ProviderData: raw(`{"provider":"openai-responses","itemId":"rs_3","encrypted":"gC"}`)},
	}}
}

func TestRequestBody(t *testing.T) {
	temperature := 0.5
	got := sent(t, "gpt-5.1", openairesponses.Options{
		APIKey: "sk-test", MaxOutputTokens: 77, Temperature: &temperature, Effort: "high", Summary: "auto",
	}, model.Request{
		System: "be brief",
		Messages: []model.Message{
			{Role: model.RoleUser, Content: "look", Files: []fact.MessageFile{
				{Data: "data:image/png;base64,AA==", MediaType: "image/png"},
				{Data: "data:application/pdf;base64,BB==", MediaType: "application/pdf", Filename: "a.pdf"},
				{Data: "data:text/csv,a", MediaType: "text/csv"},
				{Data: "https://example.com/a.jpg", MediaType: "image/jpeg"},
				{Data: "https://example.com/b.pdf", MediaType: "application/pdf"},
			}},
			said(),
			{Role: model.RoleTool, Content: "1", ToolCallID: "call_a", ToolName: "f"},
			{Role: model.RoleTool, Content: "Error: no", ToolCallID: "functions.f:1", ToolName: "no.such tool", Failed: true},
			{Role: model.RoleAssistant}, // nothing
			{Role: model.RoleUser},
			{Role: model.RoleUser, Content: "thanks"},
		},
		Tools: []model.ToolSpec{
			{Name: "f", Description: "does f", InputSchema: raw(`{"type":"object","properties":{"z":{},"a":{}}}`)},
			{Name: "g"},
		},
	})
	require.Equal(t, "Bearer sk-test", got.Header.Get("Authorization"))
	require.JSONEq(t, `{
		"model": "gpt-5.1",
		"stream": true,
		"store": false,
		"include": ["reasoning.encrypted_content"],
		"max_output_tokens": 77,
		"temperature": 0.5,
		"reasoning": {"effort": "high", "summary": "auto"},
		"instructions": "be brief",
		"input": [
			{"role": "user", "content": [
				{"type": "input_text", "text": "look"},
				{"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,AA=="},
				{"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,BB=="},
				{"type": "input_file", "filename": "file", "file_data": "data:text/csv;base64,YQ=="},
				{"type": "input_image", "detail": "auto", "image_url": "https://example.com/a.jpg"},
				{"type": "input_file", "file_url": "https://example.com/b.pdf"}
			]},
			{"type": "reasoning", "id": "rs_1", "encrypted_content": "g+A==", "summary": [
				{"type": "summary_text", "text": "First."}, {"type": "summary_text", "text": "Then."}
			]},
			{"type": "reasoning", "id": "rs_2", "encrypted_content": "gB", "summary": []},
			{"role": "assistant", "content": "I look <b>.", "phase": "commentary"},
			{"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": "iVBO"},
			{"type": "function_call", "call_id": "call_a", "name": "f", "arguments": "{\"x\": 1}"},
			{"type": "function_call", "call_id": "call_d029b1d6167f9b6ebb0bc7a2883d642d", "name": "no_such_tool", "arguments": "{\"x\": tru"},
			{"type": "function_call_output", "call_id": "call_a", "output": "1"},
			{"type": "function_call_output", "call_id": "call_d029b1d6167f9b6ebb0bc7a2883d642d", "output": "Error: no"},
			{"role": "user", "content": [{"type": "input_text", "text": "thanks"}]}
		],
		"tools": [
			{"type": "function", "name": "f", "description": "does f", "strict": false, "parameters": {"type": "object", "properties": {"z": {}, "a": {}}}},
			{"type": "function", "name": "g", "strict": false, "parameters": {"type": "object", "properties": {}}}
		]
	}`, string(got.Body))
	require.Contains(t, string(got.Body), `{"z":{},"a":{}}`, "the schema's order is kept")
}

// Models that do not reason refuse to be asked for it, and what others thought.
func TestModelsThatDoNotReason(t *testing.T) {
	req := model.Request{Messages: []model.Message{{Role: model.RoleUser, Content: "hello"}, said(), {Role: model.RoleUser, Content: "go on"}}}
	for name, reasons := range map[string]bool{
		"gpt-4o": false, "gpt-4.1-mini-2025-04-14": false, "ft:gpt-4o-mini:acme::1": false, "openai/GPT-4.1": false,
		"chatgpt-4o-latest": false, "gpt-5-chat-latest": false,
		"gpt-5": true, "o4-mini": true, "openai/o3": true, "gpt-oss-120b": true, "of-tomorrow": true,
	} {
		body := string(sent(t, name, openairesponses.Options{}, req).Body)
		for _, text := range []string{`"include"`, `"encrypted_content"`, "rs_1"} {
			if reasons {
				require.Contains(t, body, text, name)
			} else {
				require.NotContains(t, body, text, name)
			}
		}
	}
}

func TestSmallestRequest(t *testing.T) {
	got := sent(t, "gpt-4o", openairesponses.Options{}, modeltest.Hello())
	require.JSONEq(t, `{
		"model": "gpt-4o", "stream": true, "store": false,
		"input": [{"role": "user", "content": [{"type": "input_text", "text": "hello"}]}]
	}`, string(got.Body))
}

func TestFilesThatCannotBeSent(t *testing.T) {
	s := modeltest.Serve(t, modeltest.Events(created, completed))
	req := model.Request{Messages: []model.Message{{Role: model.RoleUser, Files: []fact.MessageFile{{Data: "nothing"}}}}}
	e, _ := modeltest.AskFor(t, modelOn(s), req)
	require.Equal(t, model.CodeInvalidRequest, e.Code)
	require.Empty(t, s.Requests())
}
