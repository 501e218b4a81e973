package responses_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// keyed sends a request with an idempotency key.
func (g *rig) keyed(key string, body object) (int, object) {
	g.t.Helper()
	return g.keyedAt(key, "/responses", body)
}

func (g *rig) keyedAt(key, path string, body object) (int, object) {
	g.t.Helper()
	var raw []byte
	if body != nil {
		var err error
		raw, err = json.Marshal(body)
		require.NoError(g.t, err)
	}
	req, err := http.NewRequestWithContext(g.t.Context(), "POST", g.url+"/v1"+path, bytes.NewReader(raw))
	require.NoError(g.t, err)
	req.Header.Set("Idempotency-Key", key)
	answer, err := http.DefaultClient.Do(req)
	require.NoError(g.t, err)
	defer answer.Body.Close()
	var o object
	require.NoError(g.t, json.NewDecoder(answer.Body).Decode(&o))
	return answer.StatusCode, o
}

// A request with an idempotency key is carried out once, however often it is sent: in a new
// session, in a conversation, after a previous response and in a fork of it.
func TestARepeatedRequestBeginsOneResponse(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	_, conversation := g.send("POST", "/conversations", nil)
	first := g.create(object{"input": "hello"})
	g.create(object{"input": "hello", "previous_response_id": first["id"]}) // what follows the first one forks
	last := g.create(object{"input": "hello"})
	for name, body := range map[string]object{
		"new":          {"model": "brain", "input": "hello"},
		"conversation": {"model": "brain", "input": "hello", "conversation": conversation["id"]},
		"follows":      {"model": "brain", "input": "hello", "previous_response_id": last["id"]},
		"fork":         {"model": "brain", "input": "hello", "previous_response_id": first["id"]},
	} {
		status, made := g.keyed("k", body)
		require.Equal(t, 200, status, "%s: %v", name, made)
		sessions := g.sessions()
		var sent sync.WaitGroup
		for range 5 {
			sent.Go(func() {
				status, again := g.keyed("k", body)
				if status != 200 || again["id"] != made["id"] {
					t.Errorf("%s: %d %v, not %v", name, status, again, made["id"])
				}
			})
		}
		sent.Wait()
		require.Equal(t, sessions, g.sessions(), name)
		_, other := g.keyed("l", body)
		require.NotEqual(t, made["id"], other["id"], name)
	}
}

// Requests that come at the same time begin one response, too.
func TestEqualRequestsAtOnceBeginOneResponse(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	ids := make(chan any, 8)
	var sent sync.WaitGroup
	for range cap(ids) {
		sent.Go(func() {
			status, made := g.keyed("k", object{"model": "brain", "input": "hello"})
			if status != 200 {
				t.Errorf("%d %v", status, made)
			}
			ids <- made["id"]
		})
	}
	sent.Wait()
	first := <-ids
	for range cap(ids) - 1 {
		require.Equal(t, first, <-ids)
	}
	require.Equal(t, 1, g.sessions())
}

// So do equal requests that continue a response in a fork, with an answer to the call that waits at its
// end, or with a message after which a call waits.
func TestEqualRequestsAtOnceBeginOneResponseInAFork(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	waits := g.create(object{"input": "call ask"})
	asks := g.create(object{"input": "call pay"})
	greets := g.create(object{"input": "hello"})
	for name, body := range map[string]object{
		"output": {"previous_response_id": waits["id"], "input": []any{object{
			"type": "function_call_output", "call_id": itemOf(waits, "function_call")["call_id"], "output": "fog",
		}}},
		"approval": {"previous_response_id": asks["id"], "input": []any{object{
			"type": "mcp_approval_response", "approval_request_id": itemOf(asks, "mcp_approval_request")["id"], "approve": true,
		}}},
		"message": {"previous_response_id": greets["id"], "input": "call ask"},
	} {
		g.create(body) // what follows now forks
		for _, key := range []string{"k", "l"} {
			made := make(chan object, 8)
			var sent sync.WaitGroup
			for range cap(made) {
				sent.Go(func() {
					status, o := g.keyed(key, body)
					if status != 200 {
						t.Errorf("%s: %d %v", name, status, o)
					}
					made <- o
				})
			}
			sent.Wait()
			require.False(t, t.Failed())
			first := <-made
			for range cap(made) - 1 {
				require.Equal(t, first["id"], (<-made)["id"], name)
			}
			require.Equal(t, first, g.get("/responses/"+first["id"].(string)), name)
		}
	}
}

