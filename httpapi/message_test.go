package httpapi_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/integration/testkit"
	"github.com/helixd/helixd/projector"
)

// sends posts a message to a session and returns the run that answers it.
func (a *testAPI) sends(session, body string, headers ...string) engine.Started {
	a.t.Helper()
	got := a.post("/sessions/"+session+"/messages", body, headers...)
	require.Equal(a.t, 200, got.status, got.body)
	var s engine.Started
	got.decode(a.t, &s)
	require.Equal(a.t, session, s.SessionID)
	require.Equal(a.t, session, s.StreamID)
	require.NotEmpty(a.t, s.RunID)
	return s
}

// TestMessageBeginsTheNextTurn: a finished session refuses /start and /resume
// with an answer that names the route for a further turn, and that route works.
func TestMessageBeginsTheNextTurn(t *testing.T) {
	t.Parallel()
	a := newAPIOn(t, newLog(t), agents(gatedModel{}))
	require.Equal(t, 200, a.post("/start", `{"sessionId":"s","agentType":"echo","message":"one","userId":"ann"}`).status)
	a.stream("/sse?sessionId=s").rest()
	for _, again := range []string{"/start", "/resume"} {
		body := a.post(again, `{"sessionId":"s","agentType":"echo","message":"two"}`).failed(t, 409, api.CodeAlreadyCompleted)
		require.Contains(t, body.Error, "POST /sessions/{id}/messages")
	}
	first := a.status("s")
	second := a.sends("s", `{"message":"two","userId":"ann","metadata":{"from":"page"}}`)
	require.NotEqual(t, first.RunID, second.RunID)
	_, texts, _ := a.stream(fmt.Sprintf("/sse?sessionId=s&fromSequence=%d", first.LatestSequence)).rest()
	require.Contains(t, texts, "hello")
	tree := a.tree("s")
	require.Equal(t, 2, tree.TurnCount)
	require.Equal(t, "two", tree.Messages[2].Content)
	require.JSONEq(t, `{"from":"page"}`, string(tree.Messages[2].Metadata))
	require.Equal(t, "completed", a.status("s").Status)

	a.sends("s", `{"message":[{"role":"user","content":"a"},{"role":"user","content":"b","metadata":{"x":1,"y":1}}],"metadata":{"y":2}}`)
	a.stream("/sse?sessionId=s").rest()
	tree = a.tree("s")
	require.Equal(t, 3, tree.TurnCount)
	require.JSONEq(t, `{"x":1,"y":2}`, string(tree.Messages[5].Metadata))
}

// TestMessageOfAFailedSession: it begins a turn as well, which may succeed.
func TestMessageOfAFailedSession(t *testing.T) {
	t.Parallel()
	a := newAPIOn(t, newLog(t), agents(gatedModel{}))
	require.Equal(t, 200, a.post("/start", `{"sessionId":"s","agentType":"broken","message":"one"}`).status)
	a.stream("/sse?sessionId=s").rest()
	first := a.status("s")
	require.Equal(t, "failed", first.Status)
	require.NotEqual(t, first.RunID, a.sends("s", `{"message":"two"}`).RunID)
}

// TestMessageIsRepeatable: like /start, a repeated request answers with its run
// while that is live; with an idempotency key it does so ever after.
func TestMessageIsRepeatable(t *testing.T) {
	t.Parallel()
	g := gatedModel{make(chan struct{})}
	a := newAPIOn(t, newLog(t), agents(g))
	require.Equal(t, 200, a.post("/start", `{"sessionId":"s","agentType":"gated","message":"one"}`).status)
	g.open <- struct{}{}
	a.stream("/sse?sessionId=s").rest()

	run := a.sends("s", `{"message":"two","metadata":{"a": 1}}`)
	require.Equal(t, run, a.sends("s", `{"message":"two","metadata":{"a":1}}`))
	a.post("/sessions/s/messages", `{"message":"three"}`).failed(t, 409, api.CodeAlreadyRunning)
	a.post("/sessions/s/messages", `{"message":[{"role":"user","content":"one"},{"role":"user","content":"two","metadata":{"a":1}}]}`).
		failed(t, 409, api.CodeAlreadyRunning)
	g.open <- struct{}{}
	a.stream("/sse?sessionId=s").rest()

	key := []string{"Idempotency-Key", "k1"}
	keyed := a.sends("s", `{"message":"two","metadata":{"a":1}}`, key...)
	require.NotEqual(t, run, keyed)
	g.open <- struct{}{}
	a.stream("/sse?sessionId=s").rest()
	before := a.status("s").LatestSequence
	require.Equal(t, keyed, a.sends("s", `{"message":"two","metadata":{"a":1}}`, key...))
	a.post("/sessions/s/messages", `{"message":"other"}`, key...).failed(t, 409, api.CodeIdempotencyMismatch)
	require.Equal(t, before, a.status("s").LatestSequence, "nothing was appended")
	require.Equal(t, 3, a.tree("s").TurnCount)
}

