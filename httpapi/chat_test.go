package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
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
	"github.com/helixd/helixd/projector"
)

// TestChatTurns, path 5: a message begins a session, and further turns of one
// that has completed or failed.
func TestChatTurns(t *testing.T) {
	t.Parallel()
	a := newChat(t, agents(gatedModel{}))
	first := a.post("/chat", says("s", "echo", "one"))
	require.Equal(t, 200, first.status, first.body)
	require.Equal(t, "s", first.header.Get("X-Session-Id"))
	got := parts(t, first.body)
	require.Equal(t, []string{"start", "start-step", "text-start", "text-delta", "text-end", "finish-step", "finish"}, got.kinds())
	require.Equal(t, "msg-1", got.one(t, "start")["messageId"])
	require.Equal(t, "stop", got.one(t, "finish")["finishReason"])
	require.Equal(t, "hello", got.text())

	got = a.chat(`{"id":"s","trigger":"submit-message","messages":[` + user("x", "two") + `]}`)
	require.Equal(t, "msg-3", got.one(t, "start")["messageId"])
	require.Equal(t, "hello", got.text())
	require.Equal(t, []string{"one", "hello", "two", "hello"}, a.said("s"))
	require.Equal(t, []string{"start", "start"}, a.modes("s"))

	// POST /start refuses what POST /chat continues with.
	a.post("/start", `{"sessionId":"s","agentType":"echo","message":"x"}`).failed(t, 409, api.CodeAlreadyCompleted)

	for range 2 {
		got = a.chat(says("bad", "broken", "try"))
		require.Equal(t, "bad key", got.one(t, "error")["errorText"])
		require.Equal(t, "error", got.one(t, "finish")["finishReason"])
	}
	require.Equal(t, []string{"try", "try"}, a.said("bad"))
	require.NotContains(t, a.logs.String(), "ERROR")
}

// TestChatPersistsFirst: what the client said is durable before it hears
// anything, and a client that leaves stops nothing.
func TestChatPersistsFirst(t *testing.T) {
	t.Parallel()
	g := gatedModel{make(chan struct{})}
	a := newChat(t, agents(g))
	s := a.open("POST", "/chat", says("s", "gated", "hi"))
	require.Contains(t, s.next().data, `"start"`)
	require.Contains(t, a.get("/sessions/s/records").body, `"user_message"`)
	s.until("waiting")
	s.cancel()
	close(g.open)
	a.wait("s")
	require.Equal(t, []string{"hi", "waiting done"}, a.said("s"))
}

// TestChatWhileRunning: a further message is refused, the same one again is a
// repeated request, path 6.
func TestChatWhileRunning(t *testing.T) {
	t.Parallel()
	g := gatedModel{make(chan struct{})}
	a := newChat(t, agents(g))
	first := says("s", "gated", "hi")
	s := a.open("POST", "/chat", first)
	s.until("waiting")
	a.post("/chat", says("s", "gated", "more")).failed(t, 409, api.CodeAlreadyRunning)
	a.post("/chat", `{"id":"s","trigger":"regenerate-message","messages":[]}`).failed(t, 409, api.CodeAlreadyRunning)

	again := a.open("POST", "/chat", first)
	require.Contains(t, again.next().data, `"messageId":"msg-1"`, "from the message's beginning")
	head := again.until("waiting")
	nothingNew := a.open("POST", "/chat", `{"id":"s","messages":[]}`)
	nothingNew.until("waiting")
	position := head[len(head)-1].id
	rest := a.open("POST", "/chat", `{"id":"s","messages":[]}`, "X-Resume-From-Sequence", position)
	resync := rest.next()
	require.Contains(t, resync.data, "data-stream-resync")
	require.Contains(t, resync.data, `"checkpointId":"","stepCount":0,"messageCount":0,"fromSequence":0,`, "there is no checkpoint yet")
	close(g.open)
	for _, r := range []*stream{s, again, nothingNew, rest} {
		for _, e := range r.until("[DONE]") {
			require.NotContains(t, e.data, "waiting", "it was sent before")
		}
	}
	require.Equal(t, []string{"hi", "waiting done"}, a.said("s"))
	require.Equal(t, []string{"start"}, a.modes("s"))

	a.post("/chat", `{"id":"s","messages":[]}`, "X-Resume-From-Sequence", "x").failed(t, 400, api.CodeInvalidRequest)
}

