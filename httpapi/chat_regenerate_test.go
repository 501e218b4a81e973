package httpapi_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/integration/testkit"
	"github.com/helixd/helixd/projector"
	"github.com/helixd/helixd/snapshot"
)

func regenerates(session, messageID string, messages ...string) string {
	if messageID != "" {
		messageID = fmt.Sprintf(`,"messageId":%q`, messageID)
	}
	return fmt.Sprintf(`{"id":%q,"trigger":"regenerate-message"%s,"messages":[%s]}`, session, messageID, strings.Join(messages, ","))
}

// TestChatRegenerate, path 2: an answer is given again, and what came later is
// truncated.
func TestChatRegenerate(t *testing.T) {
	t.Parallel()
	a := newChat(t, agents(gatedModel{}))
	one, two, three := user("c1", "one"), user("c2", "two"), user("c3", "three")
	tell := func(session string) {
		for _, text := range []string{"one", "two", "three"} {
			a.chat(says(session, "echo", text))
		}
	}
	for i, tc := range []struct {
		messageID string
		messages  []string
		said      []string // by users
		id        string   // of the answer
	}{
		{"", nil, []string{"one", "two", "three"}, "msg-5"},
		{"msg-5", nil, []string{"one", "two", "three"}, "msg-5"},
		{"msg-4", []string{one, two, three}, []string{"one", "two", "three"}, "msg-5"},
		{"msg-3", []string{one, two}, []string{"one", "two"}, "msg-3"},
		{"msg-1", nil, []string{"one"}, "msg-1"},
		{"msg-0", nil, []string{"one"}, "msg-1"},
		{"c2", []string{one, two}, []string{"one", "two"}, "msg-3"}, // the client's own id
	} {
		session := fmt.Sprint("s", i)
		tell(session)
		got := a.chat(regenerates(session, tc.messageID, tc.messages...))
		require.Equal(t, tc.id, got.one(t, "start")["messageId"])
		require.Equal(t, "retry", got.one(t, "data-stream-resync")["data"].(map[string]any)["reason"])
		require.Equal(t, "hello", got.text())
		var users []string
		for j, text := range a.said(session) {
			if j%2 == 0 {
				users = append(users, text)
			} else {
				require.Equal(t, "hello", text)
			}
		}
		require.Equal(t, tc.said, users)
		require.Equal(t, "completed", a.status(session).Status)

		again := a.chat(regenerates(session, tc.id))
		require.Equal(t, tc.id, again.one(t, "start")["messageId"])
		a.chat(says(session, "", "more"))
		require.Len(t, a.said(session), 2*len(tc.said)+2)
	}
	tell("s")
	for _, body := range []string{
		regenerates("s", "msg-6"), regenerates("s", "nope", one), regenerates("s", "c1", user("c1", "another")),
		regenerates("s", "c4", one, two, three, user("c4", "four")), regenerates("s", "-partial"), regenerates("nobody", ""),
	} {
		a.post("/chat", body).failed(t, 404, api.CodeNotFound)
	}
	require.Len(t, a.said("s"), 6)
}

// TestChatRegenerateOpenTurn: a message that went into an open turn is not lost
// when its answer is given again, and calls that wait are no obstacle.
func TestChatRegenerateOpenTurn(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	a := newChat(t, talkingAgents())
	a.chat(says("s", "asker", "go"))
	a.chat(says("s", "", "never mind"))
	require.Equal(t, []string{"start", "with_message"}, a.modes("s"))
	for range 2 {
		got := a.chat(regenerates("s", ""))
		require.Equal(t, "you said never mind", got.text())
		require.Equal(t, "msg-3", got.one(t, "start")["messageId"])
		require.Equal(t, []string{"go", "", "never mind", "you said never mind"}, a.said("s"))
		require.Equal(t, agentloop.CodeClientToolAbandoned, a.tree("s").Messages[2].ErrorCode)
	}
	got := a.chat(regenerates("s", "msg-1"))
	require.Equal(t, "msg-1", got.one(t, "start")["messageId"])
	require.True(t, got.has("tool-approval-request"))
	require.Equal(t, []string{"go", ""}, a.said("s"))

	got = a.chat(regenerates("s", "msg-1")) // while it waits
	asked := got.one(t, "tool-approval-request")
	a.post("/chat", goesOn("s", "msg-1", approval("rm", "run-gone::rm", true))).failed(t, 400, api.CodeInvalidRequest)
	got = a.chat(goesOn("s", "msg-1", approval(asked["toolCallId"].(string), asked["approvalId"].(string), true)))
	require.Equal(t, "removed", got.text())
}

// TestChatRegenerateAfterStop: an answer that was interrupted, or failed, is
// given again from its beginning.
func TestChatRegenerateAfterStop(t *testing.T) {
	t.Parallel()
	g := gatedModel{make(chan struct{})}
	a := newChat(t, agents(g))
	s := a.open("POST", "/chat", says("s", "gated", "hi"))
	s.until("waiting")
	require.Equal(t, 200, a.post("/chat/s/interrupt", `{}`).status)
	close(g.open)
	got := a.chat(regenerates("s", "msg-1"))
	require.Equal(t, "waiting done", got.text())
	require.Equal(t, []string{"hi", "waiting done"}, a.said("s"))

	a.chat(says("bad", "broken", "hi"))
	require.Equal(t, "bad key", a.chat(regenerates("bad", "")).one(t, "error")["errorText"])
	require.Equal(t, []string{"hi"}, a.said("bad"))

	// What came before a fork can be read there, not regenerated.
	require.Equal(t, 200, a.post("/sessions/s/fork", `{"sessionId":"f"}`).status)
	a.post("/chat", regenerates("f", "msg-1")).failed(t, 400, api.CodeInvalidRequest)
}

// An answer that is to be given again stays if the tenant may begin no run: in an open turn,
// too, where the turn's beginning is not the answer's.
func TestARefusedRegenerateTakesNothingBack(t *testing.T) {
	t.Parallel()
	asks := agentloop.Agent{
		Name: "asker", Tools: []agentloop.Tool{{Name: "locate", Client: true}},
		Model: otherwise{scripted.New([]scripted.Turn{{
			ToolCalls: []scripted.Call{calling("here", "locate", `{}`)}, Usage: fact.TokenUsage{Prompt: 60, Completion: 40},
		}}, nil)},
	}
	a, q := newDay(t, 10_000, asks)
	for _, body := range []string{says("s", "asker", "go"), says("s", "", "never mind")} {
		a.chat(body, bearer("ann")...)
	}
	before := []string{"go", "", "never mind", "you said never mind"}
	conversation := func() (all []string) {
		tree, err := snapshot.New(a.log, nil).Head(a.ctx(), "s")
		require.NoError(t, err)
		for _, m := range tree.Messages {
			if m.Role != projector.RoleTool {
				all = append(all, m.Content)
			}
		}
		return all
	}
	require.Equal(t, before, conversation())
	head, err := a.log.Head(a.ctx(), "s")
	require.NoError(t, err)

	q.Set(dayOf(50))
	got := a.post("/chat", regenerates("s", ""), bearer("ann")...)
	require.JSONEq(t, `{"quota":"tokensPerDay","limit":50}`, detailOf(t, got, api.CodeQuotaExceeded))
	require.Equal(t, before, conversation())
	after, err := a.log.Head(a.ctx(), "s")
	require.NoError(t, err)
	require.Equal(t, head, after, "nothing was appended")

	q.Set(dayOf(10_000))
	require.Equal(t, "you said never mind", a.chat(regenerates("s", ""), bearer("ann")...).text())
	require.Equal(t, before, conversation())
}
