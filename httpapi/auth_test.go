package httpapi_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/httpapi"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/auth"
)

func TestFailClosed(t *testing.T) {
	log := memory.New()
	loop, err := engine.New(log, nil, nil)
	require.NoError(t, err)
	defer loop.Stop()
	_, err = httpapi.New(httpapi.Options{Log: log, Loop: loop})
	require.ErrorContains(t, err, "without authentication")
	_, err = httpapi.New(httpapi.Options{Log: log, AllowUnauthenticated: true})
	require.Error(t, err)
	_, err = httpapi.New(httpapi.Options{Loop: loop, AllowUnauthenticated: true})
	require.Error(t, err)

	open := newAPIOn(t, log, nil)
	require.Contains(t, open.logs.String(), "level=WARN msg=\"UNAUTHENTICATED")
	for _, authenticate := range []auth.Authenticator{auth.BearerTokens(nil), auth.AnyOf()} {
		shut := newAPIOn(t, log, nil, func(o *httpapi.Options) { o.Auth = authenticate })
		require.Empty(t, shut.logs.String())
		shut.get("/sessions").failed(t, 401, api.CodeUnauthorized)
	}
}

// TestAuthAsksForEveryRoute: which operation and session each route is
// authorized with.
func TestAuthAsksForEveryRoute(t *testing.T) {
	var asked []string
	a := newAPIOn(t, memory.New(), nil, func(o *httpapi.Options) {
		o.Auth = func(_ *http.Request, op auth.Operation, session string) error {
			asked = append(asked, string(op)+" "+session)
			return nil
		}
	})
	a.append("s", created("s"), ended("s", `1`))
	start := `{"sessionId":"n/1","agentType":"x","message":"hi"}`
	for _, tc := range []struct {
		method, target, body string
		want                 string
	}{
		{"POST", "/start", start, "start ,start n/1"},
		{"POST", "/resume", `{"sessionId":"n/1"}`, "resume ,resume n/1"},
		{"POST", "/interrupt", `{"sessionId":"n/1"}`, "interrupt ,interrupt n/1"},
		{"POST", "/abort", `{"sessionId":"n/1"}`, "abort ,abort n/1"},
		{
			"POST", "/submit-tool-result", `{"sessionId":"n/1","toolCallId":"c","kind":"client-tool-result","result":1}`,
			"submit-tool-result ,submit-tool-result n/1",
		},
		{"GET", "/sse?sessionId=s", "", "stream s"},
		{"GET", "/status?sessionId=a%2Fb", "", "status a/b"},
		{"GET", "/chat/a%2Fb/snapshot", "", "chat-stream a/b"},
		{"GET", "/sessions", "", "sessions ,sessions s"},
		{"GET", "/sessions/s", "", "status s"},
		{"GET", "/sessions/s/records", "", "records s"},
		{"GET", "/sessions/s/state", "", "records s"},
		{"HEAD", "/sessions/s/state", "", "records s"},
		{"POST", "/sessions/a%2Fb/chunks", "", "append a/b"},
		{"GET", "/sessions/s/checkpoints", "", "status s"},
		{"GET", "/sessions/s/runs", "", "status s"},
		{"GET", "/sessions/s/files", "", "workspace s"},
		{"POST", "/sessions/a%2Fb/rollback", `{"sequence":1}`, "resume a/b"},
		{"POST", "/sessions/a%2Fb/fork", `{"sequence":1,"sessionId":"c/d"}`, "start a/b,start c/d"},
		{"POST", "/sessions/s/end", "", "append s"},
		{"POST", "/sessions/s/fail", "", "append s"},
		{"POST", "/sessions/a%2Fb/import", "", "import a/b"},
		{"GET", "/healthz", "", ""},
		{"GET", "/readyz", "", "status "},
		{"GET", "/nowhere", "", ""},
	} {
		asked = nil
		a.request(tc.method, tc.target, tc.body)
		require.Equal(t, tc.want, strings.Join(asked, ","), tc.target)
	}
}