// TestChatRepeated: a request whose answer was lost gets the answer again, and
// appends nothing.
func TestChatRepeated(t *testing.T) {
	t.Parallel()
	a := newChat(t, agents(gatedModel{}))
	first := says("s", "echo", "one")
	a.chat(first)
	require.Equal(t, "hello", a.chat(first).text())
	require.Equal(t, []string{"one", "hello"}, a.said("s"))
	two := `{"id":"s","messages":[` + user("u", "one") + `,{"id":"msg-1","role":"assistant","parts":[]},` + user("v", "one") + `]}`
	require.Equal(t, "hello", a.chat(two).text())
	require.Equal(t, []string{"one", "hello", "one", "hello"}, a.said("s"), "the client counts it as a further one")
	for _, again := range []string{
		two,
		`{"id":"s","messageId":"v","messages":[` + user("v", "one") + `]}`,
	} {
		got := a.chat(again)
		require.Equal(t, "hello", got.text())
		require.Equal(t, "msg-3", got.one(t, "start")["messageId"])
		require.Len(t, a.said("s"), 4, again)
	}
	for _, edited := range []string{user("msg-2", "two"), user("msg-0", "one")} {
		id := edited[7:12]
		a.post("/chat", `{"id":"s","messageId":"`+id+`","messages":[`+edited+`]}`).failed(t, 400, api.CodeInvalidRequest)
	}
	require.Len(t, a.said("s"), 4)
	a.chat(`{"id":"s","messages":[{"role":"user","parts":[{"type":"text","text":"one"}]}]}`)
	require.Len(t, a.said("s"), 6, "what has no id is always a further message")
}

// TestALateRepeat: a request that repeats an earlier message of the session has
// nothing new, also if others have sent messages since.
func TestALateRepeat(t *testing.T) {
	t.Parallel()
	may := make(chan struct{})
	model := late{scripted.New([]scripted.Turn{{Text: "hello"}}, nil), may}
	a := newChat(t, append(talkingAgents(), agentloop.Agent{Name: "late", Model: model}))
	for _, agent := range []string{"asker", "locator"} { // the session waits after the last message
		first := says(agent, agent, "hello")
		a.chat(first)
		a.chat(says(agent, "", "and?"))
		count := len(a.said(agent))
		repeat := func() {
			got := a.post("/chat", first).failed(t, 400, api.CodeInvalidRequest)
			require.Contains(t, got.Error, "nothing new")
			require.Len(t, a.said(agent), count)
		}
		repeat() // the session is finished
		a.chat(says(agent, "", "go"))
		count = len(a.said(agent))
		repeat() // it waits
	}

	// While a run is live, a client with nothing new attaches to it.
	first := says("live", "late", "one")
	s := a.open("POST", "/chat", first)
	may <- struct{}{}
	s.until("[DONE]")
	next := a.open("POST", "/chat", says("live", "", "two"))
	again := a.open("POST", "/chat", first)
	require.Contains(t, again.next().data, `"messageId":"msg-3"`)
	may <- struct{}{}
	next.until("[DONE]")
	again.until("[DONE]")
	require.Equal(t, []string{"one", "hello", "two", "hello"}, a.said("live"))
}

// TestChatAtOnce: of many requests that say the same at once, the session gets
// one message, and all get its answer.
func TestChatAtOnce(t *testing.T) {
	t.Parallel()
	g := gatedModel{make(chan struct{})}
	a := newChat(t, agents(g))
	const clients = 4
	streams := make(chan *stream, clients)
	body := says("s", "gated", "hi")
	for range clients {
		go func() { streams <- a.open("POST", "/chat", body) }()
	}
	var all []*stream
	for range clients {
		all = append(all, <-streams)
	}
	close(g.open)
	for _, s := range all {
		s.until(" done")
		s.until("[DONE]")
	}
	require.Equal(t, []string{"hi", "waiting done"}, a.said("s"))
}

