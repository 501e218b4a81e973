package httpapi_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/httpapi"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/auth"
)

// TestABodyThatNeverComesIsGivenUp: whatever is answered, it neither waits for
// the body for ever nor holds its connection.
func TestABodyThatNeverComesIsGivenUp(t *testing.T) {
	t.Parallel()
	a := newAPIOn(t, memory.New(), nil, func(o *httpapi.Options) {
		o.Auth = auth.BearerTokens([]auth.Token{{Token: "t", Operations: []string{"*"}, Sessions: []string{"*"}}})
		o.Origins = []string{"https://app.example"}
	})
	a.append("s", created("s"))
	httpapi.SetBodyTimeout(a.srv, 10*time.Millisecond)
	const length, chunked, auth = "Content-Length: 10\r\n", "Transfer-Encoding: chunked\r\n", "Authorization: Bearer t\r\n"
	for _, tc := range []struct {
		line, headers string
		status        int
	}{
		{"GET /healthz", length, 400},
		{"GET /healthz", chunked, 400},
		{"GET /nowhere", length, 404},
		{"PUT /start", length, 405},
		{"POST /start", length, 401},
		{"POST /start", auth + chunked, 411},
		{"POST /sessions/s/import", length, 401},
		{"GET /sessions/s", auth + length, 400},
		{"GET /sessions/s/records", auth + length, 400},
		{"DELETE /sessions/s", auth + length, 200},
		{"OPTIONS /start", length + "Origin: https://app.example\r\nAccess-Control-Request-Method: POST\r\n", 204},
	} {
		what := fmt.Sprintf("%s %q", tc.line, tc.headers)
		conn := dial(t, a)
		_, err := fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: localhost\r\n%s\r\n", tc.line, tc.headers)
		require.NoError(t, err)
		require.Equal(t, tc.status, answerOf(t, conn).status, what)
		rest, err := io.ReadAll(conn)
		require.NoError(t, err, "the connection is closed: %s", what)
		require.Empty(t, rest)
	}
}

// watched sees what a handler does with its connection.
type watched struct {
	http.ResponseWriter
	fresh   bool         // the deadline was set since the last write
	hurried atomic.Bool  // a deadline of reads is set
	stale   atomic.Int64 // writes whose deadline was that of another one
	largest atomic.Int64 // write, in bytes
}

func (w *watched) SetReadDeadline(t time.Time) error {
	w.hurried.Store(!t.IsZero())
	return http.NewResponseController(w.ResponseWriter).SetReadDeadline(t)
}

func (w *watched) SetWriteDeadline(t time.Time) error {
	w.fresh = true
	return http.NewResponseController(w.ResponseWriter).SetWriteDeadline(t)
}

func (w *watched) Write(p []byte) (int, error) {
	if !w.fresh {
		w.stale.Add(1)
	}
	w.fresh = false
	w.largest.Store(max(w.largest.Load(), int64(len(p))))
	return w.ResponseWriter.Write(p)
}

func (w *watched) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// ask has a server answer a request with a body, and sees how it does that.
// The answer's body is open until the test is finished.
func ask(t *testing.T, a *testAPI, target, body string) (*watched, *http.Response) {
	t.Helper()
	seen := make(chan *watched, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		own := &watched{ResponseWriter: w}
		seen <- own
		a.srv.ServeHTTP(own, r)
	}))
	t.Cleanup(srv.Close)
	req, err := http.NewRequestWithContext(a.ctx(), http.MethodGet, srv.URL+target, strings.NewReader(body))
	require.NoError(t, err)
	resp, err := srv.Client().Do(req)
	require.NoError(t, err)
	t.Cleanup(func() { resp.Body.Close() })
	require.Equal(t, 200, resp.StatusCode)
	return <-seen, resp
}

// TestAStreamIsNotCutByItsBodysDeadline: it passes long before the stream ends,
// and would look like a client that has left.
func TestAStreamIsNotCutByItsBodysDeadline(t *testing.T) {
	t.Parallel()
	a := newAPIOn(t, memory.New(), nil)
	a.append("s", created("s"), text("s", strings.Repeat("x", 1<<20)), text("s", "last"))
	for target, stays := range map[string]bool{
		"/sse?sessionId=s": true, "/sessions/s/stream": true, "/sessions/s/records": false,
	} {
		w, resp := ask(t, a, target, "{}")
		_, err := io.CopyN(io.Discard, resp.Body, 1<<20)
		require.NoError(t, err)
		require.False(t, w.hurried.Load(), target)
		if !stays {
			_, err = io.Copy(io.Discard, resp.Body)
			require.NoError(t, err)
		}
	}
}

// TestLargeAnswersHaveTimeForEachPart: how long a client may take does not
// depend on how large a record or a state is.
func TestLargeAnswersHaveTimeForEachPart(t *testing.T) {
	t.Parallel()
	a := newAPIOn(t, memory.New(), nil)
	big := strings.Repeat("x", 1<<20)
	a.append("s", created("s"), text("s", big), ended("s", `"`+big+`"`))
	for _, target := range []string{
		"/sse?sessionId=s", "/sessions/s/stream", "/sessions/s/records", "/sessions/s/state", "/status?sessionId=s",
	} {
		w, resp := ask(t, a, target, "")
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.True(t, strings.Contains(string(body), big), target)
		require.Zero(t, w.stale.Load(), target)
		require.LessOrEqual(t, w.largest.Load(), int64(64<<10), target)
	}
}

// roomy sees how much room there is for a body before it comes.
type roomy struct {
	io.ReadCloser
	most atomic.Int64
}

func (r *roomy) Read(p []byte) (int, error) {
	r.most.Store(max(r.most.Load(), int64(len(p))))
	return r.ReadCloser.Read(p)
}

// TestABodyTakesRoomAsItComes: its length alone takes none.
func TestABodyTakesRoomAsItComes(t *testing.T) {
	a := newAPIOn(t, memory.New(), nil)
	body := new(roomy)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body.ReadCloser, r.Body = r.Body, body
		a.srv.ServeHTTP(w, r)
	}))
	defer srv.Close()
	conn := dialTo(t, srv.URL)
	_, err := fmt.Fprintf(conn, "POST /sessions/s/chunks HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n{", api.MaxChunksBody)
	require.NoError(t, err)
	require.NoError(t, conn.CloseWrite())
	answerOf(t, conn).failed(t, 400, api.CodeInvalidRequest)
	require.Positive(t, body.most.Load())
	require.LessOrEqual(t, body.most.Load(), int64(1<<20))
}
