package httpapi_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/chat"
)

// TestChatReconnect: GET /chat/{id}/stream.
func TestChatReconnect(t *testing.T) {
	t.Parallel()
	g := gatedModel{make(chan struct{})}
	a := newChat(t, append(agents(g), waitingAgents()...))
	require.Equal(t, 204, a.get("/chat/nobody/stream").status)
	require.Equal(t, 204, a.get("/chat/nobody/stream", "X-Resume-From-Sequence", "7").status)
	a.get("/chat/%00/stream").failed(t, 400, api.CodeInvalidRequest)

	first := a.open("POST", "/chat", says("s", "gated", "hi"))
	seen := first.until("waiting")
	position := seen[len(seen)-1].id
	whole := a.open("GET", "/chat/s/stream", "", "X-Existing-Message-Id", "mine")
	require.Contains(t, whole.next().data, `"messageId":"mine"`)
	whole.until("waiting")
	resumed := a.open("GET", "/chat/s/stream", "", "X-Resume-From-Sequence", position, "Last-Event-ID", "1")
	require.Contains(t, resumed.next().data, `"type":"data-stream-resync"`)
	byEvent := a.open("GET", "/chat/s/stream", "", "Last-Event-ID", position)
	a.get("/chat/s/stream", "X-Resume-From-Sequence", "999999").failed(t, 416, api.CodeCursorAhead)
	for _, headers := range [][]string{
		{"X-Resume-From-Sequence", "-1"}, {"Last-Event-ID", "x"}, {"X-Existing-Message-Id", strings.Repeat("x", 257)},
	} {
		a.get("/chat/s/stream", headers...).failed(t, 400, api.CodeInvalidRequest)
	}
	for _, query := range []string{"?format=html", "?format=", "?format=text-stream-part&format=x"} {
		a.get("/chat/s/stream"+query).failed(t, 400, api.CodeInvalidRequest)
	}
	require.Equal(t, 200, a.request("HEAD", "/chat/s/stream", "").status)
	close(g.open)
	for _, s := range []*stream{first, whole, resumed, byEvent} {
		for _, e := range s.until("[DONE]") {
			require.NotContains(t, e.data, "waiting")
			require.NotContains(t, e.data, "data-stream-resync")
		}
	}

	// The end of a turn meanwhile is still sent, once, to a client that states its
	// position.
	require.Equal(t, 204, a.get("/chat/s/stream").status)
	rest := a.get("/chat/s/stream", "X-Resume-From-Sequence", position)
	require.Equal(t, 200, rest.status)
	got := parts(t, rest.body)
	require.Equal(t, " done", got.text())
	require.Equal(t, 204, a.get("/chat/s/stream", "X-Resume-From-Sequence", got[len(got)-1].id).status)
	a.chat(says("ask", "asker", "go"))
	require.Equal(t, 204, a.get("/chat/ask/stream").status)

	quiet := newAPIOn(t, a.log, agents(g), withChat(func(o *chat.Options) { o.NoResyncOnResume = true }))
	rest = quiet.get("/chat/s/stream", "X-Resume-From-Sequence", position)
	require.False(t, parts(t, rest.body).has("data-stream-resync"))
	require.Equal(t, " done", parts(t, rest.body).text())
}

// TestChatDialect: a request can ask for TextStreamParts.
func TestChatDialect(t *testing.T) {
	t.Parallel()
	a := newChat(t, agents(gatedModel{}))
	got := a.post("/chat?format=text-stream-part", says("s", "echo", "hi"))
	require.Equal(t, 200, got.status, got.body)
	require.Empty(t, got.header.Get("X-Vercel-Ai-Ui-Message-Stream"))
	require.Equal(t, "hello", parts(t, got.body).one(t, "text-delta")["text"])
	got = a.get("/chat/s/stream?format=text-stream-part", "Last-Event-ID", "1")
	require.Equal(t, "hello", parts(t, got.body).one(t, "text-delta")["text"])
}