// TestChatMessages: what a user message becomes.
func TestChatMessages(t *testing.T) {
	t.Parallel()
	a := newChat(t, agents(gatedModel{}))
	a.chat(`{"id":"s","agentType":"echo","metadata":{"source":"web","b":{"x":"<&>"}},"messages":[{"id":"u","role":"user",
		"metadata":{"source":"own","a":1},"parts":[
			{"type":"step-start"},{"type":"text","text":"look "},{"type":"data-thing","data":{"text":"no"}},{"type":"text","text":"here"},
			{"type":"file","url":"data:text/plain;base64,aGk=","mediaType":"text/plain","filename":"f.txt","more":1}
		]}],"later":true}`)
	m := a.tree("s").Messages[0]
	require.Equal(t, "look here", m.Content)
	require.Equal(t, []fact.MessageFile{{Data: "data:text/plain;base64,aGk=", MediaType: "text/plain", Filename: "f.txt"}}, m.Files)
	require.JSONEq(t, `{"source":"web","a":1,"b":{"x":"<&>"}}`, string(m.Metadata))
	a.chat(`{"id":"none","agentType":"echo","messages":[{"role":"user","metadata":null,"parts":[{"type":"text","text":"hi"}]}]}`)
	require.Nil(t, a.tree("none").Messages[0].Metadata)

	message := func(parts string) string {
		return `{"id":"bad","agentType":"echo","messages":[{"id":"u","role":"user","parts":` + parts + `}]}`
	}
	hi := user("u", "hi")
	for body, field := range map[string]string{
		message(`[]`):                                "messages[0].parts",
		message(`[{"type":"data-x","data":1}]`):      "messages[0].parts",
		message(`[{"type":"text","text":""}]`):       "messages[0].parts",
		message(`[{"type":"text"}]`):                 "messages[0].parts[0].text",
		message(`[{"text":"x"}]`):                    "messages[0].parts[0].type",
		message(`[7]`):                               "messages[0].parts[0]",
		message(`7`):                                 "messages[0].parts",
		message(`[{"type":"file","url":"data:,x"}]`): "messages[0].parts[0].mediaType",
		message(`[{"type":"file","mediaType":"a/b","url":"http://h/x"}]`):                                            "messages[0].parts[0].url",
		`{"id":"bad","agentType":"echo","messages":[{"role":"user"}]}`:                                               "messages[0].parts",
		`{"id":"bad","metadata":{"hidden":true},"messages":[` + hi + `]}`:                                            "messages[0].metadata.hidden",
		`{"id":"bad","metadata":{"helix":"x"},"messages":[` + hi + `]}`:                                              "messages[0].metadata.helix",
		`{"id":"bad","metadata":[],"messages":[` + hi + `]}`:                                                         "metadata",
		`{"id":"bad","messages":[{"role":"user","metadata":{"hidden":false},"parts":[{"type":"text","text":"x"}]}]}`: "messages[0].metadata.hidden",
		`{"id":"bad","messages":[{"role":"user","metadata":7,"parts":[{"type":"text","text":"x"}]}]}`:                "messages[0].metadata",
	} {
		got := a.post("/chat", body).failed(t, 400, api.CodeInvalidRequest)
		require.Equal(t, map[string]any{"field": field}, got.Detail, body)
	}
	a.get("/status?sessionId=bad").failed(t, 404, api.CodeNotFound)
}

