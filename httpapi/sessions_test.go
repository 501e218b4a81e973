package httpapi_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/httpapi"
)

func TestSessionsPages(t *testing.T) {
	a := newAPIOn(t, memory.New(), nil)
	for i := range 205 {
		id := fmt.Sprintf("s%03d", i)
		a.append(id, created(id))
	}
	list := func(query string) (ids []string, page httpapi.Page[httpapi.Summary]) {
		t.Helper()
		a.get("/sessions"+query).decode(t, &page)
		for _, item := range page.Items {
			ids = append(ids, item.SessionID)
		}
		return ids, page
	}
	ids, page := list("")
	require.Len(t, ids, 50)
	require.Equal(t, "s000", ids[0])
	page.Items = nil
	require.Equal(t, httpapi.Page[httpapi.Summary]{Total: 205, Limit: 50, HasMore: true}, page)
	ids, page = list("?limit=200&offset=100")
	require.Len(t, ids, 105)
	require.Equal(t, "s204", ids[104])
	require.False(t, page.HasMore)
	ids, page = list("?limit=1&offset=203&agentType=writer")
	require.Equal(t, []string{"s203"}, ids)
	require.True(t, page.HasMore)
	require.Equal(t, 205, page.Total)
	ids, page = list("?offset=205")
	require.Empty(t, ids)
	require.False(t, page.HasMore)
	require.Contains(t, a.get("/sessions?offset=300").body, `"items":[]`)
	for _, q := range []string{
		"limit=0", "limit=201", "limit=-1", "limit=x", "limit=", "limit=1.5", "offset=-1", "offset=x",
		"offset=99999999999", "limit=1&limit=2", "offset=%zz",
	} {
		a.get("/sessions?"+q).failed(t, 400, httpapi.CodeInvalidRequest)
	}
}

func TestSessionsFilters(t *testing.T) {
	a := newAPIOn(t, memory.New(), nil)
	session := func(id, agent, user string, tags ...string) eventlog.Entry {
		return fact(id, &eventlog.SessionCreated{AgentType: agent, UserID: user, Tags: tags, FactBase: factBase(id)})
	}
	a.append("a", session("a", "x", "u1", "red", "blue"))
	a.append("b", session("b", "y", "u1", "red"), requested("b", "r"),
		fact("b", &eventlog.RunEnded{RunID: "r", Status: eventlog.RunCompleted, FactBase: factBase("b")}), ended("b", "1"))
	a.append("c", session("c", "y", ""), text("c", "x"), text("c/child", "x"), text("c/another", "x"))
	for query, want := range map[string][]string{
		"":                                 {"a", "b", "c"},
		"agentType=y":                      {"b", "c"},
		"agentType=Y":                      {},
		"status=completed":                 {"b"},
		"status=active":                    {"a", "c"},
		"userId=u1":                        {"a", "b"},
		"userId=":                          {"c"},
		"tag=red":                          {"a", "b"},
		"tag=red&status=active&userId=u1":  {"a"},
		"parentSessionId=":                 {"a", "b", "c"},
		"parentSessionId=c":                {"c/another", "c/child"},
		"parentSessionId=c&agentType=none": {},
		"parentSessionId=a":                {},
		"parentSessionId=nobody":           {},
		"parentSessionId=c&limit=1":        {"c/another"},
		"unknown=1":                        {"a", "b", "c"},
	} {
		var page httpapi.Page[httpapi.Summary]
		a.get("/sessions?"+query).decode(t, &page)
		got := []string{}
		for _, item := range page.Items {
			got = append(got, item.SessionID)
		}
		require.Equal(t, want, got, query)
	}
	a.get("/sessions?parentSessionId=%00").failed(t, 400, httpapi.CodeInvalidRequest)
}

func TestSummary(t *testing.T) {
	a := newAPI(t)
	seqs := a.append("s", created("s"), fact("s", &eventlog.UserMessage{Content: "hi", FactBase: factBase("s")}), requested("s", "run-1"), text("s", "a"))
	var raw map[string]any
	a.get("/sessions/s").decode(t, &raw)
	var want map[string]any
	require.NoError(t, json.Unmarshal([]byte(fmt.Sprintf(`{
		"sessionId":"s","streamId":"s","agentType":"writer","status":"active","streamStatus":"active","isExecuting":false,
		"currentRun":{"runId":"run-1","turn":1,"mode":"start","status":"running","startSequence":%d,"stepCount":0,"claims":0,"startedAt":1},
		"createdAt":1,"updatedAt":1,"counts":{"messages":1,"steps":0,"runs":1,"checkpoints":0},"headSequence":%d,"durability":"unknown",
		"pendingToolCalls":[]}`, seqs[1], seqs[3])), &want))
	require.Equal(t, want, raw)
	a.get("/sessions/nobody").failed(t, 404, httpapi.CodeNotFound)
}
