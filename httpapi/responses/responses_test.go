package responses_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/httpapi"
)

var weather = object{
	"type": "function", "name": "get_weather", "description": "The weather.",
	"parameters": object{"type": "object", "properties": object{"city": object{"type": "string"}}},
}

// A response has all members that clients expect, and is the same later.
func TestAResponse(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	made := g.create(object{"input": "hello", "instructions": "Be kind.", "metadata": object{"k": "v"}, "temperature": 0.5})
	for _, name := range []string{
		"id", "object", "created_at", "completed_at", "status", "incomplete_details", "model", "previous_response_id", "instructions", "output",
		"error", "tools", "tool_choice", "truncation", "parallel_tool_calls", "text", "top_p", "presence_penalty", "frequency_penalty",
		"top_logprobs", "temperature", "reasoning", "usage", "max_output_tokens", "max_tool_calls", "store", "background", "service_tier",
		"metadata", "safety_identifier", "prompt_cache_key", "conversation",
	} {
		require.Contains(t, made, name)
	}
	require.Equal(t, "completed", made["status"])
	require.Equal(t, "brain", made["model"])
	require.Equal(t, "Be kind.", made["instructions"])
	require.Equal(t, object{"k": "v"}, made["metadata"])
	require.Equal(t, 0.5, made["temperature"])
	require.Equal(t, []string{"reasoning", "message"}, outputs(made))
	require.Equal(t, "Hello there.", textOf(made))
	require.Equal(t, "They greet. I too.", itemOf(made, "reasoning")["summary"].([]any)[0].(object)["text"])
	require.Equal(t, object{
		"input_tokens": 10.0, "input_tokens_details": object{"cached_tokens": 4.0, "cache_write_tokens": 3.0}, "output_tokens": 5.0,
		"output_tokens_details": object{"reasoning_tokens": 2.0}, "total_tokens": 15.0,
	}, made["usage"])
	id := made["id"].(string)
	require.Equal(t, made, g.get("/responses/"+id))

	list := g.get("/responses/" + id + "/input_items")
	require.Len(t, list["data"], 1)
	require.Equal(t, "hello", list["data"].([]any)[0].(object)["content"].([]any)[0].(object)["text"])
	require.Equal(t, false, list["has_more"])

	status, gone := g.send("DELETE", "/responses/"+id, nil)
	require.Equal(t, 200, status)
	require.Equal(t, true, gone["deleted"])
	g.refused(404, "GET", "/responses/"+id, nil)
	_, err := g.log.Head(t.Context(), sessionOf(made))
	require.ErrorIs(t, err, eventlog.ErrSessionNotFound, "it is erased")
}

// The events of a stream count from 0, are in order, and are the same after any cursor, while
// the response is in progress and later.
func TestAStream(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	all := g.events("POST", "/responses", object{"model": "brain", "input": "hello", "stream": true})
	require.Equal(t, []string{
		"created", "in_progress",
		"output_item.added", "reasoning_summary_part.added", "reasoning_summary_text.delta",
		"output_item.added", "content_part.added", "output_text.delta",
		"reasoning_summary_text.done", "reasoning_summary_part.done", "output_item.done",
		"output_text.done", "content_part.done", "output_item.done", "completed",
	}, slices.Compact(typesOf(all)))
	for i, e := range all {
		require.EqualValues(t, i, e["sequence_number"])
	}
	last := all[len(all)-1]["response"].(object)
	id := last["id"].(string)
	require.Equal(t, last, g.get("/responses/"+id))
	for n := -1; n <= len(all); n++ {
		path := "/responses/" + id + "?stream=true"
		if n >= 0 {
			path += fmt.Sprintf("&starting_after=%d", n)
		}
		rest := g.events("GET", path, nil)
		require.Equal(t, all[min(n+1, len(all)):], append([]object{}, rest...))
		rest = g.events("GET", strings.ReplaceAll(path, "stream=true", ""), object{"stream": true}) // as the SDK for Go does
		require.Equal(t, all[min(n+1, len(all)):], append([]object{}, rest...))
	}
}

