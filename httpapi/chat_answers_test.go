package httpapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/httpapi/api"
)

// stored counts the session's records of a type.
func (a *testAPI) stored(session, kind string) (n int) {
	for line := range strings.Lines(a.get("/sessions/" + session + "/records").body) {
		if strings.Contains(line, `"`+kind+`"`) {
			n++
		}
	}
	return n
}

// TestChatApproval, path 1: a decision is submitted, the session continues, and
// the stream continues with the client's message.
func TestChatApproval(t *testing.T) {
	t.Parallel()
	a := newChat(t, waitingAgents())
	for _, approved := range []bool{true, false} {
		session := fmt.Sprint(approved)
		got := a.chat(says(session, "asker", "go"))
		require.Equal(t, "tool-calls", got.one(t, "finish")["finishReason"])
		id := got.one(t, "tool-approval-request")["approvalId"].(string)
		require.Equal(t, 204, a.get("/chat/"+session+"/stream").status)

		got = a.chat(goesOn(session, "my-id", approval("rm", id, approved)))
		require.Equal(t, "my-id", got.one(t, "start")["messageId"])
		require.False(t, got.has("tool-approval-request"), "it was sent before: %v", got)
		if approved {
			require.Equal(t, map[string]any{"path": "/x"}, got.one(t, "tool-output-available")["output"])
		} else {
			require.Equal(t, "rm", got.one(t, "tool-output-denied")["toolCallId"])
			require.Contains(t, a.get("/sessions/"+session+"/records").body, "because")
		}
		require.Equal(t, "removed", got.text())
		require.Equal(t, []string{"go", "", "removed"}, a.said(session))
		require.Equal(t, []string{"start", "continue"}, a.modes(session))

		// The same request again, its answer lost, gets it once more; a client
		// that has it all has nothing to ask for.
		again := a.chat(goesOn(session, "my-id", approval("rm", id, approved)))
		require.Equal(t, got.text(), again.text())
		require.Equal(t, "my-id", again.one(t, "start")["messageId"])
		all := approval("rm", id, approved) + `,{"type":"step-start"},{"type":"text","text":"removed"}`
		a.post("/chat", goesOn(session, "my-id", all)).failed(t, 400, api.CodeInvalidRequest)
		require.Equal(t, []string{"start", "continue"}, a.modes(session))
	}
	require.NotContains(t, a.logs.String(), "ERROR")
}

// TestAutomaticApprovals: the request says that a gate, not the tool's setting,
// has asked for the approval, and the response that nobody has decided.
func TestAutomaticApprovals(t *testing.T) {
	t.Parallel()
	agent := func(name string, gate agentloop.Gate) agentloop.Agent {
		tool := waitingAgents()[0].Tools[0]
		tool.RequireApproval = gate
		return agentloop.Agent{Name: name, Tools: []agentloop.Tool{tool}, Model: otherwise{
			scripted.New(saying("removed", calling("rm", "remove", `{"path":"/x"}`)), nil),
		}}
	}
	a := newChat(t, []agentloop.Agent{
		agent("always", agentloop.AlwaysApprove),
		agent("judged", func(context.Context, *agentloop.Call, json.RawMessage) (bool, error) { return true, nil }),
		agent("broken", func(context.Context, *agentloop.Call, json.RawMessage) (bool, error) {
			return false, errors.New("no idea")
		}),
	})
	automatic := func(session, kind string) (said any) {
		for line := range strings.Lines(a.get("/sessions/" + session + "/records").body) {
			var r struct {
				Type string
				Data map[string]any
			}
			require.NoError(t, json.Unmarshal([]byte(line), &r))
			if r.Type == kind {
				said = r.Data["isAutomatic"]
			}
		}
		return said
	}
	for name, want := range map[string]any{"always": nil, "judged": true, "broken": true} {
		id := a.chat(says(name, name, "go")).one(t, "tool-approval-request")["approvalId"].(string)
		require.Equal(t, want, automatic(name, "tool_approval_request"), name)
		a.chat(goesOn(name, "msg-1", approval("rm", id, false)))
		require.Nil(t, automatic(name, "tool_approval_response"), "a person has decided")
	}
	a.chat(says("abandoned", "always", "go"))
	a.chat(says("abandoned", "", "never mind"))
	require.Equal(t, true, automatic("abandoned", "tool_approval_response"))
}