// TestChatRequests: what is no request to chat.
func TestChatRequests(t *testing.T) {
	t.Parallel()
	a := newChat(t, agents(gatedModel{}))
	refusesBodies(t, a, "/chat", api.MaxBody)
	hi := user("u", "hi")
	for body, field := range map[string]string{
		`{"messages":[` + hi + `]}`:                           "id",
		`{"id":7,"messages":[` + hi + `]}`:                    "id",
		`{"id":"s","sessionId":7,"messages":[` + hi + `]}`:    "sessionId",
		`{"id":"s","sessionId":null,"messages":[` + hi + `]}`: "sessionId",
		`{"id":"s"}`:                                            "messages",
		`{"id":"s","messages":{}}`:                              "messages",
		`{"id":"s","messages":[7]}`:                             "messages[0]",
		`{"id":"s","messages":[]}`:                              "messages",
		`{"id":"s","messages":[{"role":"system"}]}`:             "messages",
		`{"id":"s","agentType":"","messages":[` + hi + `]}`:     "agentType",
		`{"id":"s","trigger":"resume","messages":[` + hi + `]}`: "trigger",
		`{"id":"s","messageId":"","messages":[` + hi + `]}`:     "messageId",
		`{"id":"s","messageId":1,"messages":[` + hi + `]}`:      "messageId",
		`{"id":"s","messages":[` + hi + `]}`:                    "agentType",
	} {
		got := a.post("/chat", body).failed(t, 400, api.CodeInvalidRequest)
		require.Equal(t, map[string]any{"field": field}, got.Detail, body)
	}
	for _, id := range []string{`""`, `"a\u0000"`, `"` + strings.Repeat("x", 257) + `"`} {
		a.post("/chat", `{"id":`+id+`,"messages":[`+hi+`]}`).failed(t, 400, api.CodeInvalidRequest)
		a.post("/chat", `{"id":"s","sessionId":`+id+`,"messages":[`+hi+`]}`).failed(t, 400, api.CodeInvalidRequest)
	}
	a.post("/chat?format=html", says("s", "echo", "hi")).failed(t, 400, api.CodeInvalidRequest)
	a.get("/status?sessionId=s").failed(t, 404, api.CodeNotFound)

	a.chat(says("s", "echo", "hi"))
	assistant := `{"id":"s","messages":[` + hi + `,{"id":"msg-1","role":"assistant","parts":[{"type":"text","text":"hello"}]}]}`
	got := a.post("/chat", assistant).failed(t, 400, api.CodeInvalidRequest)
	require.Contains(t, got.Error, "nothing new")
}

// TestChatAgent: which agent answers.
func TestChatAgent(t *testing.T) {
	t.Parallel()
	talk := func(name string) agentloop.Agent {
		return agentloop.Agent{Name: name, Model: scripted.New([]scripted.Turn{{Text: name}}, nil)}
	}
	log := newLog(t)
	body := func(session string) string { return `{"id":"` + session + `","messages":[` + user("u", "hi") + `]}` }
	alone := newAPIOn(t, log, []agentloop.Agent{talk("a")}, withChat())
	require.Equal(t, "a", alone.chat(body("alone")).text())

	both := newAPIOn(t, log, []agentloop.Agent{talk("a"), talk("b"), talk("c")}, withChat(func(o *chat.Options) { o.DefaultAgent = "b" }))
	require.Equal(t, "b", both.chat(body("default")).text())
	require.Equal(t, "c", both.chat(body("header"), "X-Helix-Agent", "c").text())
	require.Equal(t, "a", both.chat(says("body", "a", "hi"), "X-Helix-Agent", "c").text())
	both.post("/chat", says("new", "nobody", "hi")).failed(t, 404, api.CodeNotFound)

	// A session keeps its agent.
	require.Equal(t, "a", both.chat(body("alone")).text())
	require.Equal(t, "a", both.chat(says("alone", "a", "hi again")).text())
	for _, got := range []answer{
		both.post("/chat", says("alone", "b", "hi")),
		both.post("/chat", body("alone"), "X-Helix-Agent", "b"),
		both.post("/chat", `{"id":"alone","agentType":"b","trigger":"regenerate-message","messages":[]}`),
	} {
		require.Contains(t, got.failed(t, 409, api.CodeAlreadyRunning).Error, "another agent")
	}
	other := newAPIOn(t, log, []agentloop.Agent{talk("b")}, withChat())
	other.post("/chat", says("alone", "", "hi")).failed(t, 404, api.CodeNotFound)

	_, err := httpapi.New(httpapi.Options{
		Log: log, Loop: alone.loop, AllowUnauthenticated: true, Chat: &chat.Options{DefaultAgent: "nobody"},
	})
	require.ErrorContains(t, err, "nobody")
}

