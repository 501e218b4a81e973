package httpapi_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/httpapi"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/auth"
	"github.com/helixd/helixd/httpapi/responses"
	"github.com/helixd/helixd/integration/testkit"
)

func TestBodiesUnderWayAreBounded(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	httpapi.SetBodies(a.srv, 100_000, 500_000)
	small, large := line("s", "x"), line("s", strings.Repeat("x", 100_000))
	busy := a.post(chunksOf("s"), large)
	busy.failed(t, 429, api.CodeBusy)
	require.Equal(t, "1", busy.header.Get("Retry-After"))
	for range 20 { // each one is given back
		a.post(chunksOf("s"), small).appended(t)
	}
	require.Len(t, a.texts("s"), 20)
	httpapi.SetBodies(a.srv, 0, 0)
	a.post(chunksOf("s"), small).appended(t) // small ones always pass
	httpapi.SetBodies(a.srv, 500_000, 100_000)
	a.post(chunksOf("s"), large).failed(t, 503, api.CodeBusy)
	require.NotContains(t, a.logs.String(), "request failed")
}

// A body for a session that its caller may not use is refused before more of it
// is parsed than the session's id.
func TestWhoMayNotIsToldSoWhateverElseIsInTheBody(t *testing.T) {
	a := newAPIOn(t, memory.New(), nil, withChat(), func(o *httpapi.Options) {
		o.Auth = func(_ *http.Request, _ auth.Operation, session string) error {
			if session == "yours" {
				return auth.ErrForbidden
			}
			return nil
		}
	})
	for target, body := range map[string]string{
		"/chat":               `{"id":"yours","messages":[1,{},{}]}`,
		"/start":              `{"sessionId":"yours","agentType":7}`,
		"/resume":             `{"sessionId":"yours","mode":7}`,
		"/interrupt":          `{"sessionId":"yours","reason":7}`,
		"/abort":              `{"sessionId":"yours","reason":7}`,
		"/submit-tool-result": `{"sessionId":"yours","toolCallId":7}`,
	} {
		a.post(target, body).failed(t, 403, api.CodeUnauthorized)
		a.post(target, strings.Replace(body, "yours", "mine", 1)).failed(t, 400, api.CodeInvalidRequest)
	}
}

// A length that a client announces takes nothing from others: bytes count as they
// arrive, whatever the claims that name their caller.
func TestBodiesCountAsTheyArrive(t *testing.T) {
	t.Parallel()
	a := newAPIOn(t, memory.New(), nil, func(o *httpapi.Options) {
		o.Identify = func(r *http.Request) (auth.Caller, error) {
			return auth.Caller{User: r.Header.Get("User")}, nil
		}
	})
	httpapi.SetBodies(a.srv, 200_000, 300_000)
	begin := func(user, body string) {
		_, err := fmt.Fprintf(dial(t, a), "POST %s HTTP/1.1\r\nHost: localhost\r\nUser: %s\r\nContent-Length: 150000\r\n\r\n%s", chunksOf(user), user, body)
		require.NoError(t, err)
	}
	post := func(user string) answer {
		return a.post(chunksOf(user), line(user, strings.Repeat("x", 150_000)), "User", user)
	}
	holds := func(n int64) {
		t.Helper()
		require.Eventually(t, func() bool { return httpapi.HeldBodies(a.srv) == n }, 20*time.Second, time.Millisecond)
	}
	for i := range 8 {
		begin(fmt.Sprint("user", i%4), "{")
	}
	holds(8)
	post("user0").appended(t)
	begin("user0", strings.Repeat("{", 100_000))
	holds(100_008)
	post("user0").failed(t, 429, api.CodeBusy)
	post("user1").appended(t)
	begin("user2", strings.Repeat("{", 100_000))
	holds(200_008)
	post("user1").failed(t, 503, api.CodeBusy)
}

// A body may be announced when there is room for it, and arrive when there is none.
func TestABodyIsRefusedWhileItArrives(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	httpapi.SetBodies(a.srv, 200_000, 500_000)
	first, second := dial(t, a), dial(t, a)
	for _, c := range []net.Conn{first, second} {
		_, err := fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 150000\r\n\r\n{", chunksOf("s"))
		require.NoError(t, err)
	}
	require.Eventually(t, func() bool { return httpapi.HeldBodies(a.srv) == 2 }, 20*time.Second, time.Millisecond)
	_, err := io.WriteString(first, strings.Repeat("{", 149_000))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return httpapi.HeldBodies(a.srv) == 149_002 }, 20*time.Second, time.Millisecond)
	_, err = io.WriteString(second, strings.Repeat("{", 149_999))
	require.NoError(t, err)
	answerOf(t, second).failed(t, 429, api.CodeBusy)
}

// A client that reads slowly can't make the server hold any number of large
// answers for it. One at a time passes, however large it is.
func TestLargeAnswersUnderWayAreBounded(t *testing.T) {
	testkit.Long(t)
	testkit.Sequential(t)
	t.Parallel()
	a := newAPIOn(t, memory.New(), nil, withUsers)
	a.append("s", created("s"), ended("s", `"`+strings.Repeat("x", 15<<20)+`"`)) // far beyond what sockets hold
	const target = "/sessions/s/state"
	httpapi.SetAnswers(a.srv, 20<<20, 30<<20)
	_, err := fmt.Fprintf(dial(t, a), "GET %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer plain\r\n\r\n", target)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return httpapi.HeldAnswers(a.srv) > 15<<20 }, 20*time.Second, time.Millisecond)
	busy := a.get(target, bearer("plain")...)
	busy.failed(t, 429, api.CodeBusy)
	require.Equal(t, "1", busy.header.Get("Retry-After"))
	a.get(target, bearer("desk")...).failed(t, 503, api.CodeBusy)
	require.Equal(t, 200, a.get("/sessions/s/usage", bearer("plain")...).status, "small answers always pass")

	httpapi.SetAnswers(a.srv, 1<<20, 30<<20)
	for range 3 { // each one is given back
		require.Equal(t, 200, a.get(target, bearer("plain")...).status)
		require.Equal(t, 200, a.request("HEAD", target, "", bearer("plain")...).status)
	}
	require.Eventually(t, func() bool { return httpapi.HeldAnswers(a.srv) == 0 }, 20*time.Second, time.Millisecond)
}