// TestChatApprovalOnce: of clients that decide at once one is heard, and all
// see how it continues.
func TestChatApprovalOnce(t *testing.T) {
	t.Parallel()
	a := newChat(t, waitingAgents())
	id := a.chat(says("s", "asker", "go")).one(t, "tool-approval-request")["approvalId"].(string)
	const clients = 8
	answers := make(chan answer, clients)
	for range clients {
		go func() { answers <- a.post("/chat", goesOn("s", "msg-1", approval("rm", id, true))) }()
	}
	for range clients {
		got := <-answers
		require.Equal(t, 200, got.status, got.body)
		require.Equal(t, "removed", parts(t, got.body).text())
	}
	require.Equal(t, 1, a.stored("s", "result_submitted"))
	require.Equal(t, []string{"go", "", "removed"}, a.said("s"))
}

func located(call, state string) string {
	return fmt.Sprintf(`{"type":"tool-locate","toolCallId":%q,"input":{},"state":%s}`, call, state)
}

// TestChatClientTools, path 1: outputs and errors of client tools, one by one
// or together, between outputs that are history.
func TestChatClientTools(t *testing.T) {
	t.Parallel()
	a := newChat(t, talkingAgents())
	here := located("here", `"output-available","output":{"lat":1}`)
	there := located("there", `"output-error","errorText":"no signal"`)
	history := `{"type":"tool-other","toolCallId":"old","state":"output-available","output":1},{"type":"tool-bad","state":7},
		{"type":"text","state":"output-available"},{"type":"dynamic-tool","toolName":"x","toolCallId":"gone","state":"output-error","errorText":""},`

	a.chat(says("one by one", "locator", "go"))
	require.Len(t, a.pending("one%20by%20one"), 2)
	got := a.chat(goesOn("one by one", "msg-1", history+here))
	require.Equal(t, "tool-calls", got.one(t, "finish")["finishReason"], "the other one is open")
	require.Equal(t, []string{"start"}, a.modes("one by one"))
	require.Len(t, a.pending("one%20by%20one"), 1)
	got = a.chat(goesOn("one by one", "msg-1", history+here+","+there))
	require.Equal(t, "found", got.text())

	a.chat(says("together", "locator", "go"))
	got = a.chat(goesOn("together", "msg-1", here+","+there))
	require.Equal(t, "found", got.text())
	require.Equal(t, 2, a.stored("together", "result_submitted"))
	require.Contains(t, a.get("/sessions/together/records").body, "no signal")

	// An answer that no run has used yet, such as one by POST /submit-tool-result.
	a.chat(says("taken up", "locator", "go"))
	for _, call := range []string{"here", "there"} {
		body := `{"sessionId":"taken up","kind":"client-tool-result","toolCallId":"` + call + `","result":{"lat":2}}`
		require.Equal(t, 200, a.post(submitTarget, body).status)
	}
	require.Equal(t, "paused", a.status("taken%20up").Status)
	got = a.chat(goesOn("taken up", "msg-1", here+","+there))
	require.Equal(t, "found", got.text())
	require.NotContains(t, a.get("/sessions/taken%20up/records").body, "no signal", "the first answer holds")

	// A message after the answers goes with them.
	a.chat(says("and more", "locator", "go"))
	got = a.chat(`{"id":"and more","messages":[` + user("u", "go") + `,{"id":"msg-1","role":"assistant","parts":[` + here + `]},` + user("v", "hurry") + `]}`)
	require.Equal(t, "you said hurry", got.text())
	require.Equal(t, []string{"go", "", "hurry", "you said hurry"}, a.said("and more"))
	require.Equal(t, []string{"start", "with_message"}, a.modes("and more"))
	require.Contains(t, a.get("/sessions/and%20more/records").body, `"lat":1`)
	require.Contains(t, a.get("/sessions/and%20more/records").body, agentloop.CodeClientToolAbandoned, "the other call")

	// An undefined output is left out by clients.
	free := []agentloop.Agent{{
		Name: "free", Model: scripted.New(saying("ok", calling("c", "show", `{}`)), nil), Tools: []agentloop.Tool{{Name: "show", Client: true}},
	}}
	b := newChat(t, free)
	b.chat(says("s", "free", "go"))
	require.Equal(t, "ok", b.chat(goesOn("s", "msg-1", `{"type":"tool-show","toolCallId":"c","state":"output-available"}`)).text())
}

