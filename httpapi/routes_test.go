package httpapi_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/httpapi"
	"github.com/helixd/helixd/httpapi/api"
)

func TestRoutesUnknown(t *testing.T) {
	t.Parallel()
	a := newAPIOn(t, memory.New(), nil)
	a.append("s", created("s"))
	a.append("state", created("state"))
	for _, target := range []string{
		"/nowhere", "/debugger", "/debugger/", "/debugger/nothing.js", "/debugger/index.html", "/debugger/static", "/debugger/..%2Fdebugger.go", "/sse/", "/sessions/", "/sessions//", "/sessions//state", "//sessions/s", "/sessions/./s",
		"/sessions/s/../state", "/sessions/../sessions/s", "/sessions/..", "/sessions/s/", "/sessions/s/nothing",
		"/sessions/s/state/x", "/chat/s", "/start/", "/sessions/a/b/state",
	} {
		got := raw(t, a, "GET "+target+" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
		got.failed(t, 404, api.CodeNotFound)
		require.Empty(t, got.header.Get("Location"), target)
	}
}

// TestRoutesRefuseUnknownParameters: what a route would ignore it refuses, and
// nothing happens.
func TestRoutesRefuseUnknownParameters(t *testing.T) {
	t.Parallel()
	a := newAPIOn(t, newLog(t), []agentloop.Agent{writer()}, withChat(), withMemories, withReadModels(t))
	doc := map[string]*apiOperation{}
	for op := range readOpenAPI(t).operations() {
		doc[op.method+" "+op.path] = op
	}
	a.finished("s")
	eachRoute(t, func(t *testing.T, rt httpapi.TestRoute, c routeCase) {
		var described []string
		for _, p := range doc[rt.Method+" "+rt.Pattern].Parameters {
			if p.In == "query" {
				described = append(described, p.Name)
			}
		}
		require.ElementsMatch(t, described, strings.Fields(rt.Params), "the table and the document agree")
		target := c.target(rt, "s")
		target += map[bool]string{true: "&", false: "?"}[strings.Contains(target, "?")] + "sessionID=s"
		got := a.request(rt.Method, target, c.bodyFor(t, "s", "s-fork"))
		if c.public || rt.Method == "POST" && rt.Params == "" {
			require.NotContains(t, got.body, "sessionID")
			return
		}
		require.Equal(t, map[string]any{"field": "sessionID"}, got.failed(t, 400, api.CodeInvalidRequest).Detail)
	})
	require.Equal(t, 400, a.request("DELETE", "/sessions/s?really=1", "").status)
	require.Equal(t, 200, a.get("/sessions/s").status, "it is still there")
}

func TestRoutesMethods(t *testing.T) {
	t.Parallel()
	a := newAPIOn(t, memory.New(), nil)
	for target, allow := range map[string]string{
		"/start": "POST", "/resume": "POST", "/interrupt": "POST", "/abort": "POST", "/submit-tool-result": "POST",
		"/sessions/s/rollback": "POST", "/sessions/s/fork": "POST",
		"/sessions/s/checkpoints": "GET, HEAD", "/sessions/s/runs": "GET, HEAD", "/sessions/s/files": "GET, HEAD",
		"/sessions/s/chunks": "POST", "/sessions/s/end": "POST", "/sessions/s/fail": "POST", "/sessions/s/import": "POST",
		"/sse": "GET, HEAD", "/status": "GET, HEAD", "/chat/s/snapshot": "GET, HEAD", "/chat/s/messages": "GET, HEAD",
		"/chat": "POST", "/chat/s/stream": "GET, HEAD", "/chat/s/submit-tool-result": "POST", "/chat/s/interrupt": "POST", "/chat/s/abort": "POST", "/sessions": "GET, HEAD",
		"/sessions/s": "DELETE, GET, HEAD", "/sessions/s/records": "GET, HEAD", "/sessions/s/state": "GET, HEAD",
		"/healthz": "GET, HEAD", "/readyz": "GET, HEAD", "/metrics": "GET, HEAD",
	} {
		for _, method := range []string{"GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "WHATEVER"} {
			if strings.Contains(allow, method) {
				continue
			}
			got := a.request(method, target, "")
			got.failed(t, 405, api.CodeMethodNotAllowed)
			require.Equal(t, allow, got.header.Get("Allow"))
		}
	}
	require.Equal(t, 405, a.request("HEAD", "/start", "").status)
}

func TestBodies(t *testing.T) {
	t.Parallel()
	a := newAPIOn(t, memory.New(), nil)
	const head = "POST /start HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
	raw(t, a, head+"\r\n").failed(t, 411, api.CodeLengthRequired)
	raw(t, a, head+"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n").failed(t, 411, api.CodeLengthRequired)
	raw(t, a, head+"Content-Length: 0\r\n\r\n").failed(t, 400, api.CodeInvalidRequest)
	// Refused by its length alone: the body never comes.
	got := raw(t, a, fmt.Sprintf("%sContent-Length: %d\r\n\r\n", head, api.MaxBody+1)).
		failed(t, 413, api.CodePayloadTooLarge)
	require.Equal(t, map[string]any{"limit": float64(api.MaxBody)}, got.Detail)

	const frame = `{"sessionId":"s","agentType":"nobody","message":"%s"}`
	most := fmt.Sprintf(frame, strings.Repeat("x", api.MaxBody-len(frame)+2))
	require.Len(t, most, api.MaxBody)
	a.post("/start", most).failed(t, 404, api.CodeNotFound) // the agent: it was read whole

	// A body that ends early.
	conn := dial(t, a)
	_, err := io.WriteString(conn, head+"Content-Length: 10\r\n\r\n{}")
	require.NoError(t, err)
	require.NoError(t, conn.(*net.TCPConn).CloseWrite())
	answerOf(t, conn).failed(t, 400, api.CodeInvalidRequest)
	require.NotContains(t, a.logs.String(), "ERROR")
}

// TestMounted: the server works under a prefix.
func TestMounted(t *testing.T) {
	a := newAPIOn(t, memory.New(), nil)
	a.append("a/b", created("a/b"))
	mux := http.NewServeMux()
	mux.Handle("/agents/", http.StripPrefix("/agents", a.srv))
	srv := httptest.NewServer(mux)
	defer srv.Close()
	resp, err := srv.Client().Get(srv.URL + "/agents/sessions/a%2Fb/state")
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, 200, resp.StatusCode)
}

func dial(t *testing.T, a *testAPI) net.Conn {
	t.Helper()
	return dialTo(t, a.http.URL)
}

func dialTo(t *testing.T, url string) *net.TCPConn {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(within)))
	return conn.(*net.TCPConn)
}

func answerOf(t *testing.T, conn net.Conn) answer {
	t.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return answer{resp.StatusCode, resp.Header, string(body)}
}

// raw sends bytes as they are.
func raw(t *testing.T, a *testAPI, request string) answer {
	t.Helper()
	conn := dial(t, a)
	_, err := io.WriteString(conn, request)
	require.NoError(t, err)
	return answerOf(t, conn)
}