// A caller's large bodies are parsed one at a time, whatever their route: those of
// others, and small ones, do not wait. One that is still arriving takes no turn.
func TestLargeBodiesAreParsedInTurn(t *testing.T) {
	a := newAPIOn(t, memory.New(), nil, withUsers)
	a.finishedOf("ann", "ann")
	red := auth.Caller{Tenant: "red"}
	large := strings.Repeat("x", 100_000)
	half := line("ann-half", large)
	_, err := fmt.Fprintf(dial(t, a), "POST %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ann\r\nContent-Length: %d\r\n\r\n%s",
		chunksOf("ann-half"), 2*len(half), half)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return httpapi.HeldBodies(a.srv) == int64(len(half)) }, 20*time.Second, time.Millisecond)

	done, err := httpapi.HoldParse(a.srv, red)
	require.NoError(t, err)
	answers := make(chan answer)
	posts := []struct{ target, body string }{
		{chunksOf("ann-1"), line("ann-1", large)},
		{"/chat", `{"id":"ann-2","messages":[],"more":"` + large + `"}`},
		{"/memories", `{"scope":7,"more":"` + large + `"}`},
		{"/sessions/ann/messages", `{"more":"` + large + `"}`},
		{"/sessions/ann/rollback", `{"more":"` + large + `"}`},
		{"/sessions/ann/fail", `{"more":"` + large + `"}`},
		{"/chat/ann/submit-tool-result", `{"more":"` + large + `"}`},
		{"/chat/ann/abort", `{"reason":7,"more":"` + large + `"}`},
	}
	for _, post := range posts {
		go func() { answers <- a.post(post.target, post.body, bearer("ann")...) }()
	}
	require.Eventually(t, func() bool { return httpapi.Parsing(a.srv, red) == 1+len(posts) }, 20*time.Second, time.Millisecond)
	a.post(chunksOf("bob-1"), line("bob-1", large), bearer("bob")...).appended(t)
	a.post(chunksOf("ann-3"), line("ann-3", "x"), bearer("ann")...).appended(t)
	require.Equal(t, 1+len(posts), httpapi.Parsing(a.srv, red), "the large ones wait")
	require.Empty(t, answers)
	done()
	statuses := map[int]int{}
	for range posts {
		statuses[(<-answers).status]++
	}
	require.Equal(t, map[int]int{200: 1, 400: len(posts) - 1}, statuses)
	require.Eventually(t, func() bool { return httpapi.Parsing(a.srv, red) == 0 }, 20*time.Second, time.Millisecond)
}

// A caller's large answers are made one at a time, whatever their route, so that it can't have
// more of them in memory than its share: those of others, and small ones, do not wait.
func TestLargeAnswersAreMadeInTurn(t *testing.T) {
	a := newAPIOn(t, memory.New(), nil, withUsers, func(o *httpapi.Options) { o.Protocols.Responses = &responses.Options{} })
	for user, tenant := range tenants {
		a.append(user, factOf(user, &fact.SessionCreated{UserID: user, Tenant: tenant, State: []byte("{}"), Base: factBase(user)}))
		for range 200 { // each is a span of the timeline
			a.append(user, factOf(user, &fact.UserMessage{Content: strings.Repeat("x", 400), Base: factBase(user)}))
		}
	}
	a.finishedOf("ann", "small")
	red := auth.Caller{Tenant: "red"}
	done, err := httpapi.HoldEncode(a.srv, red)
	require.NoError(t, err)
	targets := []string{
		"/sessions/%s/state", "/sessions/%s/timeline", "/chat/%s/snapshot", "/chat/%s/messages",
		"/v1/conversations/conv_%s/items", "/v1/conversations/conv_%[1]s/items/none",
	}
	statuses := make(chan int, len(targets))
	timelines := make(chan string, 1)
	for _, target := range targets {
		go func() {
			answer := a.get(fmt.Sprintf(target, "ann"), bearer("ann")...)
			if strings.HasSuffix(target, "/timeline") {
				timelines <- answer.body
			}
			statuses <- answer.status
		}()
	}
	require.Eventually(t, func() bool { return httpapi.Encoding(a.srv, red) == 1+len(targets) }, 20*time.Second, time.Millisecond)
	for _, target := range targets[:5] {
		require.Equal(t, 200, a.get(fmt.Sprintf(target, "bob"), bearer("bob")...).status, target)
		require.Equal(t, 200, a.get(fmt.Sprintf(target, "small"), bearer("ann")...).status, target)
	}
	require.Empty(t, statuses, "the large ones wait")
	a.append("ann", factOf("ann", &fact.UserMessage{Content: "while they wait", Base: factBase("ann")}))
	done()
	got := map[int]int{}
	for range targets {
		got[<-statuses]++
	}
	require.Equal(t, map[int]int{200: 5, 404: 1}, got)
	require.Contains(t, <-timelines, "while they wait", "none was made before its turn")
	require.Eventually(t, func() bool { return httpapi.Encoding(a.srv, red) == 0 }, 20*time.Second, time.Millisecond)
}