// What a failed model call has streamed is done as incomplete, keeps its index and is not in
// the output.
func TestTextThatIsTakenBack(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	all := g.events("POST", "/responses", object{"model": "brain", "input": "flaky", "stream": true})
	statuses := map[float64]string{}
	for _, e := range all {
		if e["type"] == "response.output_item.done" {
			statuses[e["output_index"].(float64)] = e["item"].(object)["status"].(string)
		}
	}
	require.Equal(t, map[float64]string{0: "incomplete", 1: "incomplete", 2: "completed"}, statuses)
	last := all[len(all)-1]["response"].(object)
	require.Equal(t, []string{"message"}, outputs(last))
	require.Equal(t, "Whole.", textOf(last))
	require.Equal(t, all, g.events("GET", "/responses/"+last["id"].(string)+"?stream=true", nil))
}

// A function tool of the request is the client's: the response completes with its call, and
// the next request brings the output.
func TestFunctionTools(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	for _, tool := range []string{"get_weather", "ask"} { // the request's, the agent's own
		first := g.create(object{"input": "call " + tool, "tools": []any{weather}})
		require.Equal(t, "completed", first["status"])
		call := itemOf(first, "function_call")
		require.Equal(t, `{"city":"Lisbon"}`, call["arguments"])
		require.Equal(t, tool, call["name"])
		require.Equal(t, []any{object{
			"type": "function", "name": "get_weather", "description": "The weather.", "parameters": weather["parameters"], "strict": false,
		}}, first["tools"])

		previous := first["id"]
		output := object{"type": "function_call_output", "call_id": call["call_id"], "output": "fog"}
		require.Equal(t, "tool_call_not_found", g.refused(400, "POST", "/responses", object{
			"model": "brain", "previous_response_id": previous, "input": []any{object{"type": "function_call_output", "call_id": "none", "output": "x"}},
		})["code"])
		require.Equal(t, "missing_tool_output", g.refused(400, "POST", "/responses", object{
			"model": "brain", "previous_response_id": previous, "input": "never mind",
		})["code"])
		second := g.create(object{"previous_response_id": previous, "input": []any{output}})
		require.Equal(t, `It is "fog".`, textOf(second))
		require.Equal(t, []string{"message"}, outputs(second))
		require.Equal(t, sessionOf(first), sessionOf(second))
		require.Equal(t, "function_call_output", g.get("/responses/" + second["id"].(string) + "/input_items")["data"].([]any)[0].(object)["type"])
		third := g.create(object{"previous_response_id": previous, "input": []any{output}}) // the same once more is a branch
		require.Equal(t, `It is "fog".`, textOf(third))
		require.NotEqual(t, sessionOf(first), sessionOf(third))
	}
	all := g.events("POST", "/responses", object{"model": "brain", "input": "call get_weather", "tools": []any{weather}, "stream": true})
	require.Subset(t, typesOf(all), []string{"function_call_arguments.delta", "function_call_arguments.done"})
}

// Calls that the server executes are not the client's.
func TestServerTools(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	made := g.create(object{"input": "call clock"})
	require.Equal(t, []string{"reasoning", "mcp_call", "message"}, outputs(made))
	call := itemOf(made, "mcp_call")
	require.Equal(t, "noon", call["output"])
	require.Equal(t, "completed", call["status"])
	require.Equal(t, `It is "noon".`, textOf(made))
	require.Equal(t, 20.0, made["usage"].(object)["input_tokens"], "of both model calls")
	failed := itemOf(g.create(object{"input": "call broken"}), "mcp_call")
	require.Equal(t, "failed", failed["status"])
	unknown := g.create(object{"input": "call nothing"})
	require.Equal(t, "failed", itemOf(unknown, "mcp_call")["status"])
	require.Nil(t, itemOf(unknown, "function_call"))
}

// A call that needs an approval is asked for, and the next request brings the decision.
func TestApprovals(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	for approve, want := range map[bool]string{true: `It is "paid".`, false: "was not approved"} {
		first := g.create(object{"input": "call pay"})
		asked := itemOf(first, "mcp_approval_request")
		require.Equal(t, "pay", asked["name"])
		require.Equal(t, "missing_approval_response", g.refused(400, "POST", "/responses", object{
			"model": "brain", "previous_response_id": first["id"], "input": "well?",
		})["code"])
		second := g.create(object{"previous_response_id": first["id"], "input": []any{
			object{"type": "mcp_approval_response", "approval_request_id": asked["id"], "approve": approve},
		}})
		require.Contains(t, textOf(second), want)
		if approve {
			require.Equal(t, asked["id"], itemOf(second, "mcp_call")["approval_request_id"])
		}
	}
}