// TestChatAnswersRefused: kinds are binding, and what is refused is not stored.
func TestChatAnswersRefused(t *testing.T) {
	t.Parallel()
	a := newChat(t, waitingAgents())
	id := a.chat(says("ask", "asker", "go")).one(t, "tool-approval-request")["approvalId"].(string)
	a.chat(says("loc", "locator", "go"))
	long := strings.Repeat("x", 8<<10+1)
	for _, tc := range [][2]string{
		{"ask", `{"type":"tool-remove","toolCallId":"rm","state":"output-available","output":1}`},
		{"ask", approval("rm", "other::rm", true)},
		{"ask", approval("rm", "", true)},
		{"ask", `{"type":"tool-remove","toolCallId":"rm","state":"approval-responded","approval":{"id":"` + id + `","approved":"yes"}}`},
		{"ask", `{"type":"tool-remove","toolCallId":"rm","state":"approval-responded","approval":{"id":"` + id + `","Approved":true}}`},
		{"ask", `{"type":"tool-remove","toolCallId":"rm","state":"approval-responded","approval":{"id":"` + id + `","approved":true,"reason":"` + long + `"}}`},
		{"ask", `{"type":"tool-remove","toolCallId":"rm","state":"approval-responded"}`},
		{"loc", `{"type":"tool-locate","toolCallId":"here","state":"approval-responded","approval":{"id":"x","approved":true}}`},
		{"loc", located("here", `"output-available","output":{"lon":1}`)},
		{"loc", located("here", `"output-available"`)},
		{"loc", located("here", `"output-error","errorText":""`)},
		{"loc", located("here", `"output-error","errorText":"`+long+`"`)},
	} {
		got := a.post("/chat", goesOn(tc[0], "msg-1", tc[1])).failed(t, 400, api.CodeInvalidRequest)
		require.Equal(t, "validation_error", got.Status, tc[1])
	}
	require.Zero(t, a.stored("ask", "result_submitted"))
	require.Zero(t, a.stored("loc", "result_submitted"))
	for _, parts := range []string{ // nothing of it answers a call
		"", `{"type":"tool-remove","toolCallId":"rm","state":"approval-requested","approval":{"id":"` + id + `"}}`,
		`{"type":"tool-remove","toolCallId":"RM","state":"output-available","output":1}`,
	} {
		got := a.post("/chat", goesOn("ask", "msg-1", parts)).failed(t, 400, api.CodeInvalidRequest)
		require.Contains(t, got.Error, "nothing new")
	}
	// An approval may be answered with an error: it was not executed.
	got := a.chat(goesOn("ask", "msg-1", `{"type":"tool-remove","toolCallId":"rm","state":"output-error","errorText":"closed"}`))
	require.Equal(t, "removed", got.text())
	require.NotContains(t, a.logs.String(), "ERROR")
}

// TestChatSubAgentAsks: the root's client answers for sub-agents.
func TestChatSubAgentAsks(t *testing.T) {
	t.Parallel()
	a := newChat(t, waitingAgents())
	got := a.chat(says("p", "parent", "go"))
	asked := got.one(t, "tool-approval-request")
	got = a.chat(goesOn("p", "msg-1", approval(asked["toolCallId"].(string), asked["approvalId"].(string), true)))
	require.Equal(t, "all done", got.text())
	require.Equal(t, "completed", a.status("p").Status)
}

