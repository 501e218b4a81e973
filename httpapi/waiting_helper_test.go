package httpapi_test

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/httpapi/api"
)

// saying is an agent's script whose first turn calls tools.
func saying(text string, calls ...scripted.Call) []scripted.Turn {
	return []scripted.Turn{{ToolCalls: calls}, {Text: text}}
}

func calling(id, name, args string) scripted.Call {
	return scripted.Call{ID: id, Name: name, Arguments: json.RawMessage(args)}
}

// waitingAgents are agents whose calls wait: asker for an approval, locator
// for two clients, hurry for a client that has a minute, parent for the
// approval that its sub-agent asks for.
func waitingAgents() []agentloop.Agent {
	removing := agentloop.Tool{
		Name: "remove", RequireApproval: agentloop.AlwaysApprove,
		Execute: func(_ context.Context, _ *agentloop.Call, args json.RawMessage) (any, error) { return args, nil },
	}
	locating := agentloop.Tool{
		Name: "locate", Client: true, OutputSchema: json.RawMessage(`{"type":"object","required":["lat"]}`),
	}
	late := locating
	late.Timeout = time.Minute
	return []agentloop.Agent{
		{Name: "asker", Model: scripted.New(saying("removed", calling("rm", "remove", `{"path":"/x"}`)), nil), Tools: []agentloop.Tool{removing}},
		{Name: "locator", Model: scripted.New(saying("found", calling("here", "locate", `{}`), calling("there", "locate", `{"far":true}`)), nil), Tools: []agentloop.Tool{locating}},
		{Name: "hurry", Model: scripted.New(saying("too late", calling("now", "locate", `{}`)), nil), Tools: []agentloop.Tool{late}},
		{
			Name: "child", Tools: []agentloop.Tool{removing}, OutputSchema: json.RawMessage(`{"type":"object"}`),
			Model: scripted.New([]scripted.Turn{
				{ToolCalls: []scripted.Call{calling("inner", "remove", `{"path":"/y"}`)}},
				{ToolCalls: []scripted.Call{calling("", agentloop.FinishTool, `{"ok":true}`)}},
			}, nil),
		},
		{
			Name: "parent", SubAgents: []agentloop.SubAgent{{Agent: "child"}},
			Model: scripted.New(saying("all done", calling("task", "subagent__child", `{"message":"do it"}`)), nil),
		},
	}
}

// outlivedBoss is an agent, boss, whose sub-agent continues when it has finished.
func outlivedBoss(g gatedModel) []agentloop.Agent {
	spawn := calling("spawn", "companion__spawnAgent", `{"agent":"helper","name":"h","initialMessage":"work"}`)
	return []agentloop.Agent{
		{
			Name: "boss", PersistentAgents: []agentloop.PersistentAgent{{Agent: "helper", Mode: agentloop.NonBlocking}},
			Model: scripted.New(saying("bye", spawn), nil),
		},
		{Name: "helper", Model: g},
	}
}

// begin starts a run and waits until its stream ends or waits.
func (a *testAPI) begin(session, agent string) (texts []string, end sseEvent) {
	a.t.Helper()
	got := a.post("/start", `{"sessionId":"`+session+`","agentType":"`+agent+`","message":"go"}`)
	require.Equal(a.t, 200, got.status, got.body)
	return a.wait(session)
}

// wait reads the session's stream to where it ends or waits.
func (a *testAPI) wait(session string) (texts []string, end sseEvent) {
	a.t.Helper()
	_, texts, end = a.stream("/sse?sessionId=" + session).rest()
	return texts, end
}

func (a *testAPI) status(session string) (status api.Status) {
	a.t.Helper()
	a.get("/status?sessionId="+session).decode(a.t, &status)
	return status
}

func (a *testAPI) pending(session string) []api.PendingToolCall {
	a.t.Helper()
	var summary api.SessionSummary
	a.get("/sessions/"+session).decode(a.t, &summary)
	return summary.PendingToolCalls
}

// refusesBodies checks what a route answers to bodies that are none.
func refusesBodies(t *testing.T, a *testAPI, target string, limit int) {
	t.Helper()
	head := "POST " + target + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
	raw(t, a, head+"\r\n").failed(t, http.StatusLengthRequired, api.CodeLengthRequired)
	raw(t, a, head+"Content-Length: 0\r\n\r\n").failed(t, 400, api.CodeInvalidRequest)
	got := a.post(target, string(make([]byte, limit+1))).failed(t, 413, api.CodePayloadTooLarge)
	require.Equal(t, map[string]any{"limit": float64(limit)}, got.Detail)
	for _, body := range []string{
		"x", "null", "[]", `"s"`, `{} {}`, `{"sessionId":"s"`, "{\"sessionId\":\"\xff\"}", `{"sessionId":"s","sessionId":"s"}`,
	} {
		a.post(target, body).failed(t, 400, api.CodeInvalidRequest)
	}
}
