package httpapi_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/agentloop/quota"
	"github.com/helixd/helixd/agentloop/workspace"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/httpapi"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/auth"
	"github.com/helixd/helixd/projector"
	"github.com/helixd/helixd/snapshot"
	folds "github.com/helixd/helixd/snapshot/memory"
)

// trafficSessions: what there is of sessions.
func trafficSessions(t *testing.T, c *apiChecker) {
	agents := waitingAgents()
	turns := saying("all done", calling("task", "subagent__child", `{"message":"do it"}`))
	for i := range turns {
		turns[i].Usage = fact.TokenUsage{Prompt: 10, Completion: 3, Reasoning: 2, Cached: 4, CacheWrite: 1, Total: 13}
	}
	for i := range agents {
		if agents[i].Name == "parent" {
			agents[i].Model = scripted.New(turns, &scripted.Options{Name: "big"})
		}
	}
	a := c.server(t, memory.New(), agents, priced)
	a.append("made", factOf("made", &fact.SessionCreated{
		AgentType: "writer", UserID: "u", Tags: []string{"red"}, Metadata: map[string]string{"a": "b"}, Base: factBase("made"),
	}), text("made", "a"), factOf("made", &fact.UserMessage{Content: "hi", MessageID: "m", Base: factBase("made")}))
	a.begin("p", "parent")
	a.get("/sessions/p/state?at=2").done(t)
	a.post("/resume", `{"sessionId":"p","mode":"with_confirmation","approved":true}`).done(t)
	a.wait("p")
	a.append("p", factOf("p-sub-task", &fact.RemoteProgress{
		ToolCallID: "task", Sequence: 7, Base: factBase("p-sub-task"),
		Calls: []fact.RemoteCall{{ID: "look", RemoteID: "call_0", AgentID: "p-sub-task-sub-a", Over: true}},
	}), factOf("p-sub-task", &fact.InterruptRequested{
		RunID: "r", Kind: fact.StopAbort, Terminate: true, Base: factBase("p-sub-task"),
	}))
	a.begin("denied", "asker")
	a.post("/resume", `{"sessionId":"denied","mode":"with_confirmation","approved":false}`).done(t)
	a.wait("denied")
	a.post("/sessions/made/subscriptions", `{"ttl":"30m"}`).done(t)
	a.append("ticketed", created("ticketed"), ended("ticketed", "1"))
	var ticket api.Ticket
	a.post("/sessions/ticketed/tickets", "{}").done(t).decode(t, &ticket)
	for _, target := range []string{"/sse?sessionId=ticketed", "/sessions/ticketed/stream?fromSequence=0", "/sessions/ticketed/replay?speed=0"} {
		a.get(target + "&ticket=" + ticket.Ticket).done(t)
	}
	left := 700 * time.Millisecond
	expiring := c.server(t, memory.New(), nil, func(o *httpapi.Options) {
		o.Identify = func(*http.Request) (auth.Caller, error) {
			return auth.Caller{Expires: time.Now().Add(left)}, nil
		}
	})
	expiring.append("s", created("s"))
	for _, target := range []string{"/sse?sessionId=s", "/sessions/s/stream"} {
		got := expiring.get(target)
		for ; got.status != 200 && left < time.Minute; left *= 2 { // a busy machine may come too late
			got = expiring.get(target)
		}
		require.Contains(t, got.done(t).body, "TOKEN_EXPIRED")
	}
	a.post("/sessions/nobody/tickets", "{}").failed(t, 404, api.CodeNotFound)
	a.request("DELETE", "/sessions/made/subscriptions", "").done(t)
	unwell := func(o *httpapi.Options) {
		o.Degraded = func() []api.Degradation {
			return []api.Degradation{{Check: "disk", Problem: true, Target: "/data", Found: "it is full", Advice: "make room"}}
		}
	}
	body := c.server(t, lacking{memory.New()}, nil, unwell).get("/readyz").done(t).body
	require.Contains(t, body, `"replicas":{"wanted":3,"present":2,"missing":["n3"],"lag":7,"skewMs":5}`)
	require.Contains(t, body, `"degraded":[{"check":"disk","problem":true,"target":"/data","found":"it is full","advice":"make room"}]`)
	for _, target := range []string{
		"/sessions?userId=u&agentType=writer&status=active&streamStatus=active&tag=red&metadata=a%3Db&from=2026-01-01&to=2100-01-01&offset=0&limit=5", "/sessions", "/sessions?parentSessionId=p",
		"/sessions/made", "/sessions/p", "/sessions/p/runs?offset=0&limit=1", "/sessions/p/checkpoints?offset=0&limit=1",
		"/sessions/p/usage?offset=0&limit=100", "/sessions/p/state", "/sessions/p/diff", "/sessions/p/diff?from=9&to=3",
		"/sessions/p/diff?from=0&to=0", "/sessions/made/diff", "/sessions/denied/diff", "/sessions/p/diff?only=spent", "/sessions/p/records", "/sessions/made/state?at=0", "/sessions/made/state",
		"/sessions/p/timeline", "/sessions/p/timeline?from=3",
		"/compare?a=p&aAt=5&b=p&bAt=9", "/compare?a=p&b=denied", "/compare?a=made&aAt=0&b=p", "/compare?a=made&b=made",
	} {
		a.get(target).done(t)
		a.request("HEAD", target, "").done(t)
	}
}

