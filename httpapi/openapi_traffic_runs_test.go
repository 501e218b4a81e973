package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/agentloop/model/upstream"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/httpapi"
	"github.com/helixd/helixd/httpapi/api"
)

// trafficRuns: runs are begun and continued, in all ways.
func trafficRuns(t *testing.T, c *apiChecker) {
	log, nc := newLogAndConn(t)
	g := gatedModel{make(chan struct{})}
	a := c.server(t, log, append(append(waitingAgents(), coder("memory"), coder("broken")), agents(g)...))
	a.begin("files", "memory-coder")
	a.begin("nofiles", "broken-coder")
	a.post("/start", `{"sessionId":"done","agentType":"echo","state":{"n":1},"metadata":{"a":"b"},"userId":"u","tags":["t"],"message":[
		{"role":"user","content":"one","metadata":{"x":1}},
		{"role":"user","content":"","files":[{"data":"data:text/plain;base64,aGk=","mediaType":"text/plain","filename":"f.txt"}]}
	]}`).done(t)
	a.wait("done")
	a.begin("bad", "broken")
	a.begin("ask", "asker")
	live := a.post("/start", `{"sessionId":"live","agentType":"gated","message":"hi"}`).done(t)
	require.Equal(t, live.body, a.post("/resume", `{"sessionId":"live"}`).done(t).body)
	for _, session := range []string{"done", "bad", "ask", "live", "files", "nofiles"} {
		a.status(session)
		a.get("/workspace?sessionId=" + session).done(t)
		a.get("/workspaces?sessionId=" + session).done(t)
		a.get("/sessions/" + session + "/files?path=.&limit=10").done(t)
	}

	resume := func(members string) answer { return a.post("/resume", `{"sessionId":"ask",`+members+`}`).done(t) }
	resume(`"mode":"with_confirmation","approved":true`)
	a.wait("ask")
	var page api.Page[struct{ ID string }]
	a.get("/sessions/ask/checkpoints").decode(t, &page)
	resume(`"mode":"from_checkpoint","checkpointId":"` + page.Items[0].ID + `"`)
	a.wait("ask")
	resume(`"mode":"retry","turn":1`)
	a.wait("ask")
	resume(`"message":[{"role":"user","content":"never mind"}]`)
	a.wait("ask")

	a.post("/start", `{"sessionId":"done","agentType":"echo","message":"x"}`).failed(t, 409, api.CodeAlreadyCompleted)
	message := func(session, body string, headers ...string) answer {
		return a.post("/sessions/"+session+"/messages", body, headers...)
	}
	message("done", `{"message":"more","userId":"u","metadata":{"a":"b"}}`, "Idempotency-Key", "k").done(t)
	a.wait("done")
	message("done", `{"message":"other"}`, "Idempotency-Key", "k").failed(t, 409, api.CodeIdempotencyMismatch)
	message("done", `{"message":"x","userId":"v"}`).failed(t, 403, api.CodeUnauthorized)
	message("done", `{}`).failed(t, 400, api.CodeInvalidRequest)
	message("nobody", `{"message":"x"}`).failed(t, 404, api.CodeNotFound)
	a.append("dying", factOf("dying", &fact.SessionCreated{AgentType: "echo", Base: factBase("dying")}), requested("dying", "run-1"),
		factOf("dying", &fact.InterruptRequested{RunID: "run-1", Kind: fact.StopAbort, Base: factBase("dying")}))
	message("dying", `{"message":"x"}`).failed(t, 409, api.CodeAlreadyCompleted)
	message("live", `{"message":"x"}`).failed(t, 409, api.CodeAlreadyRunning)
	a.post("/start", `{"sessionId":"live","agentType":"echo","message":"x"}`).failed(t, 409, api.CodeAlreadyRunning)
	a.post("/resume", `{"sessionId":"done"}`).failed(t, 409, api.CodeAlreadyCompleted)
	a.post("/resume", `{"sessionId":"live","message":"x"}`).failed(t, 409, api.CodeAlreadyRunning)
	beginErasing(t, a, nc)
	a.post("/start", `{"sessionId":"erasing","agentType":"echo","message":"x"}`).failed(t, 409, api.CodeErasurePending)
	close(g.open)
	a.wait("live")
}

