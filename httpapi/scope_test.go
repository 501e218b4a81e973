package httpapi_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/httpapi"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/auth"
	"github.com/helixd/helixd/httpapi/chat"
	"github.com/helixd/helixd/integration/testkit"
)

// limitedTo lets the bearer of "for <session>" use that session and the fork
// "<session>-fork", and "anybody" everything.
func limitedTo(sessions ...string) func(*httpapi.Options) {
	return func(o *httpapi.Options) {
		tokens := []auth.Token{{Token: "anybody", Operations: []string{"*"}, Sessions: []string{"*"}}}
		for _, s := range sessions {
			tokens = append(tokens, auth.Token{Token: "for " + s, Operations: []string{"*"}, Sessions: []string{s, s + "-fork"}})
		}
		o.Auth = auth.BearerTokens(tokens)
		o.Chat = &chat.Options{}
		o.ReadModels = foldedRows{o.Log}
		o.Memories = remembering(o.Log)
	}
}

func bearer(token string) []string { return []string{"Authorization", "Bearer " + token} }

// writer is an agent that any session here may have.
func writer() agentloop.Agent {
	return agentloop.Agent{Name: "writer", Model: scripted.New([]scripted.Turn{{Text: "hello"}, {Text: "again"}}, nil)}
}

// waiter is an agent that waits for the client's answer to its call "c".
func waiter() agentloop.Agent {
	return agentloop.Agent{
		Name: "waiter", Tools: []agentloop.Tool{{Name: "locate", Client: true}},
		Model: scripted.New(saying("found", calling("c", "locate", `{}`)), nil),
	}
}

// classified is what nobody else may see.
func classified(id string) string { return "classified of " + id }

func (a *testAPI) finished(id string) {
	a.t.Helper()
	a.append(id, created(id), text(id, classified(id)), ended(id, `"`+classified(id)+`"`))
}

// contents are all sessions with all of their records, read past the server.
func (a *testAPI) contents() map[string]string {
	a.t.Helper()
	all := map[string]string{}
	for id, err := range a.log.Sessions(a.ctx()) {
		require.NoError(a.t, err)
		var records strings.Builder
		for r, err := range a.log.Read(a.ctx(), id, 0, 0) {
			require.NoError(a.t, err)
			line, err := r.MarshalJSON()
			require.NoError(a.t, err)
			records.Write(line)
		}
		all[id] = records.String()
	}
	return all
}

// TestScopeOwn: the cases are good ones: who may use a session can, by every
// route.
func TestScopeOwn(t *testing.T) {
	t.Parallel()
	var mine []string
	for i := range httpapi.RouteTable() {
		mine = append(mine, fmt.Sprintf("mine/%d", i))
	}
	a := newAPIOn(t, newLog(t), []agentloop.Agent{writer()}, limitedTo(mine...))
	eachRoute(t, func(t *testing.T, rt httpapi.TestRoute, c routeCase) {
		i := slices.IndexFunc(httpapi.RouteTable(), func(row httpapi.TestRoute) bool { return row == rt })
		a.finished(mine[i])
		got := a.request(rt.Method, c.target(rt, mine[i]), c.bodyFor(t, mine[i], mine[i]+"-fork"), bearer("for "+mine[i])...)
		if c.everybodys {
			got.failed(t, 403, api.CodeUnauthorized)
			got = a.request(rt.Method, c.target(rt, mine[i]), c.bodyFor(t, mine[i], ""), bearer("anybody")...)
			require.NotContains(t, []int{401, 403, 404}, got.status, got.body)
			return
		}
		require.Equal(t, c.status, got.status, got.body)
		for _, other := range mine {
			if other != mine[i] {
				require.NotContains(t, got.body, classified(other)+`"`)
			}
		}
	})
}