// lacking is a log of which one server of three is gone.
type lacking struct{ eventlog.Log }

func (lacking) Replicas(context.Context) (eventlog.Replicas, error) {
	return eventlog.Replicas{Wanted: 3, Present: 2, Missing: []string{"n3"}, Lag: 7, Skew: 5}, nil
}

// trafficTimeTravel: sessions go back, and branch off.
func trafficTimeTravel(t *testing.T, c *apiChecker) {
	log, nc := newLogAndConn(t)
	a := c.server(t, log, waitingAgents())
	a.begin("s", "asker")
	a.post("/resume", `{"sessionId":"s","mode":"with_confirmation","approved":true}`,
		"Traceparent", "00-0102030405060708090a0b0c0d0e0f10-0102030405060708-01").done(t)
	a.wait("s")
	var page api.Page[struct {
		ID             string
		StreamSequence uint64
	}]
	a.get("/sessions/s/checkpoints").decode(t, &page)
	at := page.Items[0]
	for _, place := range []string{
		"", fmt.Sprintf(`,"checkpointId":%q`, at.ID), fmt.Sprintf(`,"sequence":%d`, at.StreamSequence), `,"messageIndex":0`,
	} {
		fork := fmt.Sprint("fork", len(place))
		a.post("/sessions/s/fork", fmt.Sprintf(`{"sessionId":%q%s}`, fork, place)).done(t)
		a.get("/sessions/" + fork + "/state").done(t)
		a.get("/sessions/" + fork).done(t)
		a.get("/compare?a=s&b=" + fork).done(t)
		a.get("/chat/" + fork + "/snapshot").done(t)
	}
	for id, edit := range map[string]string{
		"edited":   `{"message":{"content":"Another.","index":0},"systemPrompt":"Be brief."}`,
		"answered": `{"toolResult":{"toolCallId":"rm","result":{"n":1}}}`,
		"failed":   `{"toolResult":{"toolCallId":"rm","error":"no luck"}}`,
	} {
		a.post("/sessions/s/fork", fmt.Sprintf(`{"sessionId":%q,"edit":%s,"run":true}`, id, edit)).done(t)
		a.get("/sessions/" + id + "/state").done(t)
	}
	a.post("/sessions/s/fork", `{"sessionId":"told","run":true,"message":"More."}`).done(t)
	a.post("/sessions/s/fork", `{"edit":{"message":{"content":"x","index":99}}}`).failed(t, 400, api.CodeInvalidRequest)
	a.post("/sessions/s/fork", `{"sessionId":"s"}`).failed(t, 409, api.CodeSessionExists)
	beginErasing(t, a, nc)
	a.post("/sessions/s/fork", `{"sessionId":"erasing"}`).failed(t, 409, api.CodeErasurePending)
	a.post("/sessions/s/rollback", `{"checkpointId":"`+at.ID+`"}`).done(t)
	a.post("/sessions/s/rollback", fmt.Sprintf(`{"sequence":%d}`, a.head("s"))).done(t)
	a.post("/sessions/s/rollback", fmt.Sprintf(`{"sequence":%d}`, a.tree("s").Messages[0].Sequence)).done(t)
	a.get("/sessions/s/runs").done(t)
	a.get("/sessions/s/state").done(t)
	a.get("/sessions/s/timeline").done(t)

	a.append("bad", created("bad"), requested("bad", "run-1"), factOf("bad", &fact.RunEnded{
		RunID: "run-1", Status: fact.RunFailed, Error: "it broke", ErrorCode: "internal", Base: factBase("bad"),
	}))
	a.get("/sessions/bad/timeline").done(t)
}

