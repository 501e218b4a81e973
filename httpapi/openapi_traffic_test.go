package httpapi_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/quota"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/httpapi"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/auth"
	"github.com/helixd/helixd/integration/testkit"
	"github.com/helixd/helixd/snapshot"
	folds "github.com/helixd/helixd/snapshot/memory"
)

// TestOpenAPITraffic: what the server takes and answers is what the document
// says; and of what the document says, nothing is left that was not seen.
func TestOpenAPITraffic(t *testing.T) {
	testkit.Long(t)
	testkit.Sequential(t)
	t.Parallel()
	c := newChecker(t)
	ran := 0
	all := map[string]func(*testing.T, *apiChecker){
		"refusals": trafficRefused, "unknown": trafficUnknown, "beyond the head": trafficAhead, "below the floor": trafficTrimmed,
		"runs": trafficRuns, "calls": trafficCalls, "stops": trafficStops, "stuck": trafficStuck,
		"chat": trafficChat, "chat parts": trafficParts, "chat refusals": trafficChatRefused,
		"streams": trafficStreams, "sessions": trafficSessions, "listings": trafficListings, "memories": trafficMemories, "time travel": trafficTimeTravel,
		"producers": trafficProducers, "imports": trafficImports, "erasure": trafficErasure, "files": trafficFiles, "budgets": trafficBudgets, "server": trafficServer,
	}
	for name, traffic := range all {
		t.Run(name, func(t *testing.T) {
			traffic(t, c)
			ran++
		})
	}
	if ran < len(all) {
		return // of a filter, or a failure
	}
	var unseen []string
	for _, what := range c.doc.described() {
		if !c.seen[what] {
			unseen = append(unseen, what)
		}
	}
	require.Empty(t, unseen)
}

// server serves a log, watched.
func (c *apiChecker) server(t *testing.T, log eventlog.Log, agents []agentloop.Agent, change ...func(*httpapi.Options)) *testAPI {
	t.Helper()
	return c.watch(newAPIOn(t, log, agents, change...))
}

// done checks successes.
func (r answer) done(t *testing.T) answer {
	t.Helper()
	require.Less(t, r.status, 300, r.body)
	return r
}

// trafficRefused: what all operations have in common.
func trafficRefused(t *testing.T, c *apiChecker) {
	guarded := c.server(t, memory.New(), nil, withChat(), func(o *httpapi.Options) {
		o.Auth = func(r *http.Request, _ auth.Operation, _ string) error {
			switch r.Header.Get("As") {
			case "":
				return auth.ErrUnauthorized
			case "reader":
				return auth.ErrForbidden
			case "full":
				return &quota.Exceeded{Limit: quota.Sessions, Most: 1}
			case "late":
				return http.ErrServerClosed
			}
			return fmt.Errorf("no decision")
		}
	})
	a := c.server(t, memory.New(), nil, withChat())
	for _, rt := range httpapi.RouteTable() {
		good := routeCases[rt.Method+" "+rt.Pattern]
		target, body := good.target(rt, "nobody"), good.bodyFor(t, "nobody", "nobody-fork")
		if !good.public {
			guarded.request(rt.Method, target, body).failed(t, 401, api.CodeUnauthorized)
			guarded.request(rt.Method, target, body, "As", "reader").failed(t, 403, api.CodeUnauthorized)
			guarded.request(rt.Method, target, body, "As", "full").failed(t, 429, api.CodeQuotaExceeded)
			guarded.request(rt.Method, target, body, "As", "late").failed(t, 503, api.CodeUnavailable)
			guarded.request(rt.Method, target, body, "As", "riddle").failed(t, 500, api.CodeInternalError)
		}
		if rt.NamesIn != "" && rt.NamesIn != "body" {
			a.request(rt.Method, good.targetOf(rt, "%00", "%00"), body).failed(t, 400, api.CodeInvalidRequest)
		}
		if rt.Method == "POST" {
			a.post(target, "{").failed(t, 400, api.CodeInvalidRequest)
		}
		if good.limit > 0 {
			a.unmeasured(target).failed(t, 411, api.CodeLengthRequired)
			got := raw(t, a, fmt.Sprintf("POST %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: %d\r\n\r\n", target, good.limit+1))
			got.failed(t, 413, api.CodePayloadTooLarge)
			u, err := url.Parse(a.http.URL + target)
			require.NoError(t, err)
			c.check("POST", u, nil, nil, got, true)
		}
		a.request("PUT", target, "").failed(t, 405, api.CodeMethodNotAllowed)
		a.request(rt.Method, rt.Pattern+"/no/where", body).failed(t, 404, api.CodeNotFound)
	}
	a.get("/sessions?limit=0").failed(t, 400, api.CodeInvalidRequest)
}

// unmeasured posts a body without its length.
func (a *testAPI) unmeasured(target string) answer {
	a.t.Helper()
	body := struct{ io.Reader }{strings.NewReader("{}")}
	resp, err := a.http.Client().Post(a.http.URL+target, "application/json", body)
	require.NoError(a.t, err)
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	require.NoError(a.t, err)
	return answer{resp.StatusCode, resp.Header, string(got)}
}

