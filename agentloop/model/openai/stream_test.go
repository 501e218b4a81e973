package openai_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/modeltest"
	"github.com/helixd/helixd/agentloop/model/openai"
	"github.com/helixd/helixd/eventlog/fact"
)

func TestTextAndReasoning(t *testing.T) {
	answer, got := ask(t, modeltest.Serve(t, deltas(`"stop"`,
		`{"role":"assistant","content":null,"reasoning_content":""}`,
		`{"content":null,"reasoning_content":"Let "}`,
		`{"content":"","reasoning":"me "}`,
		`{"reasoning":"see.","reasoning_content":"see."}`,
		`{"reasoning":null,"reasoning_content":null}`,
		`{"reasoning":{"odd":1}}`,
		`{"content":"Hel"}`,
		`{"content":"lo ☃"}`,
	)))
	require.Equal(t, model.Answer{Model: "m-1", StopReason: fact.StopEndTurn}, answer)
	require.Equal(t, []model.Event{
		model.ReasoningDelta{Text: "Let "},
		model.ReasoningDelta{Text: "me "},
		model.ReasoningDelta{Text: "see."},
		model.TextDelta{Text: "Hel"},
		model.TextDelta{Text: "lo ☃"},
	}, got.Events)
}

func TestContentInParts(t *testing.T) {
	_, got := ask(t, modeltest.Serve(t, deltas(`"stop"`,
		`{"content":[{"type":"text","text":"Hel"},{"type":"reference","reference_ids":[1]},{"type":"text","text":"lo"}]}`,
		`{"content":[]}`,
		`{"content":"!"}`,
	)))
	require.Equal(t, "Hello!", got.Text)
	for _, odd := range []string{`{"content":{"answer":"Hi"}}`, `{"content":[{"type":"text","text":1}]}`} {
		e, _ := askFor(t, modeltest.Serve(t, deltas(`"stop"`, odd)))
		require.Equal(t, model.CodeProvider, e.Code, odd)
		require.True(t, e.Retryable, odd)
	}
}

// An event of many lines is bounded as one of a single line is.
func TestEventsAreBounded(t *testing.T) {
	blank := strings.Repeat(" ", 1<<20)
	answer := chunk(`{"content":"Hello"}`, `"stop"`)
	for _, lines := range []int{1, 40} {
		s := modeltest.Serve(t, modeltest.Stream{Tail: strings.Repeat("data: "+strings.Repeat(blank, 40/lines)+"\n", lines) + "data: " + answer + "\n\n"})
		e, got := askFor(t, s)
		require.Equal(t, model.CodeProvider, e.Code)
		require.True(t, e.Retryable)
		require.Contains(t, e.Message, "cannot be read")
		require.Empty(t, got.Text)
	}
	_, got := ask(t, modeltest.Serve(t, modeltest.Stream{Tail: "data: " + blank + "\ndata: " + answer + "\n\n"}))
	require.Equal(t, "Hello", got.Text)
}

func TestToolCallsInOrderOfAppearance(t *testing.T) {
	_, got := ask(t, modeltest.Serve(t, deltas(`"tool_calls"`,
		`{"tool_calls":[{"index":1,"id":"a","type":"function","function":{"name":"one","arguments":""}}]}`,
		`{"tool_calls":[{"index":1,"function":{"arguments":"{\"x\""}}]}`,
		`{"tool_calls":[{"index":1,"function":{"arguments":":1}"}}]}`,
		`{"tool_calls":[{"index":3,"id":"b","function":{"name":"two","arguments":"{}"}}]}`,
	)))
	require.Equal(t, []model.Event{
		model.ToolCallStart{Call: 0, ID: "a", Name: "one"},
		model.ToolCallDelta{Call: 0, Text: `{"x"`},
		model.ToolCallDelta{Call: 0, Text: `:1}`},
		model.ToolCallEnd{Call: 0},
		model.ToolCallStart{Call: 1, ID: "b", Name: "two"},
		model.ToolCallDelta{Call: 1, Text: `{}`},
		model.ToolCallEnd{Call: 1},
	}, got.Events)
}

