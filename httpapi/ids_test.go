package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/httpapi"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/chat"
	"github.com/helixd/helixd/integration/testkit"
)

var oddIDs = []string{
	"*", ">", "a.b", "a/b", "a", "a b", "a+b", "é", "..", ".", "%", "%2F", "a%2Fb", "/", "//", "a/../b", "?x=1", "#", "a;b", "a&b=c", "\\", `"`,
	"<script>", "state", "records", "日本語", strings.Repeat("é", 128),
}

// escape percent-encodes every byte that could mean something.
func escape(id string) string { return strings.ReplaceAll(url.PathEscape(id), ".", "%2E") }

func quoted(t *testing.T, s string) string {
	t.Helper()
	raw, err := json.Marshal(s)
	require.NoError(t, err)
	return string(raw)
}

// TestOddIDs: every id reaches its own session, by each route, and no other.
func TestOddIDs(t *testing.T) {
	testkit.OneGoroutine(t)
	t.Parallel()
	agent := agentloop.Agent{Name: "echo", Model: scripted.New([]scripted.Turn{{Text: "done"}}, nil)}
	a := newAPIOn(t, newLog(t), []agentloop.Agent{agent})
	targets := func(id string) []string {
		p, q := escape(id), url.QueryEscape(id)
		return []string{
			"/sse?sessionId=" + q, "/status?sessionId=" + q, "/chat/" + p + "/snapshot", "/sessions/" + p,
			"/sessions/" + p + "/records", "/sessions/" + p + "/state",
		}
	}
	for i, id := range oddIDs {
		for _, target := range targets(id) {
			a.get(target).failed(t, 404, api.CodeNotFound)
		}
		a.post("/resume", `{"sessionId":`+quoted(t, id)+`}`).failed(t, 404, api.CodeNotFound)
		got := a.post("/start", fmt.Sprintf(`{"sessionId":%s,"agentType":"echo","message":"to %d"}`, quoted(t, id), i))
		require.Equal(t, 200, got.status, got.body)
		var started engine.Started
		got.decode(t, &started)
		require.Equal(t, id, started.SessionID)
		_, texts, end := a.stream("/sse?sessionId=" + url.QueryEscape(id)).rest()
		require.Contains(t, texts, "done")
		require.Equal(t, "end", end.name)
	}
	for i, id := range oddIDs {
		p := escape(id)
		var summary api.Summary
		a.get("/sessions/"+p).decode(t, &summary)
		require.Equal(t, id, summary.SessionID)
		require.Equal(t, api.Counts{Messages: 2, Steps: 1, Runs: 1, Checkpoints: 1}, summary.Counts, "of nobody else")
		var status api.Status
		a.get("/status?sessionId="+url.QueryEscape(id)).decode(t, &status)
		require.Equal(t, id, status.SessionID)
		require.Contains(t, a.get("/sessions/"+p+"/records").body, fmt.Sprintf(`"to %d"`, i))
		require.Contains(t, a.get("/chat/"+p+"/snapshot").body, fmt.Sprintf(`"to %d"`, i))
		var state struct{ State struct{ SessionID string } }
		a.get("/sessions/"+p+"/state").decode(t, &state)
		require.Equal(t, id, state.State.SessionID)
	}
	var page api.Page[api.Summary]
	a.get("/sessions").decode(t, &page)
	require.Equal(t, len(oddIDs), page.Total)
}

func TestBadIDs(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	for _, id := range []string{"\x00", "a\x00b", "a\nb", "\x7f", "\u0085", "\xff", "a\xc3", "\ufffd", strings.Repeat("x", 257), strings.Repeat("x", 300)} {
		p, q := escape(id), url.QueryEscape(id)
		for _, target := range []string{
			"/sse?sessionId=" + q, "/status?sessionId=" + q, "/chat/" + p + "/snapshot", "/sessions/" + p,
			"/sessions/" + p + "/records", "/sessions/" + p + "/state",
		} {
			a.get(target).failed(t, 400, api.CodeInvalidRequest)
		}
	}
	for _, id := range []string{
		`""`, `"\u0000"`, `"a\nb"`, `"\ud800"`, "\"\xff\"", `"` + strings.Repeat("x", 300) + `"`, `7`, `null`, `["a"]`, `{}`,
	} {
		a.post("/start", `{"sessionId":`+id+`,"agentType":"x","message":"hi"}`).failed(t, 400, api.CodeInvalidRequest)
		a.post("/resume", `{"sessionId":`+id+`}`).failed(t, 400, api.CodeInvalidRequest)
	}
	a.get("/status").failed(t, 400, api.CodeInvalidRequest)
	var page api.Page[api.Summary]
	a.get("/sessions").decode(t, &page)
	require.Zero(t, page.Total)
}

// TestMemoriesAreNoSessions: the log of a memory scope can't be reached as a
// session by any route, to read, to write or to make it, and is in no list.
func TestMemoriesAreNoSessions(t *testing.T) {
	t.Parallel()
	chats := func(o *httpapi.Options) { o.Chat = &chat.Options{} }
	test := func(t *testing.T, a *testAPI) {
		log := eventlog.MemoryScope{Kind: eventlog.MemoryOfUser, ID: "u"}.LogID()
		saved, err := eventlog.NewFact(log, &fact.MemorySaved{
			MemoryID: "m", Content: "likes tea", Base: fact.Base{SessionID: log, Timestamp: 1},
		}, eventlog.Labels{})
		require.NoError(t, err)
		a.append(log, saved)
		a.append("s", created("s"))
		other := eventlog.MemoryScope{Kind: eventlog.MemoryOfUser, ID: "nobody"}.LogID()
		for _, id := range []string{log, other} {
			eachRoute(t, func(t *testing.T, rt httpapi.TestRoute, c routeCase) {
				if rt.NamesIn == "" {
					return
				}
				a.request(rt.Method, c.target(rt, id), c.bodyFor(t, id, "f")).failed(t, 400, api.CodeInvalidRequest)
			})
			a.post("/sessions/s/fork", `{"sessionId":`+quoted(t, id)+`}`).failed(t, 400, api.CodeInvalidRequest)
		}
		var page api.Page[api.Summary]
		a.get("/sessions").decode(t, &page)
		require.Equal(t, 1, page.Total)
		require.Equal(t, "s", page.Items[0].SessionID)
		head, err := a.log.Head(a.ctx(), log)
		require.NoError(t, err)
		require.EqualValues(t, 1, head)
		_, err = a.log.Head(a.ctx(), other)
		require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
	}
	t.Run("folds", func(t *testing.T) { test(t, newAPIOn(t, memory.New(), nil, chats)) })
	t.Run("rows", func(t *testing.T) { test(t, newAPIOn(t, memory.New(), nil, chats, withReadModels(t))) })
}
