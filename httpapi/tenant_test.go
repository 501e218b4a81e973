package httpapi_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/memory"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	logmemory "github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/httpapi"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/auth"
	"github.com/helixd/helixd/httpapi/chat"
)

// withTeams has callers with a tenant and no user: red and blue for themselves, desk
// for all; and plain, without a tenant.
func withTeams(o *httpapi.Options) {
	all := []string{"*"}
	tokens := []auth.Token{
		{Token: "red", Name: "red's token", Operations: all, Sessions: all, Tenant: "red"},
		{Token: "blue", Name: "blue's token", Operations: all, Sessions: all, Tenant: "blue"},
		{Token: "desk", Name: "desk's token", Operations: []string{"*", "act-as"}, Sessions: all, Tenant: "red"},
		{Token: "red-ann", Name: "red-ann", Operations: all, Sessions: all, Tenant: "red", User: "ann"},
		{Token: "blue-ann", Name: "blue-ann", Operations: all, Sessions: all, Tenant: "blue", User: "ann"},
		{Token: "plain", Name: "plain's token", Operations: all, Sessions: all},
	}
	o.Auth, o.Identify = auth.BearerTokens(tokens), auth.TokenCallers(tokens)
	o.Chat, o.Memories = &chat.Options{}, remembering(o.Log)
}

// A fork of a session without a tenant is its caller's tenant's.
func TestAForkIsOfItsCallersTenant(t *testing.T) {
	a := newAPIOn(t, logmemory.New(), []agentloop.Agent{writer()}, withTeams)
	a.finishedIn("", "ann", "free")
	a.post("/sessions/free/fork", `{"sessionId":"adopted"}`, bearer("desk")...).done(t)
	require.Equal(t, 200, a.get("/sessions/adopted", bearer("red")...).status)
}

// Listings, searches and sums are of the caller's tenant.
func TestTenantsListings(t *testing.T) {
	t.Parallel()
	agent := agentloop.Agent{Name: "writer", Model: scripted.New([]scripted.Turn{{Text: "hello", Usage: fact.TokenUsage{Prompt: 2, Completion: 1}}}, nil)}
	test := func(t *testing.T, targets []string, change ...func(*httpapi.Options)) {
		a := newAPIOn(t, logmemory.New(), []agentloop.Agent{agent}, append(change, withTeams)...)
		for _, token := range []string{"red", "blue", "plain"} {
			id := "of-" + token
			a.post("/start", fmt.Sprintf(`{"sessionId":%q,"agentType":"writer","message":"secret of %s","userId":"ann"}`, id, token), bearer(token)...).done(t)
			a.stream("/sse?sessionId="+id, bearer(token)...).rest()
			a.append(id, factOf(id, &fact.ToolResult{RunID: "r", StepID: "s", ToolCallID: "c", ToolName: "t", Result: json.RawMessage("1"), Base: factBase(id)}))
		}
		for _, target := range targets {
			total := func(token string) int {
				var found struct{ Total json.RawMessage }
				a.get(target, bearer(token)...).decode(t, &found)
				var sum struct{ Sessions int }
				n, err := strconv.Atoi(string(found.Total))
				if err != nil {
					require.NoError(t, json.Unmarshal(found.Total, &sum))
					n = sum.Sessions
				}
				return n
			}
			red := a.get(target, bearer("red")...).done(t).body
			require.NotContains(t, red, "of-blue", target)
			require.NotContains(t, red, "of-plain", target)
			require.Positive(t, total("red"), target)
			require.Equal(t, 3*total("red"), total("plain"), target)
			require.Equal(t, total("plain"), total("desk"), target)
		}
	}
	t.Run("folds", func(t *testing.T) {
		test(t, []string{"/sessions", "/sessions?userId=ann"})
	})
	t.Run("rows", func(t *testing.T) {
		test(t, []string{
			"/sessions", "/sessions?userId=ann", "/sessions?sort=updated", "/runs", "/runs?userId=ann", "/search?q=secret", "/search?q=secret&userId=ann",
			"/usage", "/usage?by=model&userId=ann", "/parked",
		}, withReadModels(t))
	})
}