func TestToolCallForms(t *testing.T) {
	for name, c := range map[string]struct {
		deltas []string
		calls  []modeltest.Call
	}{
		"several in one delta": {
			[]string{`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}},{"index":1,"id":"b","function":{"name":"g","arguments":"[]"}}]}`},
			modeltest.Calls("a", "f", "{}", "b", "g", "[]"),
		},
		"interleaved": {
			[]string{
				`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":"}}]}`,
				`{"tool_calls":[{"index":1,"id":"b","function":{"name":"g","arguments":"{\"y\":"}}]}`,
				`{"tool_calls":[{"index":0,"function":{"arguments":"1}"}}]}`,
				`{"tool_calls":[{"index":1,"function":{"arguments":"2}"}}]}`,
			},
			modeltest.Calls("a", "f", `{"x":1}`, "b", "g", `{"y":2}`),
		},
		"no index": {
			[]string{
				`{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]}`,
				`{"tool_calls":[{"id":"b","function":{"name":"f","arguments":"{}"}}]}`,
			},
			modeltest.Calls("a", "f", "{}", "b", "f", "{}"),
		},
		"no index, one id for all": {
			[]string{
				`{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{\"a\":1}"}}]}`,
				`{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{\"a\":2}"}}]}`,
			},
			modeltest.Calls("a", "f", `{"a":1}`, "a", "f", `{"a":2}`),
		},
		"no index, no id": {
			[]string{
				`{"tool_calls":[{"function":{"name":"f","arguments":"{\"a\":1}"}},{"function":{"name":"f","arguments":"{\"a\":2}"}}]}`,
				`{"tool_calls":[{"function":{"name":"g","arguments":""}}]}`,
				`{"tool_calls":[{"function":{"arguments":"{\"a\":3}"}}]}`,
			},
			modeltest.Calls("", "f", `{"a":1}`, "", "f", `{"a":2}`, "", "g", `{"a":3}`),
		},
		"head repeated at the end": {
			[]string{
				`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]}`,
				`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":""}}]}`,
			},
			modeltest.Calls("a", "f", `{}`),
		},
		"head repeated": {
			[]string{
				`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\""}}]}`,
				`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":":1}"}}]}`,
			},
			modeltest.Calls("a", "f", `{"x":1}`),
		},
		"name after arguments": {
			[]string{
				`{"tool_calls":[{"index":0,"id":"a","function":{"arguments":"{"}}]}`,
				`{"tool_calls":[{"index":0,"function":{"name":"f","arguments":"}"}}]}`,
			},
			modeltest.Calls("a", "f", "{}"),
		},
		"no id, no arguments, null": {
			[]string{
				`{"tool_calls":null}`,
				`{"tool_calls":[{"index":0,"function":{"name":"f","arguments":null}}]}`,
			},
			modeltest.Calls("", "f", ""),
		},
		"arguments that are no text": {
			[]string{
				`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":{"path":"x", "n": 1}}}]}`,
				`{"tool_calls":[{"index":1,"id":"b","function":{"name":"g","arguments":[1]}}]}`,
			},
			modeltest.Calls("a", "f", `{"path":"x", "n": 1}`, "b", "g", "[1]"),
		},
		"not JSON": {
			[]string{`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\""}}]}`},
			modeltest.Calls("a", "f", `{"x"`),
		},
	} {
		t.Run(name, func(t *testing.T) {
			answer, got := ask(t, modeltest.Serve(t, deltas(`"tool_calls"`, c.deltas...)))
			require.Equal(t, c.calls, got.Calls)
			require.Equal(t, fact.StopToolUse, answer.StopReason)
		})
	}
}

func TestStopReasons(t *testing.T) {
	const text = `{"content":"x"}`
	const tool = `{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]}`
	for _, c := range []struct {
		finish, delta string
		want          fact.StopReason
	}{
		{`"stop"`, text, fact.StopEndTurn},
		{`"stop"`, tool, fact.StopToolUse}, // some servers
		{`"tool_calls"`, tool, fact.StopToolUse},
		{`"function_call"`, text, fact.StopToolUse},
		{`"length"`, tool, fact.StopMaxTokens},
		{`"content_filter"`, text, fact.StopContentFilter},
		{`"stop"`, `{"refusal":"I cannot."}`, fact.StopContentFilter},
		{`"novel"`, text, fact.StopUnknown},
		{`null`, text, fact.StopUnknown}, // but [DONE]
		{`null`, tool, fact.StopToolUse},
	} {
		answer, got := ask(t, modeltest.Serve(t, deltas(c.finish, c.delta)))
		require.Equal(t, c.want, answer.StopReason, "%s after %s", c.finish, c.delta)
		require.NotEmpty(t, got.Events)
	}
}

func TestRefusalIsText(t *testing.T) {
	_, got := ask(t, modeltest.Serve(t, deltas(`"stop"`, `{"refusal":"I can"}`, `{"refusal":"not."}`)))
	require.Equal(t, "I cannot.", got.Text)
}

