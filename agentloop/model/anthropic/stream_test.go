package anthropic_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/modeltest"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
)

func TestThinkingKeepsItsSignature(t *testing.T) {
	got, c := ask(t, answer("end_turn",
		begin(0, `{"type":"thinking","thinking":"","signature":""}`),
		`{"type":"ping"}`,
		delta(0, `{"type":"thinking_delta","thinking":"Let me "}`),
		delta(0, `{"type":"thinking_delta","thinking":"see."}`),
		delta(0, `{"type":"signature_delta","signature":"sig+"}`),
		delta(0, `{"type":"signature_delta","signature":"1/=="}`),
		stop(0),
		begin(1, `{"type":"redacted_thinking","data":"se+cret"}`),
		stop(1),
		begin(2, `{"type":"text","text":""}`),
		delta(2, `{"type":"text_delta","text":"Hello ☃"}`),
		stop(2),
		// thinking between, of which the text is withheld
		begin(3, `{"type":"thinking","thinking":"","signature":""}`),
		delta(3, `{"type":"signature_delta","signature":"sig2"}`),
		stop(3),
		begin(4, `{"type":"text","text":"Hel"}`),
		delta(4, `{"type":"text_delta","text":"lo."}`),
		stop(4),
	)...)
	require.Equal(t, []model.Event{
		model.ReasoningDelta{Text: "Let me "},
		model.ReasoningDelta{Text: "see."},
		model.PartEnd{Data: json.RawMessage(`{"provider":"anthropic","signature":"sig+1/=="}`)},
		model.PartEnd{Data: json.RawMessage(`{"provider":"anthropic","redacted":"se+cret"}`)},
		model.TextDelta{Text: "Hello ☃"},
		model.PartEnd{},
		model.PartEnd{Data: json.RawMessage(`{"provider":"anthropic","signature":"sig2"}`)},
		model.TextDelta{Text: "Hel"},
		model.TextDelta{Text: "lo."},
	}, c.Events)
	require.Equal(t, "m-1", got.Model)
	require.Equal(t, fact.StopEndTurn, got.StopReason)
}

func TestUnsignedThinkingHasNothingToGoBackWith(t *testing.T) {
	_, c := ask(t, answer("end_turn",
		begin(0, `{"type":"thinking","thinking":"Hm."}`), stop(0), begin(1, `{"type":"text","text":"Ok."}`), stop(1))...)
	require.Equal(t, []model.Event{model.ReasoningDelta{Text: "Hm."}, model.PartEnd{}, model.TextDelta{Text: "Ok."}}, c.Events)
}

func TestParallelCallsWithInterleavedArguments(t *testing.T) {
	got, c := ask(t, answer("tool_use",
		begin(0, `{"type":"text","text":""}`), delta(0, `{"type":"text_delta","text":"I look."}`), stop(0),
		begin(1, `{"type":"tool_use","id":"toolu_a","name":"one","input":{}}`),
		delta(1, `{"type":"input_json_delta","partial_json":""}`),
		begin(2, `{"type":"tool_use","id":"toolu_b","name":"two","input":{}}`),
		delta(1, `{"type":"input_json_delta","partial_json":"{\"x\":"}`),
		delta(2, `{"type":"input_json_delta","partial_json":"{\"y\":"}`),
		delta(1, `{"type":"input_json_delta","partial_json":"1}"}`),
		stop(1),
		delta(2, `{"type":"input_json_delta","partial_json":"2}"}`),
		stop(2),
		begin(3, `{"type":"tool_use","id":"toolu_c","name":"none","input":{}}`), stop(3),
		begin(4, `{"type":"tool_use","id":"toolu_d","name":"whole","input":{"z": [3]}}`), stop(4),
	)...)
	require.Equal(t, modeltest.Calls(
		"toolu_a", "one", `{"x":1}`, "toolu_b", "two", `{"y":2}`, "toolu_c", "none", "", "toolu_d", "whole", `{"z": [3]}`), c.Calls)
	require.Equal(t, "I look.", c.Text)
	require.Equal(t, fact.StopToolUse, got.StopReason)
}