// beginErasing has a session, erasing, whose erasure has begun and goes no
// further.
func beginErasing(t *testing.T, a *testAPI, nc *nats.Conn) {
	t.Helper()
	a.append("erasing", created("erasing"))
	tombstone := nats.NewMsg("helix.log.0.erasing")
	tombstone.Header["Helix-Kind"], tombstone.Header["Helix-Type"] = []string{"fact"}, []string{"erased"}
	_, err := nc.RequestMsg(tombstone, within)
	require.NoError(t, err)
}

// trafficCalls: calls that wait are answered.
func trafficCalls(t *testing.T, c *apiChecker) {
	a := c.server(t, memory.New(), waitingAgents(), withChat())
	for session, agent := range map[string]string{"ask": "asker", "loc": "locator", "late": "hurry", "tree": "parent", "over": "asker"} {
		a.begin(session, agent)
		a.get("/sessions/" + session).done(t)
		a.get("/sessions/" + session + "/state").done(t)
		a.get("/chat/" + session + "/messages").done(t)
	}
	a.late.Store(int64(time.Minute))
	a.post("/abort", `{"sessionId":"over"}`).done(t)
	for _, tc := range []struct{ session, members string }{
		{"loc", `"kind":"client-tool-result","toolCallId":"here","result":{"lat":1}`},
		{"loc", `"kind":"client-tool-result","toolCallId":"there","error":"no signal"`},
		{"late", `"kind":"client-tool-result","toolCallId":"now","result":{"lat":1}`},
		{"ask", `"kind":"approval-response","toolCallId":"rm","approved":false,"reason":"no","approvalId":"` + a.pending("ask")[0].ApprovalID + `"`},
		{"tree", `"kind":"approval-response","toolCallId":"inner","approved":true`},
	} {
		a.post(submitTarget, `{"sessionId":"`+tc.session+`",`+tc.members+`}`).done(t)
		a.post("/chat/"+tc.session+"/submit-tool-result", `{"sessionId":"`+tc.session+`",`+tc.members+`}`).done(t)
		a.get("/sessions/" + tc.session + "/state").done(t)
	}
	over := fmt.Sprintf(approveRM, "over")
	a.post(submitTarget, over).failed(t, 409, api.CodeAlreadyCompleted)
	a.post("/chat/over/submit-tool-result", over).failed(t, 409, api.CodeAlreadyCompleted)
	for _, session := range []string{"ask", "loc", "late", "tree"} {
		a.wait(session)
		a.get("/sessions/" + session + "/usage").done(t)
		a.get("/sessions/" + session + "/state").done(t)
		a.get("/chat/" + session + "/messages").done(t)
	}
	a.get("/sessions?parentSessionId=tree").done(t)
}

// trafficStops: runs are stopped.
func trafficStops(t *testing.T, c *apiChecker) {
	a := c.server(t, memory.New(), waitingAgents(), withChat())
	for i, target := range []string{"/interrupt", "/abort", "/chat/%s/interrupt", "/chat/%s/abort"} {
		session := fmt.Sprint("s", i)
		a.begin(session, "asker")
		if i < 2 {
			a.post(target, `{"sessionId":"`+session+`","reason":"enough"}`).done(t)
			continue
		}
		target = fmt.Sprintf(target, session)
		a.post(target, `{"sessionId":"`+session+`","reason":"enough"}`).done(t)
		a.post(target, "").done(t)
	}
}