// Responses form a tree: each can be continued more than once.
func TestPreviousResponses(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	one := g.create(object{"input": "hello", "instructions": "Be kind."})
	two := g.create(object{"input": "context", "previous_response_id": one["id"]})
	require.Equal(t, `"Think." with 3 messages and 4 tools`, textOf(two), "instructions are of their own response only")
	require.Equal(t, one["id"], two["previous_response_id"])
	three := g.create(object{"input": "context", "previous_response_id": one["id"]})
	require.Equal(t, textOf(two), textOf(three))
	four := g.create(object{"input": "context", "previous_response_id": two["id"]})
	require.Equal(t, `"Think." with 5 messages and 4 tools`, textOf(four))
	require.Equal(t, sessionOf(one), sessionOf(four))

	g.send("DELETE", "/responses/"+one["id"].(string), nil)
	require.Equal(t, "previous_response_not_found", g.refused(400, "POST", "/responses", object{
		"model": "brain", "input": "hello", "previous_response_id": one["id"],
	})["code"])
	require.Equal(t, textOf(two), textOf(g.get("/responses/"+two["id"].(string))), "those after it stay")
	require.Equal(t, "model", g.refused(400, "POST", "/responses", object{"model": "other", "input": "x", "previous_response_id": two["id"]})["param"])
}

// A client that keeps its own history sends all of it, and nothing stays.
func TestStatelessClients(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	first := g.create(object{"input": "call get_weather", "tools": []any{weather}, "store": false})
	g.refused(404, "GET", "/responses/"+first["id"].(string), nil)
	input := []any{object{"role": "developer", "content": "Be a pirate."}, object{"role": "user", "content": "call get_weather"}}
	input = append(input, first["output"].([]any)...)
	require.Equal(t, "missing_tool_output", g.refused(400, "POST", "/responses", object{"model": "brain", "input": input})["code"])
	input = append(input, object{"type": "function_call_output", "call_id": "call_1", "output": "fog"})
	second := g.create(object{"input": input, "store": false})
	require.Equal(t, `It is "fog".`, textOf(second))
	input = append(append(input, second["output"].([]any)...), object{"role": "user", "content": "context"})
	third := g.create(object{"input": input, "store": false})
	require.Equal(t, `"Think.\n\nBe a pirate." with 5 messages and 4 tools`, textOf(third))
	for _, o := range []object{first, second, third} {
		_, err := g.log.Head(t.Context(), sessionOf(o))
		require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
	}
	kept := g.create(object{"input": "hello"})
	forked := g.create(object{"input": "context", "previous_response_id": kept["id"], "store": false})
	require.Contains(t, textOf(forked), "3 messages")
	g.get("/responses/" + kept["id"].(string))
}

// A background response answers at once, can be followed, and cancelled.
func TestBackground(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	begun := g.create(object{"input": "slow", "background": true})
	require.Contains(t, []string{"queued", "in_progress"}, begun["status"])
	id := begun["id"].(string)
	require.Equal(t, "previous_response_in_progress", g.refused(400, "POST", "/responses", object{
		"model": "brain", "input": "x", "previous_response_id": id,
	})["code"])
	_, cancelled := g.send("POST", "/responses/"+id+"/cancel", nil)
	require.Equal(t, "cancelled", cancelled["status"])
	_, again := g.send("POST", "/responses/"+id+"/cancel", nil)
	require.Equal(t, cancelled, again)
	all := g.events("GET", "/responses/"+id+"?stream=true", nil)
	require.Equal(t, "response.incomplete", all[len(all)-1]["type"])
	require.Equal(t, []string{"created", "queued", "in_progress"}, typesOf(all)[:3])

	done := g.create(object{"input": "hello", "background": true})
	all = g.events("GET", "/responses/"+done["id"].(string)+"?stream=true&starting_after=1", nil)
	require.Equal(t, "response.completed", all[len(all)-1]["type"])
	require.Equal(t, "Hello there.", textOf(all[len(all)-1]["response"].(object)))
	sync := g.create(object{"input": "hello"})
	require.Equal(t, "not_cancellable", g.refused(400, "POST", "/responses/"+sync["id"].(string)+"/cancel", nil)["code"])
}