// TestChatMessageOverCalls, path 3: who says something else while calls wait
// abandons them.
func TestChatMessageOverCalls(t *testing.T) {
	t.Parallel()
	a := newChat(t, talkingAgents())
	a.chat(says("s", "locator", "go"))
	got := a.chat(says("s", "", "never mind"))
	require.Equal(t, "you said never mind", got.text())
	require.Equal(t, "msg-3", got.one(t, "start")["messageId"])
	require.Equal(t, []string{"go", "", "never mind", "you said never mind"}, a.said("s"))
	require.Equal(t, []string{"start", "with_message"}, a.modes("s"))
	require.Empty(t, a.pending("s"))
	for _, m := range a.tree("s").Messages[2:4] {
		require.Equal(t, agentloop.CodeClientToolAbandoned, m.ErrorCode)
	}
}

// TestChatMessageAfterStop, path 4: an interrupted session continues with what is
// said; so does one whose process has died.
func TestChatMessageAfterStop(t *testing.T) {
	t.Parallel()
	g := gatedModel{make(chan struct{})}
	a := newChat(t, agents(g))
	s := a.open("POST", "/chat", says("s", "gated", "hi"))
	s.until("waiting")
	require.Equal(t, 200, a.post("/chat/s/interrupt", `{"reason":"enough"}`).status)
	s.until("[DONE]")
	require.Equal(t, 204, a.get("/chat/s/stream").status)
	a.post("/chat", `{"id":"s","messages":[]}`).failed(t, 400, api.CodeInvalidRequest)
	close(g.open)
	require.Equal(t, "waiting done", a.chat(says("s", "", "go on")).text())
	require.Equal(t, []string{"hi", "go on", "waiting done"}, a.said("s"))
	require.Equal(t, []string{"start", "with_message"}, a.modes("s"))

	for session, tc := range map[string]struct {
		body string
		said []string
	}{
		"died":  {`{"id":"died","messages":[]}`, []string{"hi", "hello"}},
		"dead":  {`{"id":"dead","messages":[` + user("u", "hi") + `]}`, []string{"hi", "hello"}},
		"awake": {says("awake", "", "hello?"), []string{"hi", "hello?", "hello"}},
	} {
		a.append(session, factOf(session, &fact.SessionCreated{AgentType: "echo", Base: factBase(session)}),
			factOf(session, &fact.UserMessage{Content: "hi", MessageID: "u", Base: factBase(session)}), requested(session, "run-1"))
		require.Equal(t, "hello", a.chat(tc.body).text())
		require.Equal(t, tc.said, a.said(session))
	}
}

// TestChatExpired, path 7: a client that comes back after a call's deadline has
// it timed out.
func TestChatExpired(t *testing.T) {
	t.Parallel()
	locate := agentloop.Tool{Name: "locate", Client: true, Timeout: 20 * time.Millisecond}
	a := newChat(t, []agentloop.Agent{
		{Name: "hurry", Model: scripted.New(saying("too late", calling("now", "locate", `{}`)), nil), Tools: []agentloop.Tool{locate}},
	})
	a.chat(says("s", "hurry", "go"))
	pending := a.pending("s")
	require.Len(t, pending, 1)
	<-time.After(time.Until(time.UnixMilli(pending[0].Deadline + 1)))
	body := goesOn("s", "msg-1", located("now", `"input-available"`))
	got := a.chat(body)
	require.Equal(t, "too late", got.text())
	require.Equal(t, "msg-1", got.one(t, "start")["messageId"])
	require.Contains(t, a.get("/sessions/s/records").body, agentloop.CodeClientToolTimeout)

	// An answer that comes too late stores the time-out, and the session continues.
	a.chat(says("late", "hurry", "go"))
	<-time.After(time.Until(time.UnixMilli(a.pending("late")[0].Deadline + 1)))
	require.Equal(t, "too late", a.chat(goesOn("late", "msg-1", located("now", `"output-available","output":1`))).text())
}
