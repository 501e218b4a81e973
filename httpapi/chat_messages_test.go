package httpapi_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/chat"
)

type history struct {
	Messages []struct {
		ID, Role string
		Parts    []map[string]any
	}
	HasMore bool
}

func (a *testAPI) history(target string) (h history) {
	a.t.Helper()
	got := a.get(target)
	require.Equal(a.t, 200, got.status, got.body)
	got.decode(a.t, &h)
	return h
}

func (h history) types(message int) (types []string) {
	for _, p := range h.Messages[message].Parts {
		types = append(types, fmt.Sprint(p["type"], " ", p["state"]))
	}
	return types
}

// TestChatHistory: GET /chat/{id}/messages pages through what the snapshot has.
func TestChatHistory(t *testing.T) {
	t.Parallel()
	thinker := agentloop.Agent{
		Name: "thinker", Tools: waitingAgents()[0].Tools,
		Model: scripted.New([]scripted.Turn{
			{Reasoning: "hm", ToolCalls: []scripted.Call{calling("rm", "remove", `{"path":"/x"}`)}}, {Text: "removed"},
		}, nil),
	}
	thinker.Tools[0].RequireApproval = nil
	a := newChat(t, append(talkingAgents(), thinker))
	a.chat(says("s", "thinker", "go"))
	a.chat(says("s", "", "thanks"))
	var snapshot history
	a.get("/chat/s/snapshot").decode(t, &snapshot)
	all := a.history("/chat/s/messages")
	require.Equal(t, snapshot, all)
	require.Len(t, all.Messages, 4)
	require.Equal(t, []string{
		"step-start <nil>", "reasoning done", "tool-remove output-available", "step-start <nil>", "text done",
	}, all.types(1))

	var paged history
	for offset := range 4 {
		page := a.history(fmt.Sprint("/chat/s/messages?limit=1&offset=", offset))
		require.Len(t, page.Messages, 1)
		require.Equal(t, offset < 3, page.HasMore)
		paged.Messages = append(paged.Messages, page.Messages...)
	}
	require.Equal(t, all, paged, "ids stay the same")
	require.Equal(t, history{Messages: all.Messages[:0:0]}, a.history("/chat/s/messages?offset=9"))

	less := a.history("/chat/s/messages?includeReasoning=false&includeToolResults=0")
	require.Equal(t, []string{"step-start <nil>", "tool-remove input-available", "step-start <nil>", "text done"}, less.types(1))
	require.NotContains(t, less.Messages[1].Parts[1], "output")
	require.Equal(t, map[string]any{"path": "/x"}, less.Messages[1].Parts[1]["input"])

	for _, query := range []string{"?limit=0", "?limit=201", "?offset=-1", "?includeReasoning=x", "?includeToolResults=", "?limit=1&limit=2"} {
		a.get("/chat/s/messages"+query).failed(t, 400, api.CodeInvalidRequest)
	}
	a.get("/chat/nobody/messages").failed(t, 404, api.CodeNotFound)
}

// TestChatPartialHistory: a message that is under way is in no history, since
// the stream replays it, unless content replay is off. One that
// waits for the user is there.
func TestChatPartialHistory(t *testing.T) {
	t.Parallel()
	g := gatedModel{make(chan struct{})}
	log := newLog(t)
	replaying := newAPIOn(t, log, append(agents(g), waitingAgents()...), withChat())
	partial := newAPIOn(t, log, agents(g), withChat(func(o *chat.Options) { o.NoContentReplay = true }))
	s := replaying.open("POST", "/chat", says("s", "gated", "hi"))
	s.until("waiting")
	ids := func(h history) (ids []string) {
		for _, m := range h.Messages {
			ids = append(ids, m.ID)
		}
		return ids
	}
	for _, tc := range []struct {
		a      *testAPI
		target string
		want   []string
	}{
		{replaying, "/chat/s/snapshot", []string{"msg-0"}},
		{replaying, "/chat/s/messages", []string{"msg-0"}},
		{replaying, "/chat/s/snapshot?includePartialContent=1", []string{"msg-0", "msg-1-partial"}},
		{partial, "/chat/s/snapshot", []string{"msg-0", "msg-1-partial"}},
		{partial, "/chat/s/messages", []string{"msg-0", "msg-1-partial"}},
		{partial, "/chat/s/snapshot?includePartialContent=false", []string{"msg-0"}},
	} {
		require.Equal(t, tc.want, ids(tc.a.history(tc.target)), tc.target)
	}
	close(g.open)
	s.until("[DONE]")
	require.Equal(t, []string{"msg-0", "msg-1"}, ids(replaying.history("/chat/s/messages")))

	// A page that is opened while the session waits shows what to answer.
	replaying.chat(says("ask", "asker", "go"))
	shown := replaying.history("/chat/ask/messages").Messages[1]
	asked := shown.Parts[len(shown.Parts)-1]
	require.Equal(t, "approval-requested", asked["state"])
	asked["state"] = "approval-responded"
	asked["approval"].(map[string]any)["approved"] = true
	raw, err := json.Marshal(shown.Parts)
	require.NoError(t, err)
	got := replaying.chat(goesOn("ask", shown.ID, string(raw[1:len(raw)-1])))
	require.Equal(t, shown.ID, got.one(t, "start")["messageId"])
	require.Equal(t, "removed", got.text())
}

// TestChatInALongConversation: the work of a request grows with the conversation, and not
// with its square.
func TestChatInALongConversation(t *testing.T) {
	t.Parallel()
	var ids atomic.Int64
	a := newChat(t, agents(gatedModel{}), func(o *chat.Options) {
		o.MessageID = func(index int, _ string) string {
			ids.Add(1)
			return fmt.Sprint("id-", index)
		}
	})
	called := func(n int) int64 {
		session := fmt.Sprint("s", n)
		before := strings.TrimSuffix(strings.Repeat(`{"role":"user","content":"x"},`, n), ",")
		require.Equal(t, 200, a.post("/start", fmt.Sprintf(`{"sessionId":%q,"agentType":"echo","message":[%s]}`, session, before)).status)
		a.wait(session)
		ids.Store(0)
		require.Equal(t, "hello", a.chat(says(session, "", "more")).text())
		return ids.Load()
	}
	require.Less(t, called(100), 3*called(50))
}
