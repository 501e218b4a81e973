package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/httpapi"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/projector"
)

// TestStopRunning: the answer comes when the run has stopped, not before.
func TestStopRunning(t *testing.T) {
	t.Parallel()
	g := gatedModel{make(chan struct{})}
	a := newAPIOn(t, newLog(t), agents(g))
	for verb, want := range map[string]struct{ status, data string }{
		"interrupt": {"interrupted", `{"type":"end","status":"interrupted"}`},
		"abort":     {"failed", `{"type":"error","error":"the run was aborted: enough","recoverable":false}`},
	} {
		require.Equal(t, 200, a.post("/start", fmt.Sprintf(`{"sessionId":%q,"agentType":"gated","message":"hi"}`, verb)).status)
		s := a.stream("/sse?sessionId=" + verb)
		for text := ""; text != "waiting"; {
			_, text = s.chunk()
		}
		got := a.post("/"+verb, fmt.Sprintf(`{"sessionId":%q,"reason":"enough"}`, verb))
		require.Equal(t, 200, got.status, got.body)
		require.JSONEq(t, `{"ok":true}`, got.body)
		status := a.status(verb)
		require.Equal(t, want.status, status.Status)
		require.False(t, status.IsExecuting)
		_, texts, end := s.rest()
		require.Equal(t, want.data, end.data)
		if verb == "interrupt" {
			require.Contains(t, texts, "run_interrupted")
			require.Contains(t, a.get("/sessions/interrupt/records").body, `"reason":"enough"`)
		}
		require.Equal(t, 200, a.post("/"+verb, fmt.Sprintf(`{"sessionId":%q}`, verb)).status, "again")
		require.Equal(t, status, a.status(verb), "nothing was written")
	}
	a.post("/resume", `{"sessionId":"abort"}`).failed(t, 409, api.CodeAlreadyCompleted)
	a.post("/start", `{"sessionId":"interrupt","agentType":"gated","message":"hi"}`).failed(t, 409, api.CodeAlreadyRunning)
	close(g.open)
	require.Equal(t, 200, a.post("/resume", `{"sessionId":"interrupt"}`).status)
	_, end := a.wait("interrupt")
	require.Contains(t, end.data, "waiting done")
}

// TestStopWithoutALiveRun: it is applied at once.
func TestStopWithoutALiveRun(t *testing.T) {
	t.Parallel()
	a := newAPIOn(t, newLog(t), append(waitingAgents(), agents(gatedModel{})...))
	const interrupted, failed = "interrupted", "failed"
	for i, tc := range []struct {
		name, agent string
		stops       []string
		status      []string // after each
	}{
		{"interrupted while it waits", "asker", []string{"interrupt"}, []string{interrupted}},
		{"aborted while it waits", "asker", []string{"abort"}, []string{failed}},
		{"interrupted, then aborted", "locator", []string{"interrupt", "interrupt", "abort", "interrupt"}, []string{interrupted, interrupted, failed, failed}},
		{"with a sub-agent that waits", "parent", []string{"interrupt", "abort"}, []string{interrupted, failed}},
		{"after its end", "echo", []string{"interrupt", "abort"}, []string{"completed", "completed"}},
	} {
		session := fmt.Sprint("s", i)
		a.begin(session, tc.agent)
		for j, verb := range tc.stops {
			require.Equal(t, 200, a.post("/"+verb, `{"sessionId":"`+session+`"}`).status, tc.name)
			require.Equal(t, tc.status[j], a.status(session).Status, "%s: after %s", tc.name, verb)
		}
		if a.status(session).Status != interrupted {
			require.Empty(t, a.pending(session), tc.name)
		}
	}
	// An interrupted session still waits for its answers.
	require.Equal(t, 200, a.post(submitTarget, fmt.Sprintf(approveRM, "s0")).status)
	require.Equal(t, 200, a.post("/resume", `{"sessionId":"s0"}`).status)
	_, end := a.wait("s0")
	require.Contains(t, end.data, `"output":"removed"`)

	// No node drives runs that a crash has left, and chunks of outside producers belong
	// to no run.
	a.append("dead", factOf("dead", &fact.SessionCreated{AgentType: "echo", Base: factBase("dead")}), requested("dead", "run-1"))
	require.Equal(t, 200, a.post("/interrupt", `{"sessionId":"dead"}`).status)
	require.Equal(t, interrupted, a.status("dead").Status)
	a.append("produced", text("produced", "a"))
	require.Equal(t, 200, a.post("/abort", `{"sessionId":"produced"}`).status)
	require.Equal(t, "running", a.status("produced").Status)
}

