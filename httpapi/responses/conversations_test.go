package responses_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A conversation is a session: it has the items of its responses, in order.
func TestConversations(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	status, made := g.send("POST", "/conversations", object{"metadata": object{"k": "v"}, "items": []any{object{"role": "user", "content": "first"}}})
	require.Equal(t, 200, status)
	id := made["id"].(string)
	require.Equal(t, made, g.get("/conversations/"+id))
	_, changed := g.send("POST", "/conversations/"+id, object{"metadata": object{"k": "w"}})
	require.Equal(t, object{"k": "w"}, changed["metadata"])
	_, added := g.send("POST", "/conversations/"+id+"/items", object{"items": []any{object{"role": "assistant", "content": "second"}}})
	require.Len(t, added["data"], 1)

	one := g.create(object{"input": "context", "conversation": id})
	require.Equal(t, object{"id": id}, one["conversation"])
	require.Equal(t, `"Think." with 3 messages and 4 tools`, textOf(one))
	g.create(object{"input": "hello", "conversation": object{"id": id}})
	list := g.get("/conversations/" + id + "/items?order=asc")
	var texts []string
	for _, it := range list["data"].([]any) {
		for _, part := range append(asList(it.(object)["content"]), asList(it.(object)["summary"])...) {
			texts = append(texts, part.(object)["text"].(string))
		}
	}
	require.Equal(t, []string{"first", "second", "context", textOf(one), "hello", "They greet. I too.", "Hello there."}, texts)
	newest := g.get("/conversations/" + id + "/items?limit=2")
	require.Equal(t, true, newest["has_more"])
	require.Equal(t, "Hello there.", newest["data"].([]any)[0].(object)["content"].([]any)[0].(object)["text"])
	next := g.get("/conversations/" + id + "/items?after=" + newest["last_id"].(string))
	require.Len(t, next["data"], 5)
	require.Equal(t, false, next["has_more"])
	item := one["output"].([]any)[0].(object)
	require.Equal(t, item, g.get("/conversations/"+id+"/items/"+item["id"].(string)), "with the id that the response has")
	require.Equal(t, added["data"].([]any)[0], g.get("/conversations/"+id+"/items/"+added["first_id"].(string)))
	g.refused(400, "DELETE", "/conversations/"+id+"/items/"+item["id"].(string), nil)

	g.create(object{"input": "slow", "conversation": id, "background": true})
	require.Equal(t, "conversation_locked", g.refused(409, "POST", "/responses", object{"model": "brain", "input": "x", "conversation": id})["code"])
	close(g.slow)
	branch := g.create(object{"input": "context", "previous_response_id": one["id"]})
	require.NotEqual(t, sessionOf(one), sessionOf(branch), "the conversation stays as it is")
	g.refused(400, "POST", "/responses", object{"model": "brain", "input": "x", "conversation": id, "previous_response_id": one["id"]})

	_, gone := g.send("DELETE", "/conversations/"+id, nil)
	require.Equal(t, "conversation.deleted", gone["object"])
	g.refused(404, "GET", "/conversations/"+id, nil)
	g.refused(404, "GET", "/responses/"+one["id"].(string), nil)
}

// A run that another protocol has begun is a response, too.
func TestRunsOfOtherClients(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	made := g.create(object{"input": "hello"})
	session := sessionOf(made)
	conversation := g.get("/conversations/conv_" + session)
	require.Equal(t, "conversation", conversation["object"])
	require.Len(t, g.get("/conversations/conv_" + session + "/items")["data"], 3)
}