// trafficProducers: others write.
func trafficProducers(t *testing.T, c *apiChecker) {
	log, nc := newLogAndConn(t)
	a := c.server(t, log, nil)
	beginErasing(t, a, nc)
	for i, verb := range []string{"end", "fail"} {
		s := fmt.Sprint("s", i)
		body := []string{`{"finalOutput":{"x":1}}`, `{"error":"it broke"}`}[i]
		target := "/sessions/" + s + "/" + verb
		a.post(chunksOf(s), lines(s, "a", 2), expected, "0", idemKey, "k").appended(t)
		a.post(chunksOf(s), "["+line(s, "b")+"]").appended(t)
		a.post(chunksOf(s), line(s, "x"), expected, "0").failed(t, 409, api.CodeSequenceConflict)
		a.post(chunksOf(s), line(s, "x"), idemKey, "k").failed(t, 409, api.CodeIdempotencyMismatch)
		a.post(target, body, expected, "0").failed(t, 409, api.CodeSequenceConflict)
		a.post(target, body, idemKey, "k").failed(t, 409, api.CodeIdempotencyMismatch)
		useKeys(t, log, s, 2*projector.LeastKnownAppends+200)
		a.post(chunksOf(s), line(s, "x"), idemKey, "k").failed(t, 409, api.CodeIdempotencyExpired)
		a.post(target, body, idemKey, "k").failed(t, 409, api.CodeIdempotencyExpired)
		a.post(target, body, expected, fmt.Sprint(a.head(s)), idemKey, "end").appended(t)
		a.post(target, body).failed(t, 409, api.CodeStreamEnded)
		a.post(chunksOf(s), line(s, "x")).failed(t, 409, api.CodeStreamEnded)

		running := fmt.Sprint("running", i)
		a.append(running, created(running), requested(running, "run-1"))
		a.post("/sessions/"+running+"/"+verb, body).failed(t, 409, api.CodeAlreadyRunning)
		a.get("/sessions/" + s + "/state").done(t)
	}
	a.tooMuchWork("toomuch")
	a.post(chunksOf("erasing"), line("erasing", "x")).failed(t, 409, api.CodeErasurePending)
	a.append("empty", text("empty", "a"))
	a.post("/sessions/empty/end", "").appended(t)
}

// trafficImports: exports come back.
func trafficImports(t *testing.T, c *apiChecker) {
	log, nc := newLogAndConn(t)
	from := c.watch(livelySession(t, "s"))
	exported := from.export("s")
	a := c.server(t, log, nil)
	a.post(importOf("s"), exported).imported(t)
	a.export("s")
	a.get("/sessions/s/state").done(t)
	a.append("s", text("s", "more"))
	a.post(importOf("s"), strings.Split(exported, "\n")[0]+"\n"+strings.Split(exported, "\n")[2]).failed(t, 409, api.CodeSessionExists)
	beginErasing(t, a, nc)
	record, err := eventlog.Record{Sequence: 1, Time: time.Unix(1, 0), Entry: created("erasing")}.MarshalJSON()
	require.NoError(t, err)
	a.post(importOf("erasing"), string(record)).failed(t, 409, api.CodeErasurePending)

	race := &renewed{Log: memory.New()}
	a = c.server(t, race, nil)
	race.before = func() { a.append("s", text("s", "faster")) }
	a.post(importOf("s"), exported).failed(t, 409, api.CodeSequenceConflict)
	a = c.server(t, fullLog{memory.New()}, nil)
	a.post(importOf("s"), exported).failed(t, 413, api.CodePayloadTooLarge)
}

// fullLog is a log that takes no record, for its size.
type fullLog struct{ eventlog.Log }

func (fullLog) Append(context.Context, string, uint64, []eventlog.Entry) (uint64, error) {
	return 0, eventlog.ErrTooLarge
}

// trafficErasure: at once, and bit by bit.
func trafficErasure(t *testing.T, c *apiChecker) {
	for status, log := range map[int]eventlog.Log{200: memory.New(), 202: pendingLog{memory.New()}} {
		a := c.server(t, log, nil)
		a.append("s", created("s"))
		require.Equal(t, status, a.request("DELETE", "/sessions/s", "").status)
	}
}

// pendingLog is a log that never knows that all bytes are gone.
type pendingLog struct{ eventlog.Log }

func (s pendingLog) Erase(ctx context.Context, session string) (eventlog.Erasure, error) {
	e, err := s.Log.Erase(ctx, session)
	e.Pending, e.WaitsFor, e.Left = true, "two servers", "who runs them has to look"
	return e, err
}