// TestScopeOthers: who is limited to a session reaches no other one, by no
// route and by no way to write its id, and does not learn whether it exists.
func TestScopeOthers(t *testing.T) {
	testkit.OneGoroutine(t)
	t.Parallel()
	a := newAPIOn(t, memory.New(), []agentloop.Agent{writer(), waiter()}, limitedTo("alice"))
	for _, id := range []string{"alice", "alice-sub-1", "alice2", "Alice", "alice/x", "a"} {
		a.finished(id)
	}
	// Bob's waits: whatever reaches it changes it.
	got := a.post("/start", `{"sessionId":"bob","agentType":"waiter","message":"`+classified("bob")+`"}`, bearer("anybody")...)
	require.Equal(t, 200, got.status, got.body)
	a.stream("/sse?sessionId=bob", bearer("anybody")...).rest()
	before := a.contents()
	eachRoute(t, func(t *testing.T, rt httpapi.TestRoute, c routeCase) {
		call := func(target, body string) answer {
			var length string
			if rt.Method == "POST" {
				length = fmt.Sprintf("Content-Length: %d\r\n", len(body))
			}
			return raw(t, a, fmt.Sprintf("%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer for alice\r\n%s\r\n%s",
				rt.Method, target, length, body))
		}
		for _, other := range []string{"bob", "alice-sub-1", "alice2", "Alice", "ALICE", "alice/x", "alice ", " alice", "a", "*", "alice*", "nobody"} {
			if rt.NamesIn == "" {
				break
			}
			got := call(c.target(rt, other), c.bodyFor(t, other, "alice-fork"))
			got.failed(t, 403, api.CodeUnauthorized)
			require.NotContains(t, got.body, "classified")
		}
		for _, trick := range tricksOf(t, rt, c) {
			got := call(trick.target, trick.body)
			require.NotContains(t, strings.ReplaceAll(got.body, classified("alice")+`"`, ""), "classified", "%+v", trick)
			if !trick.own {
				require.Contains(t, []int{400, 403, 404}, got.status, "%+v: %s", trick, got.body)
			}
		}
	})
	after := a.contents()
	for id, records := range before {
		if id != "alice" {
			require.Equal(t, records, after[id], "session %q", id)
		}
	}
	for id := range after {
		own := id == "alice-fork" || id == eventlog.MemoryScope{Kind: eventlog.MemoryOfSession, ID: "alice"}.LogID()
		require.True(t, before[id] != "" || own, "session %q has come to be", id)
	}
}

// trick is a request for another session that looks like one for alice.
type trick struct {
	target, body string
	own          bool // it may succeed: it is one for alice
}

