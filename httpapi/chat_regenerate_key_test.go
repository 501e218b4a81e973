package httpapi_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/httpapi/api"
)

// A client whose connection broke before the answer repeats its request with its key. It
// gets the answer that the first request began, live or finished, and no other one begins.
func TestARegenerateWithAKeyIsCarriedOutOnce(t *testing.T) {
	t.Parallel()
	g := gatedModel{make(chan struct{})}
	a := newChat(t, agents(g))
	first := a.open("POST", "/chat", says("s", "gated", "hi"))
	first.until("waiting")
	require.Equal(t, 200, a.post("/chat/s/interrupt", `{}`).status)

	lost := a.open("POST", "/chat", regenerates("s", "msg-1"), idemKey, "k")
	lost.until("waiting")
	again := a.open("POST", "/chat", regenerates("s", "msg-1"), idemKey, "k")
	require.Contains(t, again.next().data, `"messageId":"msg-1"`, "from the message's beginning")
	again.until("waiting")
	a.post("/chat", regenerates("s", "msg-1"), idemKey, "other").failed(t, 409, api.CodeAlreadyRunning)
	close(g.open)
	again.until("[DONE]")
	require.Equal(t, []string{"retry"}, a.modes("s"))

	head := a.head("s")
	require.Equal(t, "waiting done", a.chat(regenerates("s", "msg-1"), idemKey, "k").text())
	require.Equal(t, head, a.head("s"), "nothing was appended")

	require.Equal(t, "waiting done", a.chat(regenerates("s", "msg-1"), idemKey, "other").text())
	require.Greater(t, a.head("s"), head, "another key is another request")
	require.Equal(t, []string{"hi", "waiting done"}, a.said("s"))

	a.chat(says("s", "", "more"))
	a.post("/chat", regenerates("s", "msg-1"), idemKey, "other").failed(t, 400, api.CodeInvalidRequest) // the answer is in the history
	require.Len(t, a.said("s"), 4)
	a.chat(regenerates("s", ""), idemKey, "other") // the key for another answer
	require.Equal(t, []string{"retry", "retry"}, a.modes("s"))
	a.post("/chat", regenerates("s", ""), idemKey, "").failed(t, 400, api.CodeInvalidRequest)
}

// The same request many times at once begins one answer, which all get: no node has
// claimed its run yet when the others look.
func TestRegeneratesAtOnceWithAKeyBeginOneAnswer(t *testing.T) {
	t.Parallel()
	a := newChat(t, agents(gatedModel{}))
	a.chat(says("s", "echo", "one"))
	a.chat(says("s", "", "two"))
	var all sync.WaitGroup
	var answers [8]answer
	for i := range answers {
		all.Go(func() { answers[i] = a.post("/chat", regenerates("s", "msg-1"), idemKey, "k") })
	}
	all.Wait()
	for _, got := range answers {
		require.Equal(t, 200, got.status, got.body)
		require.Equal(t, "hello", parts(t, got.body).text())
	}
	require.Equal(t, 1, a.stored("s", "truncated"))
	require.Equal(t, []string{"retry"}, a.modes("s"))
}