// What a caller with a tenant reaches of memories are those of its tenant's sessions.
// Two tenants whose users have the same name, in sessions of callers that may name any
// user: the agent of one is not reminded of the other's memories.
func TestTenantsUsersOfTheSameName(t *testing.T) {
	t.Parallel()
	log := newLog(t)
	m := remembering(log)
	save := json.RawMessage(`{"content":"the dog is called Rex"}`)
	saver := agentloop.Agent{Name: "saver", Model: scripted.New([]scripted.Turn{{ToolCalls: []scripted.Call{{Name: "save_memory", Arguments: save}}}, {Text: "ok"}}, nil)}
	seeker := agentloop.Agent{Name: "seeker", Model: scripted.New([]scripted.Turn{{ToolCalls: []scripted.Call{{Name: "search_memory", Arguments: json.RawMessage(`{"query":"dog"}`)}}}, {Text: "ok"}}, nil)}
	require.NoError(t, m.Equip(&saver, memory.Policy{Scope: eventlog.MemoryOfUser, Save: true}))
	require.NoError(t, m.Equip(&seeker, memory.Policy{Scope: eventlog.MemoryOfUser, Recall: 3, Search: true}))
	a := newAPIOn(t, log, []agentloop.Agent{saver, seeker}, withTeams, func(o *httpapi.Options) { o.Memories = m })

	tell := func(token, id, agent string) string {
		a.post("/start", `{"sessionId":"`+id+`","agentType":"`+agent+`","userId":"ann","message":"What is my dog called?"}`, bearer(token)...).done(t)
		require.Eventually(t, func() bool { return strings.Contains(a.contents()[id], "stream_end") }, within, time.Millisecond)
		return a.contents()[id]
	}
	tell("red", "saves", "saver")
	require.Contains(t, tell("red", "seeks", "seeker"), "Rex")
	for _, token := range []string{"blue", "plain"} {
		require.NotContains(t, tell(token, token, "seeker"), "Rex")
	}
	const mine = "/memories?scope=user&id=ann"
	require.NotContains(t, a.get(mine, bearer("plain")...).done(t).body, "Rex")
	require.Contains(t, a.get(mine+"&tenant=red", bearer("plain")...).done(t).body, "Rex", "a caller that reaches all tenants names one")
	require.Contains(t, a.get(mine, bearer("red-ann")...).done(t).body, "Rex")
	require.NotContains(t, a.get(mine, bearer("blue-ann")...).done(t).body, "Rex")
	a.get(mine+"&tenant=red", bearer("blue-ann")...).failed(t, 403, api.CodeUnauthorized)
	a.post("/memories", `{"scope":"user","id":"ann","tenant":"red","content":"forged"}`, bearer("blue-ann")...).failed(t, 403, api.CodeUnauthorized)
	a.get("/memories?scope=session&id=saves&tenant=red", bearer("plain")...).failed(t, 400, api.CodeInvalidRequest)
}

func TestTenantsMemories(t *testing.T) {
	t.Parallel()
	a := newAPIOn(t, logmemory.New(), nil, withTeams)
	a.finishedIn("red", "ann", "theirs")
	for _, scope := range []string{`"user","id":"ann"`, `"agent","id":"writer"`, `"session","id":"theirs"`} {
		a.post("/memories", `{"scope":`+scope+`,"content":"tea"}`, bearer("plain")...).done(t)
	}
	require.Contains(t, a.get("/memories?scope=session&id=theirs", bearer("red")...).done(t).body, `"tea"`)
	for query, status := range map[string]int{"scope=user&id=ann": 403, "scope=agent&id=writer": 403, "scope=session&id=theirs": 404} {
		code := map[int]api.Code{403: api.CodeUnauthorized, 404: api.CodeNotFound}[status]
		a.get("/memories?"+query, bearer("blue")...).failed(t, status, code)
		a.request("DELETE", "/memories?"+query, "", bearer("blue")...).failed(t, status, code)
		a.request("DELETE", "/memories/m?"+query, "", bearer("blue")...).failed(t, status, code)
	}
}