// TestStopOutlivingSubAgent: a sub-agent that continues when its parent has
// finished stops, too.
func TestStopOutlivingSubAgent(t *testing.T) {
	t.Parallel()
	for verb, want := range map[string]projector.SessionStatus{"interrupt": "interrupted", "abort": "failed"} {
		a := newAPIOn(t, newLog(t), outlivedBoss(gatedModel{make(chan struct{})}))
		a.begin("b", "boss")
		require.Equal(t, 200, a.post("/"+verb, `{"sessionId":"b"}`).status)
		require.Equal(t, "completed", a.status("b").Status)
		var children api.Page[api.Summary]
		a.get("/sessions?parentSessionId=b").decode(t, &children)
		require.Equal(t, want, children.Items[0].Status)
	}
}

// TestStopDeadline: a tool that does not come to its end is waited for until
// the deadline, and the wish is kept.
func TestStopDeadline(t *testing.T) {
	t.Parallel()
	begun, open := make(chan struct{}), make(chan struct{})
	stuck := agentloop.Tool{Name: "stuck", Execute: func(context.Context, *agentloop.Call, json.RawMessage) (any, error) {
		close(begun)
		<-open
		return "late", nil
	}}
	a := newAPIOn(t, memory.New(), []agentloop.Agent{{
		Name: "slow", Tools: []agentloop.Tool{stuck}, Model: scripted.New(saying("done", calling("c", "stuck", `{}`)), nil),
	}}, func(o *httpapi.Options) { o.InterruptObservationDeadline = 50 * time.Millisecond })
	require.Equal(t, 200, a.post("/start", `{"sessionId":"s","agentType":"slow","message":"go"}`).status)
	<-begun
	a.post("/interrupt", `{"sessionId":"s"}`).failed(t, 504, "INTERRUPT_DEADLINE_EXCEEDED")
	require.Equal(t, "running", a.status("s").Status)
	close(open)
	_, end := a.wait("s")
	require.Equal(t, `{"type":"end","status":"interrupted"}`, end.data)
}

// TestStopEndsWithServer: those who wait don't hold up a server's end.
func TestStopEndsWithServer(t *testing.T) {
	begun, open := make(chan struct{}), make(chan struct{})
	stuck := agentloop.Tool{Name: "stuck", Execute: func(context.Context, *agentloop.Call, json.RawMessage) (any, error) {
		close(begun)
		<-open
		return "late", nil
	}}
	a := newAPIOn(t, memory.New(), []agentloop.Agent{{
		Name: "slow", Tools: []agentloop.Tool{stuck}, Model: scripted.New(saying("done", calling("c", "stuck", `{}`)), nil),
	}}, func(o *httpapi.Options) { o.InterruptObservationDeadline = within })
	defer close(open)
	require.Equal(t, 200, a.post("/start", `{"sessionId":"s","agentType":"slow","message":"go"}`).status)
	<-begun
	answers := make(chan answer, 1)
	go func() { answers <- a.post("/interrupt", `{"sessionId":"s"}`) }()
	for r, err := range a.log.Follow(a.ctx(), "s", 0) {
		require.NoError(t, err)
		if r.Type == "interrupt_requested" {
			break
		}
	}
	a.srv.Close()
	(<-answers).failed(t, 503, api.CodeUnavailable)
}

func TestStopValidates(t *testing.T) {
	t.Parallel()
	a := newAPIOn(t, memory.New(), nil)
	for _, target := range []string{"/interrupt", "/abort"} {
		for body, field := range map[string]string{
			`{}`:                           "sessionId",
			`{"sessionId":7}`:              "sessionId",
			`{"sessionId":""}`:             "sessionId",
			`{"sessionId":"s","reason":7}`: "reason",
		} {
			got := a.post(target, body).failed(t, 400, api.CodeInvalidRequest)
			require.Equal(t, map[string]any{"field": field}, got.Detail, body)
		}
		a.post(target, `{"sessionId":"nobody"}`).failed(t, 404, api.CodeNotFound)
		a.post(target, `{"sessionId":"s","reason":"`+strings.Repeat("x", 9<<10)+`"}`).failed(t, 404, api.CodeNotFound)
		refusesBodies(t, a, target, api.MaxBody)
	}
	a.loop.Stop()
	a.append("s", created("s"), requested("s", "run-1"))
	a.post("/interrupt", `{"sessionId":"s"}`).failed(t, 503, api.CodeUnavailable)
}