// TestMessageMetadataIsAsSent: merging the request's metadata with the message's escapes nothing.
func TestMessageMetadataIsAsSent(t *testing.T) {
	t.Parallel()
	a := newAPIOn(t, newLog(t), agents(gatedModel{}))
	require.Equal(t, 200, a.post("/start", `{"sessionId":"s","agentType":"echo","message":"one"}`).status)
	a.wait("s")
	a.sends("s", `{"message":[{"role":"user","content":"two","metadata":{"a":"<&>"}}],"metadata":{"b":"<b>"}}`)
	a.wait("s")
	messages := a.tree("s").Messages
	require.Equal(t, `{"a":"<&>","b":"<b>"}`, string(messages[len(messages)-2].Metadata))
}

// TestAKeyAfterARollbackThatKeepsItsMessage: the message is answered again, and not appended
// a second time, whether it began a turn or went into an open one.
func TestAKeyAfterARollbackThatKeepsItsMessage(t *testing.T) {
	t.Parallel()
	g := gatedModel{make(chan struct{})}
	a := newAPIOn(t, newLog(t), agents(g))
	require.Equal(t, 200, a.post("/start", `{"sessionId":"turn","agentType":"echo","message":"one"}`).status)
	a.wait("turn")
	require.Equal(t, 200, a.post("/start", `{"sessionId":"open","agentType":"gated","message":"one"}`).status)
	require.Equal(t, 200, a.post("/interrupt", `{"sessionId":"open"}`).status)
	close(g.open)
	key := []string{"Idempotency-Key", "k1"}
	for session, turns := range map[string]int{"turn": 2, "open": 1} {
		first := a.sends(session, `{"message":"two"}`, key...)
		a.wait(session)
		require.Equal(t, 200, a.post("/sessions/"+session+"/rollback", fmt.Sprintf(`{"sequence":%d}`, a.tree(session).CurrentRun().StartSequence)).status)
		a.post("/sessions/"+session+"/messages", `{"message":"other"}`, key...).failed(t, 409, api.CodeIdempotencyMismatch)

		second := a.sends(session, `{"message":"two"}`, key...)
		require.NotEqual(t, first, second, session)
		a.wait(session)
		require.Equal(t, second, a.sends(session, `{"message":"two"}`, key...))
		tree := a.tree(session)
		var users []string
		for _, m := range tree.Messages {
			if m.Role == projector.RoleUser {
				users = append(users, m.Content)
			}
		}
		require.Equal(t, []string{"one", "two"}, users, session)
		require.Equal(t, projector.RoleAssistant, tree.Messages[len(tree.Messages)-1].Role, session)
		require.Equal(t, turns, tree.TurnCount, session)
		require.Equal(t, "completed", a.status(session).Status)
	}
}

func TestMessageValidates(t *testing.T) {
	t.Parallel()
	a := newAPIOn(t, newLog(t), agents(gatedModel{}))
	a.post("/sessions/nobody/messages", `{"message":"x"}`).failed(t, 404, api.CodeNotFound)
	require.Equal(t, 200, a.post("/start", `{"sessionId":"s","agentType":"echo","message":"one","userId":"ann"}`).status)
	a.stream("/sse?sessionId=s").rest()
	for body, field := range map[string]string{
		`{}`: "message", `{"message":""}`: "message", `{"message":[]}`: "message", `{"message":"x","metadata":[]}`: "metadata",
		`{"message":"x","userId":""}`: "userId", `{"message":[{"role":"assistant","content":"x"}]}`: "message[0].role",
	} {
		require.Equal(t, map[string]any{"field": field}, a.post("/sessions/s/messages", body).failed(t, 400, api.CodeInvalidRequest).Detail, body)
	}
	a.post("/sessions/s/messages", `{"message":"x"}`, "Idempotency-Key", "").failed(t, 400, api.CodeInvalidRequest)
	a.post("/sessions/s/messages", `{"message":"x","userId":"bob"}`).failed(t, 403, api.CodeUnauthorized)
	require.Equal(t, 1, a.tree("s").TurnCount)
}

