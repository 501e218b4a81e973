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

	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/httpapi"
	"github.com/helixd/helixd/httpapi/auth"
	"github.com/helixd/helixd/integration/testkit"
)

// TestARefusalWaitsForNoBody: a caller who may not do what it asks for is refused at
// once, and does not hold its connection with a body that never comes.
func TestARefusalWaitsForNoBody(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	a := newAPIOn(t, memory.New(), nil, func(o *httpapi.Options) {
		o.Auth = auth.BearerTokens([]auth.Token{{Token: "t", Operations: []string{"status"}, Sessions: []string{"*"}}})
		o.Origins = []string{"https://app.example"}
	})
	a.append("s", created("s"))
	httpapi.SetBodyTimeout(a.srv, time.Hour)
	guarded := httptest.NewServer(a.srv.Guard(auth.OpAdmin, http.NotFoundHandler()))
	defer guarded.Close()
	const length, chunked, auth = "Content-Length: 10\r\n", "Transfer-Encoding: chunked\r\n", "Authorization: Bearer t\r\n"
	type refusal struct {
		url, line, headers string
		status             int
	}
	asked := map[refusal]net.Conn{}
	for _, tc := range []refusal{
		{a.http.URL, "GET /sessions/s", length, 401},
		{a.http.URL, "GET /sessions/s", chunked, 401},
		{a.http.URL, "HEAD /sessions/s", length, 401},
		{a.http.URL, "POST /start", length, 401},
		{a.http.URL, "POST /start", length + auth, 403},
		{a.http.URL, "DELETE /sessions/s", length, 401},
		{a.http.URL, "GET /healthz", length, 400},
		{a.http.URL, "GET /healthz", chunked, 400},
		{a.http.URL, "GET /", length, 400},
		{a.http.URL, "GET /nowhere", length, 404},
		{a.http.URL, "PUT /start", length, 405},
		{a.http.URL, "GET /healthz", length + "Host: evil.example\r\n", 403},
		{a.http.URL, "OPTIONS /start", length + "Origin: https://app.example\r\nAccess-Control-Request-Method: POST\r\n", 204},
		{guarded.URL, "GET /debug/pprof/", length, 401},
	} {
		conn := dialTo(t, tc.url)
		require.NoError(t, conn.SetDeadline(time.Now().Add(20*time.Second)))
		host := "Host: localhost\r\n"
		if tc.status == 403 && tc.headers != length+auth {
			host = ""
		}
		_, err := fmt.Fprintf(conn, "%s HTTP/1.1\r\n%s%s\r\n", tc.line, host, tc.headers)
		require.NoError(t, err)
		asked[tc] = conn
	}
	for tc, conn := range asked { // a server lets a client read for a moment before it closes
		what := fmt.Sprintf("%s %q", tc.line, tc.headers)
		method, _, _ := strings.Cut(tc.line, " ")
		in := bufio.NewReader(conn)
		got, err := http.ReadResponse(in, &http.Request{Method: method})
		require.NoError(t, err, what)
		require.Equal(t, tc.status, got.StatusCode, what)
		require.True(t, got.Close, what)
		_, err = io.ReadAll(in)
		require.NoError(t, err, "the connection is closed: %s", what)
	}
	require.Equal(t, 200, a.get("/healthz").status)
}