func TestAToolCallWithoutAnEndKeepsItsArguments(t *testing.T) {
	_, c := ask(t, answer("tool_use",
		begin(1, `{"type":"tool_use","id":"toolu_b","name":"whole","input":{"z":3}}`),
		begin(0, `{"type":"tool_use","id":"toolu_a","name":"one","input":{}}`),
		delta(0, `{"type":"input_json_delta","partial_json":"{\"x\":1}"}`),
	)...)
	require.Equal(t, modeltest.Calls("toolu_b", "whole", `{"z":3}`, "toolu_a", "one", `{"x":1}`), c.Calls)
}

func TestASignatureHasAnEnd(t *testing.T) {
	events := []string{start, begin(0, `{"type":"thinking","thinking":"","signature":""}`)}
	for range 17 {
		events = append(events, delta(0, `{"type":"signature_delta","signature":"`+strings.Repeat("s", 1<<20)+`"}`))
	}
	e, c := modeltest.AskFor(t, modelOn(modeltest.Serve(t, modeltest.Events(append(events, stop(0), reason("end_turn"))...))), modeltest.Hello())
	require.Contains(t, e.Message, "the provider sent a signature without an end")
	require.True(t, e.Retryable)
	require.Empty(t, c.Events)
}

func TestCitationsAreSourcesBehindTheirText(t *testing.T) {
	cite := func(index int, citation string) string {
		return delta(index, `{"type":"citations_delta","citation":`+citation+`}`)
	}
	_, c := ask(t, answer("end_turn",
		begin(0, `{"type":"text","text":"The grass is "}`), stop(0),
		begin(1, `{"type":"text","text":"","citations":[]}`),
		cite(1, `{"type":"char_location","cited_text":"green","document_index":0,"document_title":"Colours","start_char_index":0,"end_char_index":5}`),
		delta(1, `{"type":"text_delta","text":"green"}`),
		cite(1, `{"type":"char_location","cited_text":"Green","document_index":0,"document_title":"Colours","start_char_index":7,"end_char_index":9}`),
		cite(1, `{"type":"page_location","document_index":1,"document_title":null,"start_page_number":1,"end_page_number":2}`),
		stop(1),
		begin(2, `{"type":"text","text":"."}`),
		cite(2, `{"type":"web_search_result_location","url":"https://example.com/g","title":"Grass","encrypted_index":"x","cited_text":"y"}`),
		cite(2, `{"type":"search_result_location","search_result_index":0,"source":"kb/1","title":null,"cited_text":"y"}`),
		cite(2, `{"type":"of the future"}`),
		stop(2),
	)...)
	require.Equal(t, []model.Event{
		model.TextDelta{Text: "The grass is "},
		model.TextDelta{Text: "green"},
		model.TextDelta{Text: "."},
		model.Source{MediaType: "text/plain", Title: "Colours"},
		model.Source{MediaType: "application/pdf", Title: "Document 2"},
		model.Source{URL: "https://example.com/g", Title: "Grass"},
		model.Source{MediaType: "text/plain", Title: "kb/1"},
	}, c.Events)
}

func TestStopReasons(t *testing.T) {
	for said, want := range map[string]fact.StopReason{
		"end_turn": fact.StopEndTurn, "tool_use": fact.StopToolUse, "max_tokens": fact.StopMaxTokens,
		"stop_sequence": fact.StopSequence, "refusal": fact.StopContentFilter,
		"model_context_window_exceeded": fact.StopMaxTokens, "pause_turn": fact.StopUnknown, "novel": fact.StopUnknown,
	} {
		got, _ := ask(t, answer(said)...)
		require.Equal(t, want, got.StopReason, said)
	}
	got, _ := ask(t, start, `{"type":"message_stop"}`)
	require.Equal(t, fact.StopUnknown, got.StopReason)
	require.Equal(t, eventlog.FinishContentFilter, eventlog.FinishReasonOf(fact.StopContentFilter))
}