// tricksOf returns the ways to write one session and mean another.
func tricksOf(t *testing.T, rt httpapi.TestRoute, c routeCase) (tricks []trick) {
	t.Helper()
	body := c.bodyFor(t, "alice", "alice-fork")
	add := func(own bool, target, body string) { tricks = append(tricks, trick{target, body, own}) }
	// The wrong place never counts. Erasing alice has to wait.
	if rt.Method != "DELETE" && !c.public && !c.everybodys {
		target := c.target(rt, "alice")
		sep := "?"
		if strings.Contains(target, "?") {
			sep = "&"
		}
		for _, more := range []string{"id=bob", "session=bob", "SessionId=bob", "sessionid=bob", "agentId=bob"} {
			add(true, target+sep+more, body)
		}
		if rt.NamesIn != "query" {
			add(true, target+sep+"sessionId=bob", body)
		}
	}
	switch rt.NamesIn {
	case "path":
		for _, id := range []string{
			"alice/../bob", "alice/..%2Fbob", "alice%2F..%2Fbob", "%2e%2e/sessions/bob", "..%2Fsessions%2Fbob", "./bob", "alice/./../bob", "/bob", "alice//bob",
			"bob/", "bob%2F", "%62ob", "%62%6F%62", "%2562ob", "b%6fb", "bob%00", "alice%00bob", "alice;bob", "alice;sessionId=bob", "bob;alice",
			"alice,bob", "alice%0Abob", "alice%2Cbob", "bob%20", "%20bob", "bob%23alice", "bob%3Fx=alice", "%ff", "%", "", "*", "%2A", "alice%2A", "..", "%2e", "%c0%aebob",
		} {
			add(false, c.targetOf(rt, id, ""), body)
		}
		for _, other := range []string{strings.Replace(rt.Pattern, "{id}", "bob", 1) + "/", strings.ToUpper(strings.Replace(rt.Pattern, "{id}", "bob", 1))} {
			add(false, other, body)
		}
	case "query":
		for _, id := range []string{
			"alice&sessionId=bob", "bob&sessionId=alice", "alice;sessionId=bob", "bob;sessionId=alice", "alice%26sessionId=bob", "alice%26sessionId%3Dbob",
			"alice&%73essionId=bob", "%62ob", "b%6Fb", "%2562ob", "alice%00", "alice%2Cbob", "alice,bob", "", "*", "%2A", "alice%20", "+alice", "bob#alice",
		} {
			add(false, c.targetOf(rt, "", id), body)
		}
		add(false, rt.Pattern, body)
		add(false, rt.Pattern+"?SessionId=bob", body)
		add(false, rt.Pattern+"?sessionId[]=bob", body)
	case "both": // neither is a way to the other
		for _, params := range []string{
			"a=alice&b=bob", "a=bob&b=alice", "a=bob&b=bob", "b=bob&a=alice", "a=alice&b=%62ob", "a=alice", "b=alice", "a=bob", "b=bob", "a=&b=bob", "a=alice&b=",
			"a=alice&b=alice&b=bob", "a=bob&a=alice&b=alice", "a=alice;b=bob", "a=alice&B=bob", "a=alice&b=*", "a=alice&b=alice,bob", "a=alice&b=alice%00",
			"a=alice&b=bob&bAt=0", "a=alice&b=bob&aAt=x", "a=alice&b=nobody", "A=bob&B=alice", "sessionId=alice&a=bob&b=bob", "a=alice&b=bob%20", "a=alice&b=alice-sub-1",
		} {
			add(false, rt.Pattern+"?"+params, body)
		}
	case "scope":
		for _, params := range []string{
			"scope=session&id=bob", "scope=session&id=%62ob", "scope=session&id=alice&id=bob", "scope=session&scope=user&id=alice", "scope=user&id=alice", "scope=user&id=bob",
			"scope=agent&id=writer", "scope=agent&id=alice", "scope=SESSION&id=alice", "scope=session", "id=alice", "scope=&id=alice", "scope=session&id=", "scope=session&id=*",
			"scope=session&id=alice%00", "scope=session&id=alice/../bob", "scope=session&id=alice,bob", "scope=session&sessionId=alice&id=bob", "Scope=session&id=alice",
		} {
			add(false, strings.Replace(rt.Pattern, "{memoryId}", "m", 1)+"?"+params, body)
		}
	}
	if !strings.HasPrefix(body, "{") {
		return tricks
	}
	imports := strings.HasSuffix(rt.Pattern, "/import") // there the member is content: the path counts
	member := func(own bool, old, new string) {
		own = own || imports
		if changed := strings.Replace(body, old, new, 1); changed != body {
			add(own, c.target(rt, "alice"), changed)
		}
	}
	const id = `"sessionId":"alice"`
	for _, twice := range []string{
		id + `,"sessionId":"bob"`, `"sessionId":"bob",` + id, id + `,"session\u0049d":"bob"`, `"\u0073essionId":"bob",` + id,
	} {
		member(false, id, twice)
	}
	for _, value := range []string{`["bob"]`, `["alice","bob"]`, `{"id":"bob"}`, `null`, `7`, `"b\u006fb"`, `"bob\u0000"`, `"alice\u0000bob"`, `"alice\n"`, `"\ud800bob"`, `""`, `"*"`} {
		member(false, id, `"sessionId":`+value)
	}
	for _, more := range []string{
		`"SessionId":"bob",`, `"sessionid":"bob",`, `"SESSIONID":"bob",`, `"sessionId ":"bob",`, `"session_id":"bob",`, `"session":"bob",`, `"streamId":"bob",`,
		`"parentSessionId":"bob",`, `"fromSessionId":"bob",`, `"rootSessionId":"bob",`, `"body":{"sessionId":"bob"},`,
	} {
		member(true, `{`, `{`+more)
	}
	if rt.Pattern == "/memories" {
		const scope = `"scope":"session","id":"alice"`
		for _, other := range []string{
			`"scope":"session","id":"bob"`, `"scope":"user","id":"alice"`, `"scope":"agent","id":"writer"`, `"scope":"session","id":"*"`, `"scope":"session","id":["alice"]`,
			scope + `,"id":"bob"`, `"scope":"user",` + scope, `"sessionId":"alice","scope":"session","id":"bob"`, `"scope":["session"],"id":"alice"`, `"id":"alice"`, `"scope":"session"`,
		} {
			member(false, scope, other)
		}
	}
	// The client's name of the chat is not its session.
	member(true, `"id":"chat"`, `"id":"bob"`)
	member(false, `"id":"chat",`+id, `"id":"bob"`)
	member(false, `"id":"chat",`+id, `"id":"alice","sessionId":"bob"`)
	if rt.NamesIn == "path" && !strings.Contains(body, `"sessionId"`) {
		add(true, c.target(rt, "alice"), strings.Replace(strings.Replace(body, `{`, `{"sessionId":"bob",`, 1), `,}`, `}`, 1))
	}
	if strings.HasSuffix(rt.Pattern, "/fork") {
		const fork = `"sessionId":"alice-fork"`
		for _, value := range []string{`"sessionId":"bob"`, `"sessionId":"alice2"`, `"sessionId":"new"`, `"x":1`, `"sessionId":"alice-fork","sessionId":"new"`} {
			member(false, fork, value)
		}
	}
	if strings.HasSuffix(rt.Pattern, "/chunks") {
		member(false, `"agentId":"alice"`, `"agentId":"bob"`)
	}
	return tricks
}

