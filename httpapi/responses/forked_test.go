package responses_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/engine/timetravel"
)

// A fork's conversation begins with the items of the one that it was copied from; only their ids
// are others.
func TestAForkHasTheItemsBefore(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	first := g.create(object{"input": "call clock"})
	g.create(object{"input": "hello", "previous_response_id": first["id"]})
	session := sessionOf(first)
	_, err := g.loop.TimeTravel.Fork(t.Context(), timetravel.ForkRequest{FromSessionID: session, NewSessionID: "fork"})
	require.NoError(t, err)

	ids := map[any]bool{}
	itemsOf := func(session string) (all []object) {
		for _, o := range g.get("/conversations/conv_" + session + "/items?order=asc&limit=100")["data"].([]any) {
			item := o.(object)
			require.Equal(t, item, g.get("/conversations/conv_"+session+"/items/"+item["id"].(string)))
			require.False(t, ids[item["id"]])
			ids[item["id"]] = true
			delete(item, "id")
			all = append(all, item)
		}
		return all
	}
	before := itemsOf(session)
	require.Len(t, before, 7)
	require.Equal(t, before, itemsOf("fork"))

	more := g.create(object{"input": "context", "conversation": "conv_fork"})
	require.Equal(t, "conv_fork", more["conversation"].(object)["id"])
	clear(ids)
	require.Equal(t, before, itemsOf(session), "the other one has nothing of it")
	require.Equal(t, before, itemsOf("fork")[:len(before)])
}

// So does a fork that a second continuation of a response makes. What the server has executed does not
// look like a client's call there, and what waits for the client does.
func TestItemsOfASecondContinuation(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	one := g.create(object{"input": "call clock"})
	two := g.create(object{"input": "call get_weather", "tools": []any{weather}, "previous_response_id": one["id"]})
	call := itemOf(two, "function_call")
	three := g.create(object{"previous_response_id": two["id"], "input": []any{object{
		"type": "function_call_output", "call_id": call["call_id"], "output": "fog",
	}}})
	var forks []object
	for range 2 {
		forks = append(forks, g.create(object{"input": "context", "previous_response_id": three["id"]}))
	}
	require.Equal(t, sessionOf(three), sessionOf(forks[0]))
	require.NotEqual(t, sessionOf(three), sessionOf(forks[1]))
	shown := func(o object) (all []object) {
		ids := map[any]bool{}
		for _, it := range g.get("/conversations/conv_" + sessionOf(o) + "/items?order=asc")["data"].([]any) {
			it := it.(object)
			require.False(t, ids[it["id"]])
			ids[it["id"]] = true
			delete(it, "id")
			all = append(all, it)
		}
		return all
	}
	require.Equal(t, shown(forks[0]), shown(forks[1]))
	var types []any
	for _, it := range shown(forks[1]) {
		types = append(types, it["type"])
	}
	require.Equal(t, []any{
		"message", "reasoning", "mcp_call", "message", "message", "reasoning", "function_call", "function_call_output", "message", "message", "message",
	}, types)
	inputs := g.get("/responses/" + forks[1]["id"].(string) + "/input_items")["data"].([]any)
	require.Len(t, inputs, 1)

	output := object{"type": "function_call_output", "call_id": "call_1", "output": "fog"}
	waits := g.create(object{"input": "call get_weather", "tools": []any{weather}})
	kept, copied := g.create(object{"previous_response_id": waits["id"], "input": []any{output}}), g.create(object{"previous_response_id": waits["id"], "input": []any{output}})
	require.NotEqual(t, sessionOf(kept), sessionOf(copied))
	require.Len(t, shown(copied), 5)
	require.Equal(t, shown(kept), shown(copied))

	filled := g.create(object{"model": "form", "input": "call __finish__"})
	require.JSONEq(t, `{"city":"Lisbon"}`, textOf(filled))
	for range 2 {
		forks = append(forks, g.create(object{"model": "form", "input": "call __finish__", "previous_response_id": filled["id"]}))
	}
	require.NotEqual(t, sessionOf(filled), sessionOf(forks[3]))
	require.Equal(t, shown(forks[2]), shown(forks[3]))
	open := g.create(object{"input": "call pay"})
	approval := object{"type": "mcp_approval_response", "approval_request_id": itemOf(open, "mcp_approval_request")["id"], "approve": true}
	for range 2 {
		forks = append(forks, g.create(object{"previous_response_id": open["id"], "input": []any{approval}}))
	}
	require.NotEqual(t, sessionOf(open), sessionOf(forks[5]))
	types = nil
	for _, it := range shown(forks[5]) {
		types = append(types, it["type"])
	}
	require.Equal(t, []any{"message", "reasoning", "mcp_approval_request", "mcp_approval_response", "mcp_call", "message"}, types)
	require.Len(t, shown(forks[4]), len(types))
}