func TestKindsOfTheFutureAreSkipped(t *testing.T) {
	_, c := ask(t, answer("end_turn",
		`{"type":"message_novelty","delta":{"type":"x"}}`,
		begin(0, `{"type":"novel_block","novel":{}}`), delta(0, `{"type":"novel_delta","novel":1}`), stop(0),
		begin(1, `{"type":"server_tool_use","id":"srv","name":"web_search","input":{}}`),
		delta(1, `{"type":"input_json_delta","partial_json":"{\"query\":1}"}`), stop(1),
		delta(7, `{"type":"text_delta","text":"of no block"}`), stop(7),
		begin(2, `{"type":"text","text":"Hi"}`), delta(2, `{"type":"novel_delta"}`), stop(2),
	)...)
	require.Equal(t, []model.Event{model.TextDelta{Text: "Hi"}}, c.Events)
}

func TestUsageCountsTheCacheIn(t *testing.T) {
	usage := func(first, last string) fact.TokenUsage {
		got, _ := ask(t,
			`{"type":"message_start","message":{"model":"m-1","content":[],"usage":`+first+`}}`,
			`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":`+last+`}`, `{"type":"message_stop"}`)
		return got.Usage
	}
	require.Equal(t,
		fact.TokenUsage{Prompt: 1110, Completion: 50, Reasoning: 30, Cached: 1000, CacheWrite: 100, Total: 1160},
		usage(`{"input_tokens":10,"cache_read_input_tokens":1000,"cache_creation_input_tokens":100,"output_tokens":1}`,
			`{"output_tokens":50,"output_tokens_details":{"thinking_tokens":30}}`))
	require.Equal(t, fact.TokenUsage{Prompt: 25, Completion: 7, Cached: 5, Total: 32},
		usage(`{"input_tokens":10,"output_tokens":1}`,
			`{"input_tokens":20,"cache_read_input_tokens":5,"cache_creation_input_tokens":null,"output_tokens":7}`))
	require.Equal(t, fact.TokenUsage{Completion: 1, Total: 1}, usage(`{"input_tokens":-10,"output_tokens":1}`, `null`))
	const huge = `9223372036854775807`
	require.Equal(t, fact.TokenUsage{Completion: 1, Total: 1},
		usage(`{"input_tokens":`+huge+`,"cache_read_input_tokens":`+huge+`,"output_tokens":1}`, `null`), "no sum overflows")
}

func TestErrorsInTheStream(t *testing.T) {
	for kind, want := range map[string]model.Error{
		"overloaded_error":      {Code: model.CodeOverloaded, Retryable: true},
		"rate_limit_error":      {Code: model.CodeRateLimited, Retryable: true},
		"api_error":             {Code: model.CodeUnavailable, Retryable: true},
		"timeout_error":         {Code: model.CodeTimeout, Retryable: true},
		"invalid_request_error": {Code: model.CodeInvalidRequest},
		"authentication_error":  {Code: model.CodeAuthFailed},
		"permission_error":      {Code: model.CodeAuthFailed},
		"billing_error":         {Code: model.CodeRateLimited},
		"request_too_large":     {Code: model.CodeInvalidRequest},
		"novel_error":           {Code: model.CodeProvider, Retryable: true},
	} {
		s := modeltest.Serve(t, modeltest.Events(start, begin(0, `{"type":"text","text":"Hel"}`),
			`{"type":"error","error":{"type":"`+kind+`","message":"Sorry"},"request_id":"req_1"}`, stop(0)))
		e, c := modeltest.AskFor(t, modelOn(s), modeltest.Hello())
		want.Message = "Sorry"
		require.Equal(t, want, s.Words(t, e), kind)
		require.Equal(t, "Hel", c.Text)
	}
	for _, message := range []string{
		"prompt is too long: 215000 tokens > 200000 maximum", "input length and `max_tokens` exceed context limit: 1 + 2 > 2",
	} {
		body := `{"type":"error","error":{"type":"invalid_request_error","message":"` + message + `"}}`
		e, _ := modeltest.AskFor(t, modelOn(modeltest.Serve(t, modeltest.Failure(400, body))), modeltest.Hello())
		require.Equal(t, model.CodeContextLength, e.Code)
	}
}

func TestCallWithoutAName(t *testing.T) {
	s := modeltest.Serve(t, modeltest.Events(answer("tool_use", begin(0, `{"type":"tool_use","id":"a","input":{}}`))...))
	e, _ := modeltest.AskFor(t, modelOn(s), modeltest.Hello())
	require.Equal(t, model.CodeProvider, e.Code)
	require.True(t, e.Retryable)
}