// A conversation that is made with an idempotency key is made once, with its items, whatever
// happened to it meanwhile.
func TestARepeatedRequestMakesOneConversation(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	for _, body := range []object{nil, {"items": []any{object{"role": "user", "content": "first"}}, "metadata": object{"k": "v"}}} {
		status, made := g.keyedAt("k", "/conversations", body)
		require.Equal(t, 200, status, "%v", made)
		sessions := g.sessions()
		status, again := g.keyedAt("k", "/conversations", body)
		require.Equal(t, 200, status, "%v", again)
		require.Equal(t, made, again)
		require.Equal(t, sessions, g.sessions())
		require.Len(t, g.get("/conversations/" + made["id"].(string) + "/items")["data"], len(asList(body["items"])))
		_, other := g.keyedAt("l", "/conversations", body)
		require.NotEqual(t, made["id"], other["id"])
	}
	status, _ := g.keyedAt("\t", "/conversations", nil)
	require.Equal(t, 400, status)
}

// Items that are added with an idempotency key are added once, and the answer to a repetition
// is the same, though others have come meanwhile. It names the request's own items only.
func TestARepeatedRequestAddsItemsOnce(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	_, conversation := g.send("POST", "/conversations", nil)
	path := "/conversations/" + conversation["id"].(string) + "/items"
	body := object{"items": []any{
		object{"role": "user", "content": "one"}, object{"role": "assistant", "content": "two"}, object{"role": "system", "content": "three"},
	}}
	status, added := g.keyedAt("k", path, body)
	require.Equal(t, 200, status, "%v", added)
	require.Len(t, added["data"], 3)
	g.send("POST", path, object{"items": []any{object{"role": "user", "content": "between"}}})
	var sent sync.WaitGroup
	for range 5 {
		sent.Go(func() {
			if _, again := g.keyedAt("k", path, body); !reflect.DeepEqual(added, again) {
				t.Errorf("%v", again)
			}
		})
	}
	sent.Wait()
	require.Len(t, g.get(path)["data"], 4)

	g.create(object{"input": "call ask", "conversation": conversation["id"]}) // it waits for the client
	_, again := g.keyedAt("k", path, body)
	require.Equal(t, added, again)
	g.refused(409, "POST", path, body)

	_, other := g.send("POST", "/conversations", nil)
	path = "/conversations/" + other["id"].(string) + "/items"
	status, further := g.keyedAt("k", path, body)
	require.Equal(t, 200, status, "%v", further)
	require.NotEqual(t, added["first_id"], further["first_id"], "it is about another conversation")
	_, twice := g.keyedAt("l", path, body)
	require.NotEqual(t, further["first_id"], twice["first_id"])
	require.Len(t, g.get(path)["data"], 6)
}

// Requests that add items at the same time each receive their own.
func TestItemsAddedAtOnce(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	_, conversation := g.send("POST", "/conversations", nil)
	path := "/conversations/" + conversation["id"].(string) + "/items"
	var sent sync.WaitGroup
	for i := range 16 {
		sent.Go(func() {
			text := fmt.Sprint("message ", i)
			_, added := g.send("POST", path, object{"items": []any{object{"role": "user", "content": text}}})
			if list := asList(added["data"]); len(list) != 1 || !strings.Contains(fmt.Sprint(list[0]), text+" ") {
				t.Errorf("%s: %v", text, added)
			}
		})
	}
	sent.Wait()
	require.Len(t, g.get(path + "?limit=100")["data"], 16)
}

func (g *rig) sessions() (n int) {
	g.t.Helper()
	for _, err := range g.log.Sessions(g.t.Context()) {
		require.NoError(g.t, err)
		n++
	}
	return n
}
