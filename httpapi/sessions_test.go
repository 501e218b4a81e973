package httpapi_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/httpapi"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/auth"
	"github.com/helixd/helixd/projector/readmodel"
	"github.com/helixd/helixd/projector/sqlite"
	"github.com/helixd/helixd/snapshot"
)

// eachListing calls test with a server that folds and with one that has read
// models: they answer alike.
func eachListing(t *testing.T, test func(t *testing.T, a *testAPI)) {
	t.Run("folds", func(t *testing.T) { test(t, newAPIOn(t, memory.New(), nil)) })
	t.Run("rows", func(t *testing.T) { test(t, newAPIOn(t, memory.New(), nil, withReadModels(t))) })
}

// withReadModels serves listings from a file beside the log.
func withReadModels(t *testing.T) func(*httpapi.Options) {
	t.Helper()
	return func(o *httpapi.Options) {
		models := sqlite.Open(o.Log.(eventlog.ChangeFeed), snapshot.New(o.Log, nil), sqlite.Options{
			Path: filepath.Join(t.TempDir(), "rows.db"), Patience: within,
		})
		t.Cleanup(models.Close)
		o.ReadModels = models
	}
}

func TestSessionsPages(t *testing.T) { eachListing(t, testSessionsPages) }

func testSessionsPages(t *testing.T, a *testAPI) {
	for i := range 205 {
		id := fmt.Sprintf("s%03d", i)
		a.append(id, created(id))
	}
	list := func(query string) (ids []string, page api.Listing[api.Summary]) {
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
	require.Equal(t, api.Listing[api.Summary]{
		Page: api.Page[api.Summary]{Total: 205, Limit: 50, HasMore: true}, Fresh: readmodel.Fresh{Current: true},
	}, page)
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
	for _, id := range []string{"s017", "s150"} {
		a.append(id, factOf(id, &fact.StreamPaused{Base: factBase(id)}))
	}
	require.Equal(t, []string{"s017", "s150"}, a.listed("?streamStatus=paused&status=active"))
	require.Equal(t, []string{"s017", "s150"}, a.listed("?status=paused"))
	require.Equal(t, []string{"s017", "s150"}, a.listed("?status=paused&streamStatus=paused"))
	require.Empty(t, a.listed("?status=paused&streamStatus=active"))
	_, page = list("?streamStatus=active")
	require.Equal(t, 203, page.Total)
	for _, q := range []string{
		"streamStatus=waiting", "limit=0", "limit=201", "limit=-1", "limit=x", "limit=", "limit=1.5", "offset=-1", "offset=x",
		"offset=99999999999", "limit=1&limit=2", "offset=%zz",
	} {
		a.get("/sessions?"+q).failed(t, 400, api.CodeInvalidRequest)
	}
}

// listed returns the ids that GET /sessions answers with.
func (a *testAPI) listed(query string) []string {
	a.t.Helper()
	var page api.Page[api.Summary]
	answer := a.get("/sessions" + query)
	require.Equal(a.t, 200, answer.status, answer.body)
	answer.decode(a.t, &page)
	got := []string{}
	for _, item := range page.Items {
		got = append(got, item.SessionID)
	}
	return got
}

// A session's forks are listed, and named by the session's erasure, after which they can
// still be listed: an operator erases them as well.
func TestTheForksOfASessionAreKnown(t *testing.T) { eachListing(t, testTheForksOfASession) }

func testTheForksOfASession(t *testing.T, a *testAPI) {
	a.append("s", created("s"), text("s", "x"), text("s/child", "y"))
	a.append("other", created("other"))
	for _, f := range []struct{ from, to string }{{"s", "one"}, {"s", "two"}, {"one", "third"}, {"other", "fourth"}} {
		got := a.post("/sessions/"+f.from+"/fork", `{"sessionId":"`+f.to+`"}`)
		require.Equal(t, 200, got.status, got.body)
	}
	require.Equal(t, []string{"one", "two"}, a.listed("?forkedFrom=s"))
	require.Equal(t, []string{"two"}, a.listed("?forkedFrom=s&offset=1&limit=1"))
	require.Empty(t, a.listed("?forkedFrom=nobody"))
	require.Empty(t, a.listed("?forkedFrom=s&agentType=nobody"))
	a.get("/sessions?forkedFrom=a%00b").failed(t, 400, api.CodeInvalidRequest)
	var page api.Page[api.Summary]
	a.get("/sessions?forkedFrom=other").decode(t, &page)
	require.Equal(t, 1, page.Total)
	require.Equal(t, "other", page.Items[0].ForkedFrom)
	var summary api.SessionSummary
	a.get("/sessions/one").decode(t, &summary)
	require.Equal(t, "s", summary.ForkedFrom)
	a.get("/sessions/s").decode(t, &summary)

	var erased api.Erased
	a.request("DELETE", "/sessions/s", "").decode(t, &erased)
	if strings.HasSuffix(t.Name(), "/rows") {
		require.Equal(t, []string{"one", "two"}, erased.Forks)
	} else {
		require.Equal(t, []string{}, erased.Forks, "it would take a fold of each session")
	}
	require.Equal(t, []string{"one", "two"}, a.listed("?forkedFrom=s"))
	a.request("DELETE", "/sessions/one", "").decode(t, &erased)
	require.Equal(t, []string{"two"}, a.listed("?forkedFrom=s"))
}

// An erasure names the forks that its caller may erase as well, and no others.
func TestAnErasureNamesNobodyElsesForks(t *testing.T) {
	a := newAPIOn(t, memory.New(), nil, withReadModels(t), func(o *httpapi.Options) {
		o.Auth = auth.BearerTokens([]auth.Token{
			{Token: "secret-mine", Operations: []string{"*"}, Sessions: []string{"mine*"}},
			{Token: "secret-all", Operations: []string{"*"}, Sessions: []string{"*"}},
		})
	})
	a.append("mine", created("mine"))
	for _, fork := range []string{"mine-2", "theirs"} {
		require.Equal(t, 200, a.post("/sessions/mine/fork", `{"sessionId":"`+fork+`"}`, bearer("secret-all")...).status)
	}
	var erased api.Erased
	a.request("DELETE", "/sessions/mine", "", bearer("secret-mine")...).decode(t, &erased)
	require.Equal(t, []string{"mine-2"}, erased.Forks)
}

// Nor those of another tenant, which had a session of the id before.
func TestAnErasureNamesNoForksOfAnotherTenant(t *testing.T) {
	a := newAPIOn(t, memory.New(), nil, withReadModels(t), withTeams)
	a.finishedIn("blue", "", "s")
	require.Equal(t, 200, a.post("/sessions/s/fork", `{"sessionId":"of-blue"}`, bearer("blue")...).status)
	require.Equal(t, 200, a.request("DELETE", "/sessions/s", "", bearer("blue")...).status)
	a.finishedIn("red", "", "s")
	require.Equal(t, 200, a.post("/sessions/s/fork", `{"sessionId":"of-red"}`, bearer("red")...).status)
	var erased api.Erased
	a.request("DELETE", "/sessions/s", "", bearer("red")...).decode(t, &erased)
	require.Equal(t, []string{"of-red"}, erased.Forks)
}

func TestSessionsFilters(t *testing.T) { eachListing(t, testSessionsFilters) }

func testSessionsFilters(t *testing.T, a *testAPI) {
	session := func(id, agent, user string, tags ...string) eventlog.Entry {
		return factOf(id, &fact.SessionCreated{AgentType: agent, UserID: user, Tags: tags, Base: factBase(id)})
	}
	a.append("a", session("a", "x", "u1", "red", "blue"))
	a.append("b", session("b", "y", "u1", "red"), requested("b", "r"),
		factOf("b", &fact.RunEnded{RunID: "r", Status: fact.RunCompleted, Base: factBase("b")}), ended("b", "1"))
	a.append("c", session("c", "y", ""), text("c", "x"), text("c/child", "x"), text("c/another", "x"))
	for query, want := range map[string][]string{
		"":                                 {"a", "b", "c"},
		"agentType=y":                      {"b", "c"},
		"agentType=Y":                      {},
		"status=completed":                 {"b"},
		"status=active":                    {"a", "c"},
		"userId=u1":                        {"a", "b"},
		"tag=red":                          {"a", "b"},
		"tag=red&status=active&userId=u1":  {"a"},
		"parentSessionId=c":                {"c/another", "c/child"},
		"parentSessionId=c&agentType=none": {},
		"parentSessionId=a":                {},
		"parentSessionId=nobody":           {},
		"parentSessionId=c&limit=1":        {"c/another"},
	} {
		require.Equal(t, want, a.listed("?"+query), query)
	}
	for _, bad := range []string{
		"unknown=1", "tags=red", "parentSessionId=%00", "parentSessionId=", "userId=", "agentType=", "tag=", "status=", "status=Active", "status=running", "userId=a&userId=b",
		"tag=" + strings.Repeat("x", 1025),
	} {
		a.get("/sessions?"+bad).failed(t, 400, api.CodeInvalidRequest)
	}
}

func TestSummary(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	seqs := a.append("s", created("s"), factOf("s", &fact.UserMessage{Content: "hi", Base: factBase("s")}), requested("s", "run-1"), text("s", "a"))
	var raw map[string]any
	a.get("/sessions/s").decode(t, &raw)
	var want map[string]any
	require.NoError(t, json.Unmarshal([]byte(fmt.Sprintf(`{
		"sessionId":"s","streamId":"s","agentType":"writer","status":"active","streamStatus":"active","isExecuting":false,
		"currentRun":{"runId":"run-1","turn":1,"mode":"start","status":"running","startSequence":%d,"stepCount":0,"claims":0,"startedAt":1},
		"createdAt":1,"updatedAt":1,"counts":{"messages":1,"steps":0,"runs":1,"checkpoints":0},"headSequence":%d,"durability":"unknown",
		"pendingToolCalls":[]}`, seqs[1], seqs[3])), &want))
	require.Equal(t, want, raw)
	a.get("/sessions/nobody").failed(t, 404, api.CodeNotFound)
}

// TestSessionsFoldedOrKept: read models answer as folds do, word for word.
func TestSessionsFoldedOrKept(t *testing.T) {
	t.Parallel()
	log := memory.New()
	folding := newAPIOn(t, log, append(waitingAgents(), writer()))
	for i, agent := range []string{"parent", "asker", "writer"} {
		id := fmt.Sprint("s", i)
		got := folding.post("/start", fmt.Sprintf(`{"sessionId":%q,"agentType":%q,"message":"go","userId":"u","metadata":{"n":"%d","all":"x=y"}}`, id, agent, i))
		require.Equal(t, 200, got.status, got.body)
		folding.stream("/sse?sessionId=" + id).rest()
	}
	folding.append("old", factOf("old", &fact.SessionCreated{
		AgentType: "writer", Metadata: map[string]string{"n": "1"}, Base: fact.Base{SessionID: "old", Timestamp: 1_000},
	}))
	folding.append("outside", text("outside", "x"), text("outside/a", "y"))
	odd := text("outside", "z")
	odd.Payload = []byte(`{"type":"text_delta"`)
	folding.append("outside", odd)
	keeping := newAPIOn(t, log, nil, withReadModels(t))
	for _, query := range []string{
		"", "?userId=u", "?userId=nobody", "?agentType=asker", "?status=active", "?status=completed", "?limit=1&offset=1", "?offset=9",
		"?parentSessionId=s0", "?parentSessionId=outside", "?parentSessionId=s0&userId=u", "?parentSessionId=nobody",
		"?metadata=n=1", "?metadata=n%3D1&metadata=all%3Dx%3Dy", "?metadata=n=", "?metadata=other=1", "?from=1000", "?from=1001", "?to=1000",
		"?to=1001", "?from=2026-01-01&metadata=n=1", "?from=1000&to=1001&metadata=n=2", "?parentSessionId=s0&from=1001", "?parentSessionId=s0&to=1001",
	} {
		require.JSONEq(t, folding.get("/sessions"+query).body, keeping.get("/sessions"+query).body, query)
	}
	for query, want := range map[string][]string{
		"?metadata=n=1": {"old", "s1"}, "?metadata=n=1&metadata=all=x=y": {"s1"}, "?from=1000&to=1001": {"old"}, "?from=1001&metadata=n=1": {"s1"}, "?to=1": {},
	} {
		require.ElementsMatch(t, want, folding.listed(query), query)
	}
	require.Contains(t, keeping.get("/sessions").body, `"parked":1`)
	require.Contains(t, keeping.get("/readyz").body, `"readModels":{"current":true,"parked":1}`)
	require.Contains(t, keeping.get("/parked").body, `"sessionId":"outside"`)
}