// trafficServer: what the server says of itself.
func trafficServer(t *testing.T, c *apiChecker) {
	log := newLog(t)
	a := c.server(t, log, agents(gatedModel{}), func(o *httpapi.Options) {
		o.States = snapshot.New(log, &snapshot.StoreOptions{Folds: new(folds.Folds)})
	})
	a.append("s", created("s"))
	a.post("/retention", `{"purgeOlderThan":"0s","dropOlderThan":"0s"}`).done(t)
	a.post("/retention", `{"maxBytes":1000000000}`).done(t)
	for _, body := range []string{`{"dryRun":true}`, `{}`} {
		require.Equal(t, 200, a.post("/sweep", body).status)
	}
	a.get("/backup").done(t)
	a.get("/backup?rate=65536").done(t)
	a.request("HEAD", "/backup", "").done(t)
	a.get("/backup?rate=1").failed(t, 400, api.CodeInvalidRequest)
	c.server(t, struct{ eventlog.Log }{log}, nil).get("/backup").failed(t, 501, api.CodeNotImplemented)
	a.post("/admin/reload", "{}").done(t)
	a.post("/admin/reload", "[]").failed(t, 400, api.CodeInvalidRequest)
	refuses := c.server(t, log, nil, func(o *httpapi.Options) {
		o.Reload = func(context.Context) (api.Reloaded, error) {
			return api.Reloaded{}, &httpapi.ReloadError{Problems: []string{"helix.yaml:1: listen: must be host:port"}}
		}
	})
	refuses.post("/admin/reload", "{}").failed(t, 409, api.CodeInvalidConfig)
	for _, target := range []string{"/healthz", "/readyz", "/metrics", "/openapi.json", "/", "/debugger/app.js", "/debugger/debugger.css", "/debugger/icon.svg"} {
		a.get(target).done(t)
	}
	for _, target := range []string{"/", "/debugger/app.js"} {
		require.Equal(t, 304, a.request("GET", target, "", "If-None-Match", a.get(target).header.Get("ETag")).status)
	}
	a.get("/debugger/nothing.js").failed(t, 404, api.CodeNotFound)
	closed := c.server(t, log, nil, limitedTo("s"))
	require.Equal(t, 401, closed.get("/").status)
	limited := c.server(t, log, nil, func(o *httpapi.Options) {
		o.Auth = auth.BearerTokens([]auth.Token{{Token: "reader", Operations: []string{"records"}, Sessions: []string{"*"}}})
	})
	limited.request("GET", "/", "", bearer("reader")...).failed(t, 403, api.CodeUnauthorized)
	users := c.server(t, memory.New(), nil, withUsers)
	users.finishedOf("ann", "s")
	users.produce("of-red", "x", "ann").appended(t)
	users.get("/sessions/of-red/state", bearer("ann")...).done(t)
	users.post("/sessions/s/messages", `{"message":"hi","userId":"bob"}`, bearer("ann")...).failed(t, 403, api.CodeUserMismatch)
	closed.get("/metrics").failed(t, 401, api.CodeUnauthorized)
	closed.request("GET", "/metrics", "", bearer("for s")...).failed(t, 403, api.CodeUnauthorized)
	closed.get("/readyz").done(t)
	require.Equal(t, 503, c.server(t, refusing{memory.New()}, nil).get("/readyz").status)
	a.loop.Drain(t.Context())
	require.Equal(t, 503, a.get("/readyz").status)
}

// deepCoder writes two files in so many folders that a listing does not have them all.
func deepCoder() agentloop.Agent {
	a := coder("memory")
	var calls []scripted.Call
	for _, folder := range []string{"a/", "b/"} {
		calls = append(calls, scripted.Call{
			Name: "workspace_write_file", Arguments: fmt.Appendf(nil, `{"path":%q,"content":"b"}`, strings.Repeat(folder, workspace.MaxEntries/2)+"f"),
		})
	}
	a.Model = scripted.New([]scripted.Turn{{ToolCalls: calls}, {Text: "written"}}, nil)
	return a
}

// trafficFiles: the files of a workspace.
func trafficFiles(t *testing.T, c *apiChecker) {
	a := c.server(t, memory.New(), []agentloop.Agent{deepCoder()})
	a.begin("s", "memory-coder")
	a.wait("s")
	a.get("/sessions/s/files").done(t)
	a.get("/sessions/s/files?path=b/b&offset=400&limit=200").done(t)
	a.get("/sessions/s/files?path=c").failed(t, 404, api.CodeNotFound)
	a.get("/sessions/s/files?path=..").failed(t, 400, api.CodeInvalidRequest)
}

// trafficBudgets: what a tenant may spend in a day.
func trafficBudgets(t *testing.T, c *apiChecker) {
	a := c.watch(newTenants(t, quota.Limits{TokensPerDay: 100, USDPerDay: 1}))
	a.produce("s", "x", "ann").appended(t)
	a.get("/sessions/s/usage", bearer("lead")...).done(t)
}