// trafficUnknown: sessions, agents and messages that there are not.
func trafficUnknown(t *testing.T, c *apiChecker) {
	a := c.server(t, memory.New(), nil, withChat(), withMemories)
	for _, rt := range httpapi.RouteTable() {
		good := routeCases[rt.Method+" "+rt.Pattern]
		switch rt.Method + " " + rt.Pattern {
		case "POST /chat", "GET /chat/{id}/stream", "POST /sessions/{id}/chunks", "POST /sessions/{id}/import":
			continue // they begin a session, or say that nothing continues
		}
		if rt.NamesIn != "" {
			a.request(rt.Method, good.target(rt, "nobody"), good.bodyFor(t, "nobody", "nobody-fork")).failed(t, 404, api.CodeNotFound)
		}
	}
	a.post("/chat", `{"id":"nobody","trigger":"regenerate-message","messages":[]}`).failed(t, 404, api.CodeNotFound)
	require.Equal(t, 204, a.get("/chat/nobody/stream").status)

	// Erased before an append is there.
	log := &renewed{Log: memory.New()}
	a = c.server(t, log, nil)
	erased := func() {
		_, err := log.Erase(a.ctx(), "s")
		require.NoError(t, err)
	}
	a.append("s", text("s", "a"))
	exported := a.export("s")
	log.before = erased
	a.post(chunksOf("s"), line("s", "x")).failed(t, 404, api.CodeNotFound)
	a.post(importOf("s"), exported).imported(t)
	log.before = erased
	a.post(importOf("s"), exported+strings.Replace(exported, `"sequence":1`, `"sequence":9`, 1)).failed(t, 404, api.CodeNotFound)
}

// trafficAhead: cursors beyond the end.
func trafficAhead(t *testing.T, c *apiChecker) {
	a := c.server(t, memory.New(), []agentloop.Agent{writer()}, withChat())
	a.chat(says("s", "writer", "hi"))
	for _, target := range []string{
		"/sse?sessionId=s&fromSequence=9999", "/sessions/s/stream?fromSequence=9999", "/sessions/s/records?from=9999",
		"/sessions/s/state?at=9999", "/sessions/s/diff?to=9999", "/sessions/s/replay?from=9999", "/sessions/s/timeline?from=9999",
		"/compare?a=s&b=s&bAt=9999",
	} {
		a.get(target).failed(t, 416, api.CodeCursorAhead)
	}
	a.get("/chat/s/stream", "Last-Event-ID", "9999").failed(t, 416, api.CodeCursorAhead)
	a.post("/sessions/s/rollback", `{"sequence":9999}`).failed(t, 416, api.CodeCursorAhead)
	a.post("/sessions/s/fork", `{"sequence":9999}`).failed(t, 416, api.CodeCursorAhead)

	g := gatedModel{make(chan struct{})}
	a = c.server(t, memory.New(), agents(g), withChat())
	a.open("POST", "/chat", says("s", "gated", "hi")).until("waiting")
	a.post("/chat", `{"id":"s","messages":[]}`, "Last-Event-ID", "9999").failed(t, 416, api.CodeCursorAhead)
	close(g.open)
}

// trafficTrimmed: what retention has removed, here the beginnings of messages
// that are not finished.
func trafficTrimmed(t *testing.T, c *apiChecker) {
	log := newLog(t).(*jetstream.Log)
	saved := new(folds.Folds)
	states := snapshot.New(log, &snapshot.StoreOptions{Folds: saved})
	a := c.server(t, log, waitingAgents(), withChat(), func(o *httpapi.Options) { o.States = states })
	a.begin("s", "asker")
	a.append("open", created("open"), requested("open", "run-1"), text("open", "a"))
	for range 3 {
		for _, session := range []string{"s", "open"} {
			a.append(session, text(session, "more"))
			require.NoError(t, log.Seal(a.ctx(), session))
		}
	}
	_, err := log.Purge(a.ctx(), eventlog.PurgeOptions{SealedFor: time.Nanosecond})
	require.NoError(t, err)
	a.post("/retention", `{"purgeOlderThan":"0s","dropOlderThan":"0s"}`).done(t)
	for _, target := range []string{
		"/sse?sessionId=s", "/sessions/s/stream", "/sessions/s/records", "/sessions/s/state?at=1", "/sessions/s/diff?from=1", "/sessions/s/replay",
		"/compare?a=s&b=s&bAt=1",
		"/chat/open/snapshot", "/chat/open/messages",
	} {
		a.get(target).failed(t, 410, api.CodeTruncated)
	}
	for target, body := range map[string]string{
		"/resume": `{"sessionId":"s","mode":"retry"}`, "/chat": `{"id":"s","trigger":"regenerate-message","messages":[]}`,
		"/sessions/s/rollback": `{"sequence":1}`, "/sessions/s/fork": `{"sequence":1}`,
	} {
		a.post(target, body).failed(t, 410, api.CodeTruncated)
	}
	a.get("/sessions/s/usage").done(t)
	a.get("/compare?a=s&b=s").done(t)
	a.get("/sessions/s/timeline").done(t)
	states = snapshot.New(log, &snapshot.StoreOptions{Folds: unlisted{saved}})
	a = c.server(t, log, nil, func(o *httpapi.Options) { o.States = states })
	a.get("/sessions/s/timeline").failed(t, 410, api.CodeTruncated)
}

// unlisted does not tell which folds there are.
type unlisted struct{ snapshot.Folds }

func (unlisted) Sequences(context.Context, string, ...snapshot.Form) ([]uint64, error) {
	return nil, nil
}