func TestUsage(t *testing.T) {
	for name, c := range map[string]struct {
		usage string
		want  fact.TokenUsage
	}{
		"none": {`null`, fact.TokenUsage{}},
		"no total": {
			`{"prompt_tokens":3,"completion_tokens":4}`,
			fact.TokenUsage{Prompt: 3, Completion: 4, Total: 7},
		},
		"reasoning included": {
			`{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7,"completion_tokens_details":{"reasoning_tokens":2}}`,
			fact.TokenUsage{Prompt: 3, Completion: 4, Reasoning: 2, Total: 7},
		},
		"reasoning beside": {
			`{"prompt_tokens":3,"completion_tokens":4,"total_tokens":9,"completion_tokens_details":{"reasoning_tokens":2}}`,
			fact.TokenUsage{Prompt: 3, Completion: 6, Reasoning: 2, Total: 9},
		},
		"negative": {
			`{"prompt_tokens":-3,"completion_tokens":4,"total_tokens":-1,"completion_tokens_details":{"reasoning_tokens":-1},` +
				`"prompt_tokens_details":{"cached_tokens":-5,"cache_write_tokens":-2}}`,
			fact.TokenUsage{Completion: 4, Total: 4},
		},
		"a negative part": {
			`{"prompt_tokens":3,"completion_tokens":-4,"total_tokens":7}`,
			fact.TokenUsage{Prompt: 3, Completion: 4, Total: 7},
		},
		"cache": {
			`{"prompt_tokens":9,"completion_tokens":1,"total_tokens":10,"prompt_tokens_details":{"cached_tokens":5,"cache_write_tokens":3}}`,
			fact.TokenUsage{Prompt: 9, Completion: 1, Cached: 5, CacheWrite: 3, Total: 10},
		},
	} {
		t.Run(name, func(t *testing.T) {
			last := `{"id":"c","choices":[],"usage":` + c.usage + `}`
			answer, _ := ask(t, modeltest.Serve(t, modeltest.Events(chunk(`{"content":"x"}`, `"stop"`), last)))
			require.Equal(t, c.want, answer.Usage)

			// on the last chunk of the choice
			same := `{"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":` + c.usage + `}`
			answer, _ = ask(t, modeltest.Serve(t, modeltest.Events(chunk(`{"content":"x"}`, `null`), same)))
			require.Equal(t, c.want, answer.Usage)
			require.Equal(t, "m-1", answer.Model)
		})
	}
}

func TestModelNameDefaultsToTheOneAskedFor(t *testing.T) {
	answer, _ := ask(t, modeltest.Serve(t, modeltest.Events(`{"choices":[{"delta":{"content":"x"},"finish_reason":"stop"}]}`)))
	require.Equal(t, "asked-for", answer.Model)
}

func TestEmptyErrorFieldIsNoError(t *testing.T) {
	_, got := ask(t, modeltest.Serve(t, modeltest.Events(
		`{"error":null,"choices":[{"index":0,"delta":{"content":"\"error\""},"finish_reason":null}]}`,
		`{"error":"","choices":[{"index":0,"delta":{"content":"!"},"finish_reason":"stop"}]}`,
	)))
	require.Equal(t, `"error"!`, got.Text)
}

func TestEndWithoutMarkIsFineAfterFinishReason(t *testing.T) {
	for _, cut := range []bool{false, true} {
		stream := unframed(deltas(`"stop"`, `{"content":"all"}`))
		stream.Cut = cut
		answer, got := ask(t, modeltest.Serve(t, stream))
		require.Equal(t, "all", got.Text)
		require.Equal(t, fact.StopEndTurn, answer.StopReason)
	}
}

func TestArgumentsOfACallWithoutANameHaveAnEnd(t *testing.T) {
	var pieces []string
	for range 17 {
		pieces = append(pieces, `{"tool_calls":[{"index":0,"function":{"arguments":"`+strings.Repeat("x", 1<<20)+`"}}]}`)
	}
	stream := deltas(`"tool_calls"`, pieces...)
	stream.Events, stream.Hang = stream.Events[:len(pieces)], true // and no more: the call fails before
	s := modeltest.Serve(t, stream)
	m := openai.New("m", &openai.Options{BaseURL: s.URL + "/v1", HTTPClient: s.Client(), IdleTimeout: 2 * time.Second})
	e, got := modeltest.AskFor(t, m, hello())
	require.Contains(t, e.Message, "the provider sent a tool call without a name")
	require.Empty(t, got.Events)
}