// trafficStuck: a run that does not stop in time, and a call whose server is down.
func trafficStuck(t *testing.T, c *apiChecker) {
	begun, open := make(chan struct{}), make(chan struct{})
	stuck := agentloop.Tool{Name: "stuck", Execute: func(context.Context, *agentloop.Call, json.RawMessage) (any, error) {
		close(begun)
		<-open
		return "late", nil
	}}
	down := agentloop.Tool{Name: "down", Execute: func(context.Context, *agentloop.Call, json.RawMessage) (any, error) {
		return nil, &upstream.Error{Host: "t.example", Status: 503}
	}}
	a := c.server(t, memory.New(), []agentloop.Agent{{
		Name: "slow", Tools: []agentloop.Tool{stuck}, Model: scripted.New(saying("done", calling("c", "stuck", `{}`)), nil),
	}, {
		Name: "failing", Tools: []agentloop.Tool{down}, Model: scripted.New(saying("done", calling("c", "down", `{}`)), nil),
	}}, withChat(), func(o *httpapi.Options) { o.InterruptObservationDeadline = 50 * time.Millisecond })
	a.begin("f", "failing")
	a.get("/sessions/f/timeline").done(t)
	a.post("/start", `{"sessionId":"s","agentType":"slow","message":"go"}`).done(t)
	<-begun
	for _, target := range []string{"/interrupt", "/chat/s/interrupt", "/abort", "/chat/s/abort"} {
		a.post(target, `{"sessionId":"s"}`).failed(t, 504, api.CodeInterruptDeadline)
	}
	close(open)
	a.wait("s")
}

// trafficStreams: every event of the streams that are no chat's.
func trafficStreams(t *testing.T, c *apiChecker) {
	a := c.server(t, memory.New(), append(agents(gatedModel{}), falling("busy", &model.Error{Code: model.CodeOverloaded, Message: "busy", Retryable: true})))
	a.begin("busy", "busy")
	a.get("/sessions/busy/state").done(t)
	streams := eventlog.NewStreams(a.log)
	at := a.append("s", created("s"), requested("s", "run-1"), text("s", "a"))
	first := fmt.Sprint(at[0])
	sse := a.stream("/sse?sessionId=s&fromSequence="+first, "Last-Event-ID", first)
	store := a.stream(storeTarget("s")+"?fromSequence="+first, "Last-Event-ID", first)
	sse.chunk()
	store.storeChunks(1)
	require.NoError(t, streams.PauseStream(a.ctx(), "s", "wait"))
	require.Equal(t, "paused", store.store().Status)
	require.NoError(t, streams.ResumeStream(a.ctx(), "s"))
	require.Equal(t, "active", store.store().Status)
	a.append("s", factOf("s", &eventlog.Truncated{
		Reason: eventlog.ResyncRetry, Ranges: []eventlog.Range{{AgentID: "s", From: at[2], To: at[2]}}, AtSequence: at[2], Base: factBase("s"),
	}))
	require.Equal(t, "truncated", store.store().Type)
	a.append("s", ended("s", `{"x":1}`))
	store.storeRest()
	a.stream("/sse?sessionId=s", "X-Resume-From-Sequence", first).rest()
	a.stream(storeTarget("s"), "X-Resume-From-Sequence", first).storeRest()

	a.begin("bad", "broken")
	a.stream(storeTarget("bad")).storeRest()
	for _, session := range []string{"s", "bad"} {
		a.get("/sessions/" + session + "/records?from=0&to=2&limit=1&dead=1").done(t)
		a.get("/sessions/" + session + "/records").done(t)
		a.get("/sessions/" + session + "/records?follow=1&limit=2").done(t)
		a.get("/sessions/"+session+"/replay?from=0&to=3&speed=1000&maxPause=0", "Last-Event-ID", "1").done(t)
		a.get("/sessions/" + session + "/replay?speed=0").done(t)
		a.get("/sessions/" + session + "/records?kind=chunk&type=text_delta&type=error&agent=s&run=run-1&call=c").done(t)
	}
}