// TestChatSubmit: POST /chat/{id}/submit-tool-result stores, and the session
// continues by itself when nothing is open.
func TestChatSubmit(t *testing.T) {
	t.Parallel()
	a := newChat(t, waitingAgents())
	result := func(call string) string {
		return `{"kind":"client-tool-result","toolCallId":"` + call + `","result":{"lat":1}}`
	}
	a.begin("s", "locator")
	target := "/chat/s/submit-tool-result"
	require.JSONEq(t, `{"status":"accepted","sessionId":"s","toolCallId":"here","pendingToolCallIds":["there"]}`, a.post(target, result("here")).body)
	require.Equal(t, "paused", a.status("s").Status)
	got := a.post(target, strings.Replace(result("there"), "{", `{"sessionId":"s",`, 1))
	require.JSONEq(t, `{"status":"accepted","sessionId":"s","toolCallId":"there","pendingToolCallIds":[]}`, got.body)
	a.wait("s")
	require.Equal(t, []string{"go", "", "found"}, a.said("s"))
	require.Equal(t, []string{"start", "continue"}, a.modes("s"))
	require.Contains(t, a.post(target, result("there")).body, `"already_completed"`)
	require.Equal(t, []string{"start", "continue"}, a.modes("s"))

	for _, body := range []string{
		strings.Replace(result("here"), "{", `{"sessionId":"other",`, 1), strings.Replace(result("here"), "{", `{"sessionId":7,`, 1),
		`{"kind":"client-tool-result","toolCallId":"here"}`, `{}`,
	} {
		require.Equal(t, "validation_error", a.post(target, body).failed(t, 400, api.CodeInvalidRequest).Status)
	}
	refusesBodies(t, a, target, api.MaxSubmitBody)
	a.post("/chat/nobody/submit-tool-result", result("here")).failed(t, 404, api.CodeNotFound)
	a.post(target, result("other")).failed(t, 409, api.CodeAlreadyCompleted)

	// One that nobody has resumed after it was answered continues with the same
	// answer again.
	a.begin("again", "asker")
	require.Equal(t, 200, a.post(submitTarget, fmt.Sprintf(approveRM, "again")).status)
	require.Equal(t, "paused", a.status("again").Status)
	require.Contains(t, a.post("/chat/again/submit-tool-result", fmt.Sprintf(approveRM, "again")).body, `"already_completed"`)
	a.wait("again")
	require.Equal(t, "completed", a.status("again").Status)

	// One that its user has stopped does not continue by itself.
	a.begin("stopped", "asker")
	require.Equal(t, 200, a.post("/chat/stopped/interrupt", `{}`).status)
	require.Contains(t, a.post("/chat/stopped/submit-tool-result", fmt.Sprintf(approveRM, "stopped")).body, `"accepted"`)
	require.Equal(t, "interrupted", a.status("stopped").Status)
	require.Equal(t, []string{"start"}, a.modes("stopped"))

	// Nor does any where that is switched off.
	manual := newAPIOn(t, a.log, waitingAgents(), withChat(func(o *chat.Options) { o.NoAutoResume = true }))
	manual.begin("manual", "asker")
	require.Contains(t, manual.post("/chat/manual/submit-tool-result", fmt.Sprintf(approveRM, "manual")).body, `"accepted"`)
	require.Equal(t, "paused", manual.status("manual").Status)
	require.Equal(t, []string{"start"}, manual.modes("manual"))
}

// TestChatStop: POST /chat/{id}/interrupt and /abort, with and without a body.
func TestChatStop(t *testing.T) {
	t.Parallel()
	g := gatedModel{make(chan struct{})}
	a := newChat(t, agents(g))
	for verb, want := range map[string]string{"interrupt": "interrupted", "abort": "failed"} {
		for i, body := range []string{"", `{"reason":"enough"}`, `{"sessionId":"%s"}`} {
			session := fmt.Sprint(verb, i)
			if strings.Contains(body, "%s") {
				body = fmt.Sprintf(body, session)
			}
			s := a.open("POST", "/chat", says(session, "gated", "hi"))
			s.until("waiting")
			got := a.post("/chat/"+session+"/"+verb, body)
			require.Equal(t, 200, got.status, got.body)
			require.JSONEq(t, `{"ok":true}`, got.body)
			s.until(`"type":"abort"`)
			s.until("[DONE]")
			require.Equal(t, want, a.status(session).Status)
			require.Equal(t, 204, a.get("/chat/"+session+"/stream").status)
			require.Equal(t, i == 1, strings.Contains(a.get("/sessions/"+session+"/records").body, "enough"))
		}
		target := "/chat/" + verb + "0/" + verb
		for _, body := range []string{"x", "[]", `{"reason":7}`, `{"sessionId":"other"}`, `{"reason":"a","reason":"b"}`} {
			a.post(target, body).failed(t, 400, api.CodeInvalidRequest)
		}
		raw(t, a, "POST "+target+" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").
			failed(t, http.StatusLengthRequired, api.CodeLengthRequired)
		a.post("/chat/nobody/"+verb, "").failed(t, 404, api.CodeNotFound)
	}
	close(g.open)
	// An aborted session continues with another turn.
	require.Equal(t, "waiting done", a.chat(says("abort0", "", "again")).text())
}