// TestStatusDecides: wherever a session is taken back to, no answer calls it
// running, and a message continues it.
func TestStatusDecides(t *testing.T) {
	testkit.OneGoroutine(t)
	t.Parallel()
	a, _ := asked(t)
	for at := a.status("s").LatestSequence - 1; at >= 1; at-- {
		got := a.post("/sessions/s/rollback", fmt.Sprintf(`{"sequence":%d}`, at))
		require.Equal(t, 200, got.status, got.body)
		status := a.status("s")
		require.Contains(t, []string{"completed", "interrupted", "paused"}, status.Status, "after %d", at)
		require.NotContains(t, a.post("/start", `{"sessionId":"s","agentType":"locator","message":"x"}`).body, "is running", "after %d", at)
		if a.tree("s").Turn != nil || status.Status == "completed" {
			require.NotContains(t, a.post("/start", `{"sessionId":"s","agentType":"asker","message":"x"}`).body, "is running", "after %d", at)
		}
		if at%4 == 1 {
			id := fmt.Sprint("fork-", at)
			require.Equal(t, 200, a.post("/sessions/s/fork", fmt.Sprintf(`{"sessionId":%q}`, id)).status)
			require.NotEqual(t, "running", a.status(id).Status, "after %d", at)
			a.sends(id, `{"message":"go on"}`)
			a.wait(id)
		}
	}
}

// TestMessageAfterAnInterrupt: it continues the turn.
func TestMessageAfterAnInterrupt(t *testing.T) {
	t.Parallel()
	g := gatedModel{make(chan struct{})}
	a := newAPIOn(t, newLog(t), agents(g))
	require.Equal(t, 200, a.post("/start", `{"sessionId":"s","agentType":"gated","message":"one"}`).status)
	require.Equal(t, 200, a.post("/interrupt", `{"sessionId":"s"}`).status)
	run := a.sends("s", `{"message":"two"}`)
	close(g.open)
	a.stream("/sse?sessionId=s").rest()
	tree := a.tree("s")
	require.Equal(t, run.RunID, tree.CurrentRun().RunID)
	require.Equal(t, fact.ModeWithMessage, tree.CurrentRun().Mode)
	require.Equal(t, 1, tree.TurnCount)
	require.Equal(t, "completed", a.status("s").Status)
}

// TestAForkHasItsOwnKeys: what was sent to the session that it was forked from is not
// the answer to its own request, wherever the fork begins.
func TestAForkHasItsOwnKeys(t *testing.T) {
	t.Parallel()
	a := newAPIOn(t, newLog(t), agents(gatedModel{}))
	key := []string{"Idempotency-Key", "k1"}
	chunk := `[{"type":"text_delta","delta":"x","agentId":"s","agentType":"echo","timestamp":0,"step":0}]`
	require.Equal(t, 200, a.post("/sessions/s/chunks", chunk).status)
	first := a.status("s").LatestSequence
	a.sends("s", `{"message":"two"}`, key...) // the session's only one
	a.wait("s")
	var cuts []uint64
	for at := first + 1; at <= a.status("s").LatestSequence; at++ {
		if a.treeAt("s", at).CurrentRun() != nil {
			cuts = append(cuts, at)
		}
	}
	require.Len(t, a.treeAt("s", cuts[0]).Messages, 1)
	for i, at := range cuts {
		id := fmt.Sprint("f", i)
		require.Equal(t, 200, a.post("/sessions/s/fork", fmt.Sprintf(`{"sessionId":%q,"sequence":%d}`, id, at)).status)
		before := a.status(id).LatestSequence
		run := a.sends(id, `{"message":"other"}`, key...)
		a.wait(id)
		require.Equal(t, run, a.sends(id, `{"message":"other"}`, key...))
		a.post("/sessions/"+id+"/messages", `{"message":"two"}`, key...).failed(t, 409, api.CodeIdempotencyMismatch)

		require.Equal(t, 200, a.post("/sessions/"+id+"/fork", fmt.Sprintf(`{"sessionId":"%s-again","sequence":%d}`, id, before)).status)
		a.sends(id+"-again", `{"message":"two"}`, key...)
		a.wait(id + "-again")
	}
}

// TestAppendsOfAForkHaveTheirOwnKeys: an append to a fork is carried out although the
// session that it was forked from has answered the key.
func TestAppendsOfAForkHaveTheirOwnKeys(t *testing.T) {
	a := newAPIOn(t, newLog(t), agents(gatedModel{}))
	chunk := func(agent string) string {
		return fmt.Sprintf(`[{"type":"text_delta","delta":"x","agentId":%q,"agentType":"echo","timestamp":0,"step":0}]`, agent)
	}
	key := []string{"Idempotency-Key", "k1"}
	require.Equal(t, 200, a.post("/sessions/s/chunks", chunk("s"), key...).status)
	require.Equal(t, 200, a.post("/sessions/s/fork", `{"sessionId":"f"}`).status)
	before := a.status("f").LatestSequence
	first := a.post("/sessions/f/chunks", chunk("f"), key...)
	require.Equal(t, 200, first.status, first.body)
	var done api.Appended
	first.decode(t, &done)
	require.Greater(t, done.FirstSequence, before)
	require.Equal(t, first.body, a.post("/sessions/f/chunks", chunk("f"), key...).body)
	require.Equal(t, done.LastSequence, a.status("f").LatestSequence)
}
