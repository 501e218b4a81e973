package agui_test

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/httpapi"
	"github.com/helixd/helixd/httpapi/auth"
)

// Every route needs its operation, and tells a caller nothing of another user's sessions, nor
// changes them.
func TestScope(t *testing.T) {
	t.Parallel()
	var refuse atomic.Value
	refuse.Store(auth.Operation(""))
	g := newRig(t, func(o *httpapi.Options) {
		o.AllowUnauthenticated = false
		o.Auth = func(r *http.Request, op auth.Operation, _ string) error {
			switch {
			case auth.BearerOf(r) == "":
				return auth.ErrUnauthorized
			case op == refuse.Load():
				return auth.ErrForbidden
			}
			return nil
		}
		o.Identify = func(r *http.Request) (auth.Caller, error) {
			user := auth.BearerOf(r)
			return auth.Caller{Name: user, User: user}, nil
		}
	})
	ask := func(user, method, path, body string) (int, string) {
		resp := g.open(method, path, body, "Authorization", "Bearer "+user)
		defer resp.Body.Close()
		raw, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return resp.StatusCode, string(raw)
	}
	body := `{"threadId":"t","runId":"r","messages":[{"id":"u","role":"user","content":"hello"}]}`
	status, text := ask("ada", "POST", "/ag-ui/brain", body)
	require.Equal(t, 200, status, text)
	head, err := g.log.Head(t.Context(), "t")
	require.NoError(t, err)
	found := 0
	for _, rt := range httpapi.ProtocolRoutes() {
		path, ours := strings.CutPrefix(rt.Pattern, "/ag-ui/")
		if !ours {
			continue
		}
		found++
		path = "/ag-ui/" + strings.NewReplacer("{agent}", "brain", "{id}", "t").Replace(path)
		body := strings.ReplaceAll(body, `"r"`, `"r2"`)
		if rt.Method == http.MethodGet {
			body = ""
		}
		status, text := ask("", rt.Method, path, body)
		require.Equal(t, 401, status, rt)
		require.Contains(t, text, `"type":"RUN_ERROR"`)
		refuse.Store(rt.Operation)
		status, _ = ask("ada", rt.Method, path, body)
		refuse.Store(auth.Operation(""))
		require.Equal(t, 403, status, rt)
		status, text = ask("bob", rt.Method, path, body)
		require.Contains(t, []int{403, 404}, status, "%v: %s", rt, text)
		require.NotContains(t, text, "ada")
	}
	require.Equal(t, 2, found)
	now, err := g.log.Head(t.Context(), "t")
	require.NoError(t, err)
	require.Equal(t, head, now, "nothing has changed")
}
