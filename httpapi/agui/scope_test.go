package agui_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/httpapi"
	"github.com/helixd/helixd/httpapi/auth/authtest"
)

// Every route needs its operation, and tells a caller nothing of another user's sessions, nor
// changes them.
func TestScope(t *testing.T) {
	t.Parallel()
	var who authtest.Everybody
	g := newRig(t, func(o *httpapi.Options) {
		o.AllowUnauthenticated, o.Auth, o.Identify = false, who.Auth, who.Identify
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
		who.Refuse(rt.Operation)
		status, _ = ask("ada", rt.Method, path, body)
		who.Refuse("")
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