// TestChatSession: sessionId names the session, id only the client's chat, and
// only the session that is acted on is authorized.
func TestChatSession(t *testing.T) {
	t.Parallel()
	var asked []string
	a := newAPIOn(t, newLog(t), agents(gatedModel{}), withChat(), func(o *httpapi.Options) {
		o.Auth = func(_ *http.Request, op auth.Operation, session string) error {
			asked = append(asked, string(op)+" "+session)
			if session == "yours" {
				return auth.ErrForbidden
			}
			return nil
		}
	})
	body := func(ids string) string {
		return `{` + ids + `,"agentType":"echo","messages":[` + user(fmt.Sprint("u", named.Add(1)), "hi") + `]}`
	}
	a.chat(body(`"id":"yours","sessionId":"mine"`))
	require.Equal(t, []string{"chat ", "chat mine"}, asked)
	asked = nil
	for _, ids := range []string{`"id":"yours"`, `"id":"mine","sessionId":"yours"`} {
		a.post("/chat", body(ids)).failed(t, 403, api.CodeUnauthorized)
	}
	for _, ids := range []string{
		`"id":"mine","id":"yours"`, `"id":"mine","sessionId":"mine","sessionId":"yours"`, `"id":"mine","sessionId":["yours"]`,
		`"Id":"mine"`, `"id":"mine","\u0069d":"yours"`,
	} {
		a.post("/chat", body(ids)).failed(t, 400, api.CodeInvalidRequest)
	}
	_, err := a.log.Head(a.ctx(), "yours")
	require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
	a.chat(body(`"id":"mine","SessionId":"yours"`))
	require.Len(t, a.said("mine"), 4)
}

func TestChatOddIDs(t *testing.T) {
	t.Parallel()
	a := newChat(t, agents(gatedModel{}))
	for i, id := range oddIDs {
		p := escape(id)
		require.Equal(t, 204, a.get("/chat/"+p+"/stream").status, id)
		got := a.post("/chat", fmt.Sprintf(`{"id":%s,"agentType":"echo","messages":[%s]}`, quoted(t, id), user("u", fmt.Sprint("to ", i))))
		require.Equal(t, 200, got.status, got.body)
		require.Equal(t, "hello", parts(t, got.body).text())
		require.Equal(t, 204, a.get("/chat/"+p+"/stream").status, id)
		require.Equal(t, 200, a.post("/chat/"+p+"/interrupt", `{}`).status)
		got = a.get("/chat/" + p + "/messages")
		require.Contains(t, got.body, fmt.Sprintf(`"to %d"`, i))
		require.Equal(t, 1, strings.Count(got.body, `"user"`), "of nobody else")
	}
}

// TestChatWithout: a server that hosts no chat says so, and shows histories.
func TestChatWithout(t *testing.T) {
	a := newAPIOn(t, memory.New(), nil)
	a.append("s", created("s"), ended("s", `1`))
	for _, target := range []string{"/chat", "/chat/s/submit-tool-result", "/chat/s/interrupt", "/chat/s/abort"} {
		a.post(target, `{}`).failed(t, 501, api.CodeNotImplemented)
	}
	a.get("/chat/s/stream").failed(t, 501, api.CodeNotImplemented)
	require.Equal(t, 200, a.get("/chat/s/snapshot").status)
	require.Equal(t, 200, a.get("/chat/s/messages").status)
	require.NotContains(t, a.logs.String(), "NOT_IMPLEMENTED")
}

// TestChatOptions: metadata, names and a filter reach the stream and the
// history.
func TestChatOptions(t *testing.T) {
	t.Parallel()
	a := newChat(t, agents(gatedModel{}), func(o *chat.Options) {
		o.StartMetadata = func(agent string) any { return map[string]string{"session": agent} }
		o.FinishMetadata = chat.StaticMetadata(json.RawMessage(`{"by":"helixd"}`))
		o.MessageID = func(index int, role string) string { return fmt.Sprint(role, "/", index) }
		o.ChunkFilter = func(c eventlog.Chunk) bool { return c.Type() != (*eventlog.TextDelta)(nil).Type() }
	})
	got := a.chat(says("s", "echo", "hi"))
	require.Equal(t, map[string]any{"session": "s"}, got.one(t, "start")["messageMetadata"])
	require.Equal(t, map[string]any{"by": "helixd"}, got.one(t, "finish")["messageMetadata"])
	require.Equal(t, "assistant/1", got.one(t, "start")["messageId"])
	require.False(t, got.has("text-delta"))
	for _, target := range []string{"/chat/s/snapshot", "/chat/s/messages"} {
		var shown struct{ Messages []struct{ ID string } }
		a.get(target).decode(t, &shown)
		require.Equal(t, []struct{ ID string }{{"user/0"}, {"assistant/1"}}, shown.Messages)
	}
	a.chat(`{"id":"s","trigger":"regenerate-message","messageId":"assistant/1","messages":[]}`)
	require.Equal(t, projector.SessionCompleted, a.tree("s").Status)
}