// A failure, a limit and a stop are ends of their own.
func TestEnds(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	failed := g.create(object{"input": "fail"})
	require.Equal(t, "failed", failed["status"])
	require.Equal(t, object{"code": "invalid_prompt", "message": "no such thing"}, failed["error"])
	all := g.events("POST", "/responses", object{"model": "brain", "input": "fail", "stream": true})
	require.Equal(t, "response.failed", all[len(all)-1]["type"])
	long := g.create(object{"input": "long"})
	require.Equal(t, "incomplete", long["status"])
	require.Equal(t, object{"reason": "max_output_tokens"}, long["incomplete_details"])
	cited := itemOf(g.create(object{"input": "cite"}), "message")["content"].([]any)[0].(object)
	require.Equal(t, "See there.", cited["text"])
	require.Equal(t, "https://a.example", cited["annotations"].([]any)[0].(object)["url"])
}

// What can't be done is said in the protocol's own form, and nothing is made.
func TestRefusals(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	refuse := func(status int, code, param string, body object) {
		t.Helper()
		detail := g.refused(status, "POST", "/responses", body)
		require.Equal(t, code, detail["code"], "%v", detail)
		if param != "" {
			require.Equal(t, param, detail["param"])
		}
		require.Equal(t, "invalid_request_error", detail["type"])
	}
	refuse(404, "model_not_found", "model", object{"model": "nobody", "input": "x"})
	refuse(400, "missing_required_parameter", "model", object{"input": "x"})
	refuse(400, "missing_required_parameter", "input", object{"model": "brain"})
	refuse(400, "unsupported_value", "tools[0].type", object{"model": "brain", "input": "x", "tools": []any{object{"type": "web_search"}}})
	refuse(400, "unsupported_value", "tool_choice", object{"model": "brain", "input": "x", "tool_choice": "required"})
	refuse(400, "unsupported_value", "text.format", object{"model": "brain", "input": "x", "text": object{"format": object{"type": "json_object"}}})
	refuse(400, "unsupported_value", "background", object{"model": "brain", "input": "x", "background": true, "store": false})
	refuse(400, "invalid_value", "input[0].role", object{"model": "brain", "input": []any{object{"role": "critic", "content": "x"}}})
	refuse(400, "unsupported_value", "input[0].type", object{"model": "brain", "input": []any{object{"type": "computer_call"}}})
	refuse(400, "previous_response_not_found", "previous_response_id", object{"model": "brain", "input": "x", "previous_response_id": "resp_no_thing"})
	refuse(400, "tool_call_not_found", "input[0]", object{"model": "brain", "input": []any{object{"type": "function_call_output", "call_id": "c", "output": "x"}}})
	require.Equal(t, "clock", strings.Split(g.refused(400, "POST", "/responses", object{
		"model": "brain", "input": "x", "tools": []any{object{"type": "function", "name": "clock", "parameters": nil}},
	})["message"].(string), `"`)[1])
	for _, path := range []string{"/responses/resp_a_b", "/responses/x", "/conversations/conv_x", "/conversations/x/items"} {
		g.refused(404, "GET", path, nil)
	}
	g.refused(404, "POST", "/responses", object{"model": "brain", "input": "x", "conversation": "conv_x"})
	g.refused(400, "GET", "/responses/resp_a_b?starting_after=1", nil)
	status, raw := g.raw("POST", "/responses", "no object")
	require.Equal(t, 400, status)
	require.Contains(t, string(raw), `"type":"invalid_request_error"`)
	sessions := 0
	for _, err := range g.log.Sessions(t.Context()) {
		require.NoError(t, err)
		sessions++
	}
	require.Zero(t, sessions)
}

// The limits of metadata are in characters, not bytes.
func TestMetadataCountsCharacters(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	pairs := object{strings.Repeat("ü", 64): strings.Repeat("語", 512)}
	require.Equal(t, pairs, g.create(object{"input": "hello", "metadata": pairs})["metadata"])
	status, conversation := g.send("POST", "/conversations", object{"metadata": pairs})
	require.Equal(t, 200, status, "%v", conversation)
	require.Equal(t, pairs, conversation["metadata"])
	for _, pairs := range []object{{strings.Repeat("ü", 65): "v"}, {"k": strings.Repeat("語", 513)}} {
		require.Equal(t, "metadata", g.refused(400, "POST", "/responses", object{"model": "brain", "input": "hello", "metadata": pairs})["param"])
	}
}

// A server that does not speak the protocol has none of its routes.
func TestOff(t *testing.T) {
	t.Parallel()
	g := newRig(t, func(o *httpapi.Options) { o.Protocols.Responses = nil })
	status, o := g.send("POST", "/responses", object{"model": "brain", "input": "x"})
	require.Equal(t, 404, status)
	require.Equal(t, "NOT_FOUND", o["code"])
}
