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