func TestAuthRefuses(t *testing.T) {
	t.Parallel()
	mine := auth.Token{Token: "secret-mine", Operations: []string{"*"}, Sessions: []string{"mine*"}}
	reader := auth.Token{Token: "secret-reader", Operations: []string{"status"}, Sessions: []string{"*"}}
	a := newAPIOn(t, memory.New(), nil, func(o *httpapi.Options) {
		o.Auth = auth.BearerTokens([]auth.Token{mine, reader})
	})
	a.append("mine", created("mine"), ended("mine", `1`))
	a.append("yours", created("yours"), ended("yours", `1`))
	as := func(token string) []string { return []string{"Authorization", "Bearer secret-" + token} }

	got := a.get("/status?sessionId=mine")
	got.failed(t, 401, api.CodeUnauthorized)
	require.Equal(t, "Bearer", got.header.Get("WWW-Authenticate"))
	a.get("/status?sessionId=mine", as("wrong")...).failed(t, 401, api.CodeUnauthorized)
	require.Equal(t, 200, a.get("/status?sessionId=mine", as("mine")...).status)
	for _, target := range []string{
		"/status?sessionId=yours", "/sse?sessionId=yours", "/chat/yours/snapshot", "/sessions/yours",
		"/sessions/yours/records", "/sessions/yours/state", "/sessions/yours/runs", "/sessions/yours/checkpoints", "/sessions/nobody", "/sessions/%00",
	} {
		a.get(target, as("mine")...).failed(t, 403, api.CodeUnauthorized)
	}
	a.get("/sse?sessionId=yours", as("reader")...).failed(t, 403, api.CodeUnauthorized)
	require.Equal(t, 200, a.get("/status?sessionId=yours", as("reader")...).status)

	// The caller and the operation are refused whatever the body is.
	a.post("/start", "junk").failed(t, 401, api.CodeUnauthorized)
	a.post("/start", "junk", as("reader")...).failed(t, 403, api.CodeUnauthorized)
	a.post("/start", "junk", as("mine")...).failed(t, 400, api.CodeInvalidRequest)
	body := `{"sessionId":"yours","agentType":"x","message":"hi"}`
	a.post("/start", body, as("mine")...).failed(t, 403, api.CodeUnauthorized)
	a.post("/resume", `{"sessionId":"yours"}`, as("mine")...).failed(t, 403, api.CodeUnauthorized)
	for _, target := range []string{"/interrupt", "/abort", "/submit-tool-result"} {
		a.post(target, "junk").failed(t, 401, api.CodeUnauthorized)
		a.post(target, "junk", as("reader")...).failed(t, 403, api.CodeUnauthorized)
		a.post(target, "junk", as("mine")...).failed(t, 400, api.CodeInvalidRequest)
		for _, session := range []string{"yours", "nobody"} {
			body := `{"sessionId":"` + session + `","toolCallId":"c","kind":"client-tool-result","result":1}`
			a.post(target, body, as("mine")...).failed(t, 403, api.CodeUnauthorized)
		}
	}

	// A fork needs both sessions: the one that it reads and the new one.
	fork := `{"messageIndex":0,"sessionId":"%s"}`
	a.post("/sessions/yours/fork", fmt.Sprintf(fork, "mine3"), as("mine")...).failed(t, 403, api.CodeUnauthorized)
	a.post("/sessions/mine/fork", fmt.Sprintf(fork, "your3"), as("mine")...).failed(t, 403, api.CodeUnauthorized)
	a.post("/sessions/mine/fork", `{}`, as("mine")...).failed(t, 403, api.CodeUnauthorized) // an id that is made up
	require.Equal(t, 200, a.post("/sessions/mine/fork", `{"sessionId":"mine3"}`, as("mine")...).status)
	require.Equal(t, 200, a.request("DELETE", "/sessions/mine3", "", as("mine")...).status)

	for _, verb := range []string{"chunks", "end", "fail", "rollback", "fork"} {
		a.post("/sessions/yours/"+verb, "junk", as("mine")...).failed(t, 403, api.CodeUnauthorized)
		a.post("/sessions/yours/"+verb, "junk", as("reader")...).failed(t, 403, api.CodeUnauthorized)
		a.post("/sessions/mine/"+verb, "junk", as("mine")...).failed(t, 400, api.CodeInvalidRequest)
	}
	a.post("/start", `{"sessionId":"mine2","agentType":"x","message":"hi"}`, as("mine")...).failed(t, 404, api.CodeNotFound)

	var page api.Page[api.Summary]
	a.get("/sessions", as("mine")...).decode(t, &page)
	require.Equal(t, 1, page.Total)
	require.Equal(t, "mine", page.Items[0].SessionID)
	a.get("/sessions?parentSessionId=yours", as("mine")...).decode(t, &page)
	require.Zero(t, page.Total)

	require.Equal(t, 200, a.get("/healthz").status)
	require.Equal(t, 200, a.get("/readyz").status)
	require.NotContains(t, a.logs.String(), "secret")
}

// TestAuthBreaks: what goes wrong in an authenticator lets nobody in.
func TestAuthBreaks(t *testing.T) {
	a := newAPIOn(t, memory.New(), nil, func(o *httpapi.Options) {
		o.Auth = func(r *http.Request, _ auth.Operation, _ string) error {
			if r.Header.Get("Panic") != "" {
				panic("the authenticator panicked")
			}
			return errors.New("the key server is down")
		}
	})
	body := a.get("/sessions").failed(t, 500, api.CodeInternalError)
	require.Equal(t, "internal error", body.Error)
	require.Contains(t, a.logs.String(), "the key server is down")
	a.get("/sessions", "Panic", "1").failed(t, 500, api.CodeInternalError)
	require.Contains(t, a.logs.String(), "the authenticator panicked")
}

func TestAnotherOriginsPageIsRefused(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	body := `{"sessionId":"s","agentType":"writer","message":"go"}`
	a.post("/start", body, "Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site").failed(t, 403, api.CodeUnauthorized)
	a.get("/status?sessionId=s").failed(t, 404, api.CodeNotFound)
	a.get("/status?sessionId=s", "Host", "localhost:8080").failed(t, 404, api.CodeNotFound)
	a.get("/status?sessionId=s", "Host", "[::1]:8080").failed(t, 404, api.CodeNotFound)
	a.get("/status?sessionId=s", "Host", "evil.example").failed(t, 403, api.CodeUnauthorized)
}
