package openairesponses_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/modeltest"
	"github.com/helixd/helixd/eventlog/fact"
)

func TestStopReasons(t *testing.T) {
	const call = `{"type":"function_call","id":"fc_1","call_id":"call_a","name":"f","arguments":"{}"}`
	incomplete := func(reason string) string {
		return `{"type":"response.incomplete","response":{"model":"m-1","status":"incomplete","incomplete_details":{"reason":"` + reason + `"},"usage":null}}`
	}
	for _, c := range []struct {
		events []string
		want   fact.StopReason
	}{
		{[]string{text(0, "x"), completed}, fact.StopEndTurn},
		{[]string{done(0, call), completed}, fact.StopToolUse},
		{[]string{text(0, "x"), incomplete("max_output_tokens")}, fact.StopMaxTokens},
		{[]string{done(0, call), incomplete("max_output_tokens")}, fact.StopMaxTokens},
		{[]string{text(0, "x"), incomplete("content_filter")}, fact.StopContentFilter},
		{[]string{text(0, "x"), incomplete("novel")}, fact.StopUnknown},
		{[]string{text(0, "x"), incomplete("")}, fact.StopUnknown},
		{[]string{done(0, call), `{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":null}}`}, fact.StopUnknown},
		{[]string{on("refusal.delta", 0, `"content_index":0,"delta":"I cannot."`), completed}, fact.StopContentFilter},
		{[]string{
			done(0, `{"type":"message","id":"m","role":"assistant","content":[{"type":"refusal","refusal":"I cannot."}]}`), completed,
		}, fact.StopContentFilter},
	} {
		got, said := askAll(t, append([]string{created}, c.events...)...)
		require.Equal(t, c.want, got.StopReason, c.events)
		require.NotEmpty(t, said.Events)
		if c.want == fact.StopContentFilter && len(said.Text) > 1 {
			require.Equal(t, "I cannot.", said.Text, "a refusal is what the model says")
		}
	}
}

func TestFailuresInTheStream(t *testing.T) {
	failed := func(code, message string) string {
		return `{"type":"response.failed","response":{"model":"m-1","status":"failed","error":{"code":"` + code + `","message":"` + message + `"},"usage":null}}`
	}
	for _, c := range []struct {
		event, code string
		retryable   bool
		message     string
	}{
		{failed("server_error", "broke"), model.CodeUnavailable, true, "broke"},
		{failed("rate_limit_exceeded", "slow down"), model.CodeRateLimited, true, "slow down"},
		{failed("insufficient_quota", "pay"), model.CodeRateLimited, false, "pay"},
		{failed("invalid_prompt", "bad"), model.CodeInvalidRequest, false, "bad"},
		{failed("image_too_large", "big"), model.CodeInvalidRequest, false, "big"},
		{failed("bio_policy", "no"), model.CodeContentFiltered, false, "no"},
		{failed("novel", "odd"), model.CodeProvider, true, "odd"},
		{`{"type":"response.failed","response":{"status":"failed","error":null}}`, model.CodeProvider, true, "the provider reported an error"},
		{`{"type":"error","code":"server_error","message":"flat","param":null}`, model.CodeUnavailable, true, "flat"},
		{`{"type":"error","error":{"type":"invalid_request_error","code":"context_length_exceeded","message":"long"}}`, model.CodeContextLength, false, "long"},
		{`{"type":"error","error":{"type":"tokens","code":null,"message":"slow"}}`, model.CodeRateLimited, true, "slow"},
	} {
		s := modeltest.Serve(t, modeltest.Events(created, text(0, "Hel"), c.event, completed))
		e, said := modeltest.AskFor(t, modelOn(s), modeltest.Hello())
		require.Equal(t, model.Error{Code: c.code, Message: c.message, Retryable: c.retryable}, s.Words(t, e), c.event)
		require.Equal(t, "Hel", said.Text)
	}
}

func TestCallWithoutAName(t *testing.T) {
	s := modeltest.Serve(t, modeltest.Events(created, added(0, `{"type":"function_call","call_id":"a","arguments":""}`), completed))
	e, _ := modeltest.AskFor(t, modelOn(s), modeltest.Hello())
	require.Equal(t, model.CodeProvider, e.Code)
	require.True(t, e.Retryable)
}

func TestUsage(t *testing.T) {
	got, _ := askAll(t, created, `{"type":"response.completed","response":{"usage":{"input_tokens":100,`+
		`"input_tokens_details":{"cached_tokens":60,"cache_write_tokens":30},"output_tokens":50,"output_tokens_details":{"reasoning_tokens":40}}}}`)
	require.Equal(t, fact.TokenUsage{Prompt: 100, Completion: 50, Reasoning: 40, Cached: 60, CacheWrite: 30, Total: 150}, got.Usage)
	require.Equal(t, "m-1", got.Model)

	got, _ = askAll(t, `{"type":"response.completed","response":{"usage":{"input_tokens":-1,"output_tokens":2}}}`)
	require.Equal(t, fact.TokenUsage{Completion: 2, Total: 2}, got.Usage)
	require.Equal(t, "asked-for", got.Model)
}

// What a server says of one item does not become part of another one.
func TestPiecesOfAnItemOfAnotherKind(t *testing.T) {
	_, c := ask(t,
		added(0, `{"type":"function_call","id":"fc_1","call_id":"call_a","name":"one"}`),
		on("function_call_arguments.delta", 0, `"delta":"{}"`),
		done(0, `{"type":"function_call","id":"fc_1","call_id":"call_a","name":"one","arguments":"{}"}`),
		added(1, `{"type":"message","id":"msg_1","content":[]}`),
		on("function_call_arguments.delta", 1, `"delta":"{\"of\":\"no call\"}"`),
		text(1, "Hello"),
		done(1, `{"type":"function_call","id":"fc_2","call_id":"call_b","name":"two","arguments":"[2]"}`),
	)
	require.Equal(t, modeltest.Calls("call_a", "one", "{}", "call_b", "two", "[2]"), c.Calls)
	require.Equal(t, "Hello", c.Text)
}

func TestAnItemEndsOnce(t *testing.T) {
	item := `{"type":"function_call","id":"fc_1","call_id":"call_a","name":"pay","arguments":"{}"}`
	said := `{"type":"message","id":"msg_1","content":[{"type":"output_text","text":"Paid."}]}`
	_, c := ask(t, done(0, item), done(0, item), done(1, said), done(1, said))
	require.Equal(t, modeltest.Calls("call_a", "pay", "{}"), c.Calls)
	require.Equal(t, "Paid.", c.Text)
}

func TestACallWithoutAnEnd(t *testing.T) {
	begun := added(0, `{"type":"function_call","id":"fc_1","call_id":"call_a","name":"one"}`)
	_, c := ask(t, begun, on("function_call_arguments.delta", 0, `"delta":"{\"x\":1}"`))
	require.Equal(t, modeltest.Calls("call_a", "one", `{"x":1}`), c.Calls, "its arguments have come")

	e, _ := modeltest.AskFor(t, modelOn(modeltest.Serve(t, modeltest.Events(created, begun, completed))), modeltest.Hello())
	require.Contains(t, e.Message, "the provider did not send the arguments of a tool call")
	require.True(t, e.Retryable)
}