// TestScopeListing: others' sessions are not even counted.
func TestScopeListing(t *testing.T) {
	t.Parallel()
	a := newAPIOn(t, newLog(t), []agentloop.Agent{writer()}, limitedTo("alice"))
	for _, id := range []string{"a", "alice", "alice-sub-1", "bob"} {
		a.finished(id)
	}
	total := func(query string) int {
		t.Helper()
		var page api.Page[api.Summary]
		got := a.get("/sessions"+query, bearer("for alice")...)
		require.Equal(t, 200, got.status, got.body)
		got.decode(t, &page)
		for _, item := range page.Items {
			require.Equal(t, "alice", item.SessionID)
		}
		return page.Total
	}
	require.Equal(t, 1, total(""))
	require.Equal(t, 1, total("?status=completed"))
	require.Equal(t, 1, total("?offset=1"))
	require.Equal(t, 0, total("?agentType=nobody"))
	for _, parent := range []string{"alice", "bob", "nobody", "alice-sub-1", "*"} {
		require.Equal(t, 0, total("?parentSessionId="+parent), "a root whose id looks like a child's is none")
	}
	a.get("/sessions?parentSessionId=alice&parentSessionId=bob", bearer("for alice")...).failed(t, 400, api.CodeInvalidRequest)
}

// TestScopeOfChildren: a caller that may use a root reaches its sub-agents through the
// root, and not under their own ids.
func TestScopeOfChildren(t *testing.T) {
	testkit.OneGoroutine(t)
	t.Parallel()
	children := []string{"alice-sub-task", "alice-sub-x", "bob-sub-task"}
	a := newAPIOn(t, newLog(t), append(waitingAgents(), writer()), limitedTo(append(children, "alice", "bob")...))
	for _, root := range []string{"alice", "bob"} {
		got := a.post("/start", `{"sessionId":"`+root+`","agentType":"parent","message":"go"}`, bearer("anybody")...)
		require.Equal(t, 200, got.status, got.body)
		a.stream("/sse?sessionId="+root, bearer("anybody")...).rest()
	}
	// One of bob's is called as if it were alice's.
	head, err := a.log.Head(a.ctx(), "bob")
	require.NoError(t, err)
	posing := factBase("alice-sub-x")
	spy, err := eventlog.NewFact("alice-sub-x", &fact.SessionCreated{
		AgentType: "child", Child: &fact.SubSession{ParentSessionID: "bob", CallID: "x", Mode: fact.SubSessionEphemeral}, Base: posing,
	}, eventlog.Labels{})
	require.NoError(t, err)
	_, err = a.log.Append(a.ctx(), "bob", head, []eventlog.Entry{spy})
	require.NoError(t, err)

	ids := func(parent, token string) (ids []string) {
		t.Helper()
		var page api.Page[api.Summary]
		a.get("/sessions?parentSessionId="+parent, bearer(token)...).decode(t, &page)
		for _, item := range page.Items {
			ids = append(ids, item.SessionID)
		}
		return ids
	}
	require.Equal(t, []string{"alice-sub-task"}, ids("alice", "for alice"))
	require.ElementsMatch(t, []string{"alice-sub-x", "bob-sub-task"}, ids("bob", "for bob"))
	require.Contains(t, a.get("/sessions/alice/records", bearer("for alice")...).body, `"alice-sub-task"`)
	for _, child := range children {
		require.Empty(t, ids(child, "anybody"))
		require.Empty(t, ids(child, "for "+child))
		require.Empty(t, ids("bob", "for "+child))
	}

	before := a.contents()
	eachRoute(t, func(t *testing.T, rt httpapi.TestRoute, c routeCase) {
		if rt.NamesIn == "" {
			return
		}
		for _, child := range children {
			a.request(rt.Method, c.target(rt, child), c.bodyFor(t, child, "alice-fork"), bearer("for alice")...).
				failed(t, 403, api.CodeUnauthorized)
			switch rt.Method + " " + rt.Pattern {
			case "POST /start", "POST /chat", "POST /sessions/{id}/chunks", "POST /sessions/{id}/import":
				continue // they begin a session: see below
			case "GET /chat/{id}/stream":
				require.Equal(t, 204, a.request(rt.Method, c.target(rt, child), "", bearer("for "+child)...).status)
				continue
			}
			a.request(rt.Method, c.target(rt, child), c.bodyFor(t, child, child+"-fork"), bearer("for "+child)...).
				failed(t, 404, api.CodeNotFound)
		}
	})
	require.Equal(t, before, a.contents())

	// A caller that may use a child's id as a session has its own session under it.
	body := `{"sessionId":"alice-sub-task","agentType":"writer","message":"hi"}`
	require.Equal(t, 200, a.post("/start", body, bearer("for alice-sub-task")...).status)
	a.stream("/sse?sessionId=alice-sub-task", bearer("for alice-sub-task")...).rest()
	after := a.contents()
	require.Equal(t, before["alice"], after["alice"])
	var page api.Page[api.Summary]
	a.get("/sessions?parentSessionId=alice", bearer("for alice")...).decode(t, &page)
	require.Equal(t, "child", page.Items[0].AgentType, "alice's is what it was")

	// What a child waits for is answered at its root, and there alone.
	answer := `{"sessionId":"%s","toolCallId":"inner","kind":"approval-response","approved":true}`
	a.post("/submit-tool-result", fmt.Sprintf(answer, "bob"), bearer("for alice")...).failed(t, 403, api.CodeUnauthorized)
	got := a.post("/submit-tool-result", fmt.Sprintf(answer, "alice"), bearer("for alice")...)
	require.Equal(t, 200, got.status, got.body)
	require.Equal(t, before["bob"], a.contents()["bob"])
}
