package httpapi_test

import (
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/oklog/ulid/v2"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/httpapi"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/auth"
)

func TestRequestIDs(t *testing.T) {
	t.Parallel()
	a := newAPIOn(t, memory.New(), nil)
	a.append("s", created("s"), ended("s", `1`))
	for _, given := range []string{"a", "A-z_0.9", "0123456789-abcdef", strings.Repeat("x", 128)} {
		got := a.get("/status?sessionId=s", "X-Request-Id", given)
		require.Equal(t, []string{given}, got.header.Values("X-Request-Id"))
	}
	seen := map[string]bool{}
	for _, given := range []string{"", " ", "a b", "é", "a/b", "a:b", `"a"`, "<a>", "a,b", "a=b", strings.Repeat("x", 129)} {
		id := a.get("/status?sessionId=s", "X-Request-Id", given).header.Get("X-Request-Id")
		_, err := ulid.ParseStrict(id)
		require.NoError(t, err, "%q is answered with %q", given, id)
		require.False(t, seen[id])
		seen[id] = true
	}
	const trace = "0102030405060708090a0b0c0d0e0f10"
	got := a.get("/status?sessionId=s", "Traceparent", "00-"+trace+"-0102030405060708-01")
	require.Equal(t, trace, got.header.Get("X-Request-Id"), "the caller's trace has one search for both")
	for _, given := range []string{"00-" + trace, "junk", "00-00000000000000000000000000000000-0102030405060708-01", strings.Repeat("0", 5000)} {
		_, err := ulid.ParseStrict(a.get("/status?sessionId=s", "Traceparent", given).header.Get("X-Request-Id"))
		require.NoError(t, err, given)
	}
	got = a.get("/status?sessionId=s", "Traceparent", "00-"+trace+"-0102030405060708-01", "X-Request-Id", "mine")
	require.Equal(t, "mine", got.header.Get("X-Request-Id"))
	twice := raw(t, a, "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX-Request-Id: one\r\nX-Request-Id: two\r\n\r\n")
	_, err := ulid.ParseStrict(twice.header.Get("X-Request-Id"))
	require.NoError(t, err)
}

// TestRequestIDOnEveryAnswer: whatever the answer is; failed looks at it in
// error bodies.
func TestRequestIDOnEveryAnswer(t *testing.T) {
	a := newAPIOn(t, memory.New(), nil, func(o *httpapi.Options) { o.Origins = []string{"https://app.example"} })
	a.append("s", created("s"), text("s", "x"), ended("s", `1`))
	id := []string{"X-Request-Id", "my-id"}
	for _, target := range []string{"/sse?sessionId=s", "/sessions/s/records", "/sessions/s/state", "/healthz", "/readyz", "/sessions"} {
		got := a.get(target, id...)
		require.Equal(t, 200, got.status)
		require.Equal(t, "my-id", got.header.Get("X-Request-Id"), target)
	}
	preflight := a.request("OPTIONS", "/start", "", "Origin", "https://app.example", "Access-Control-Request-Method", "POST", "X-Request-Id", "my-id")
	require.Equal(t, 204, preflight.status)
	require.Equal(t, "my-id", preflight.header.Get("X-Request-Id"))

	a.get("/nowhere", id...).failed(t, 404, api.CodeNotFound)
	got := a.get("/status?sessionId=none", id...)
	got.failed(t, 404, api.CodeNotFound)
	require.Contains(t, got.body, `"requestId":"my-id"`)
	a.request("PUT", "/start", "", id...).failed(t, 405, api.CodeMethodNotAllowed)
	a.post("/start", "junk", id...).failed(t, 400, api.CodeInvalidRequest)
}

// TestRequestIDInLogs: also where there is no answer to see it in.
func TestRequestIDInLogs(t *testing.T) {
	a := newAPIOn(t, memory.New(), nil, func(o *httpapi.Options) {
		o.Logger = o.Logger.With("node", "n1")
		o.AllowUnauthenticated = false
		o.Auth = func(r *http.Request, _ auth.Operation, _ string) error {
			if r.Header.Get("Panic") != "" {
				panic("on purpose")
			}
			return &auth.Refusal{Status: 518, Message: httpapi.RequestID(r.Context()) + " is known to hooks"}
		}
	})
	a.get("/sessions", "X-Request-Id", "first").failed(t, 518, api.CodeInternalError)
	a.get("/sessions", "X-Request-Id", "second", "Panic", "1").failed(t, 500, api.CodeInternalError)
	lines := strings.Split(strings.TrimSpace(a.logs.String()), "\n")
	require.Len(t, lines, 2)
	require.Regexp(t, `node=n1.*first is known to hooks.*requestId=first`, lines[0])
	require.Regexp(t, `node=n1.*on purpose.*requestId=second`, lines[1])
}

// TestOneRequestID: the id of a request is in the access log, in the record of the run that it asked for, in the
// session's state and in the log lines of that run.
func TestOneRequestID(t *testing.T) {
	log := memory.New()
	broken := agentloop.Agent{Name: "broken", Model: scripted.New([]scripted.Turn{{Err: &model.Error{Code: model.CodeAuthFailed, Message: "no such key"}}}, nil)}
	a := newAPIOn(t, log, []agentloop.Agent{broken}, func(o *httpapi.Options) { o.AccessLog = true })
	a.post("/start", `{"sessionId":"s","agentType":"broken","message":"go"}`, "X-Request-Id", "one-id").done(t)
	a.get("/sse?sessionId=s").done(t)
	a.get("/status?sessionId=none", "X-Request-Id", "two").failed(t, 404, api.CodeNotFound)
	lines := a.logs.String()
	require.Regexp(t, `msg=request route=/start session=s method=POST status=200 duration=\S+ address=\S+ requestId=one-id\n`, lines)
	require.Regexp(t, `msg=request route=/status session=none method=GET status=404 duration=\S+ address=\S+ requestId=two\n`, lines)
	require.Regexp(t, `msg="model call failed" requestId=one-id session=s run=`, lines)
	found := false
	for r, err := range log.Read(t.Context(), "s", 0, 0) {
		require.NoError(t, err)
		if r.Type == (*fact.RunRequested)(nil).Type() {
			found = true
			require.Contains(t, string(r.Payload), `"requestId":"one-id"`)
		}
	}
	require.True(t, found)
	require.Contains(t, a.get("/sessions/s/runs").done(t).body, `"requestId":"one-id"`)
}

// TestEveryLogLineKnowsItsRequest: a line that is logged without the request's
// context has no id.
func TestEveryLogLineKnowsItsRequest(t *testing.T) {
	t.Parallel()
	without := regexp.MustCompile(`(\.logger|\.opts\.Logger|\b[a-np-z]\.Logger)\.(Debug|Info|Warn|Error|Log)\(`)
	files := 0
	require.NoError(t, filepath.WalkDir(".", func(name string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
			return err
		}
		files++
		source, err := os.ReadFile(name)
		require.Empty(t, without.FindString(string(source)), "%s: use s.logger.ErrorContext(r.Context(), ...) and the like", name)
		return err
	}))
	require.Greater(t, files, 50)
}
