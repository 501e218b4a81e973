package integration_test

import (
	"cmp"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/httpapi"
	"github.com/helixd/helixd/integration/docs"
)

// kinds are callers that the table of security.md tells apart.
var kinds = []struct {
	name  string
	token httpapi.Token // without one: no credentials
}{
	{"without credentials", httpapi.Token{}},
	{"no operations", httpapi.Token{Operations: []string{}, Sessions: []string{"*"}}},
	{"some `sessions`", httpapi.Token{Operations: []string{"*"}, Sessions: []string{"web-*"}}},
	{"with a `user`", httpapi.Token{Operations: []string{"*"}, Sessions: []string{"*"}, User: "ada"}},
	{"with a `tenant`", httpapi.Token{Operations: []string{"*"}, Sessions: []string{"*"}, Tenant: "red"}},
	{"with a `user` and `act-as`", httpapi.Token{Operations: []string{"*", string(httpapi.OpActAs)}, Sessions: []string{"*"}, User: "ada"}},
	{"all operations and sessions", httpapi.Token{Operations: []string{"*"}, Sessions: []string{"*"}}},
}

// accessTable asks a server on every route of its table as each kind of caller, about
// a session that it may reach.
func accessTable(t *testing.T) string {
	log := memory.New()
	loop, err := engine.New(log, nil, nil)
	require.NoError(t, err)
	defer loop.Stop()
	var tokens []httpapi.Token
	for i := range kinds[1:] {
		k := &kinds[i+1]
		k.token.Token, k.token.Name = k.name, k.name
		tokens = append(tokens, k.token)
	}
	server, err := httpapi.New(httpapi.Options{
		Log: log, Loop: loop, Auth: httpapi.BearerTokens(tokens), Identify: httpapi.TokenCallers(tokens), Chat: &httpapi.ChatOptions{},
	})
	require.NoError(t, err)
	defer server.Close()
	front := httptest.NewServer(server)
	defer front.Close()

	refused := func(r httpapi.RouteInfo, token string) bool {
		const id = "web-1"
		path := strings.NewReplacer("{id}", id, "{file}", "app.js", "{memoryId}", "m").Replace(r.Pattern)
		query := map[string]string{
			"/sse": "?sessionId=" + id, "/status": "?sessionId=" + id, "/workspace": "?sessionId=" + id, "/workspaces": "?sessionId=" + id,
			"/compare": "?a=" + id + "&b=" + id, "/memories": "?scope=session&id=" + id, "/memories/{memoryId}": "?scope=session&id=" + id, "/search": "?q=x",
		}[r.Pattern]
		if r.Method == http.MethodPost {
			query = ""
		}
		body := `{"sessionId":"` + id + `","scope":{"kind":"session","id":"` + id + `"}}`
		if r.Method == http.MethodGet {
			body = ""
		}
		req, err := http.NewRequestWithContext(t.Context(), r.Method, front.URL+path+query, strings.NewReader(body))
		require.NoError(t, err)
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		defer resp.Body.Close()
		_, err = io.Copy(io.Discard, resp.Body)
		require.NoError(t, err, "%s %s", r.Method, path)
		return resp.StatusCode == 401 || resp.StatusCode == 403
	}
	var rows [][]string
	for _, k := range kinds {
		var yes, no []string
		for _, r := range httpapi.Routes() {
			route := "`" + r.Method + " " + r.Pattern + "`"
			if refused(r, k.token.Token) {
				no = append(no, route)
			} else {
				yes = append(yes, route)
			}
		}
		slices.Sort(yes)
		slices.Sort(no)
		may := cmp.Or(strings.Join(yes, ", "), "none")
		switch {
		case len(no) == 0:
			may = "all"
		case len(no) < len(yes):
			may = "all but " + strings.Join(no, ", ")
		}
		rows = append(rows, []string{k.name, may})
	}
	return docs.Table([]string{"caller", "routes"}, rows)
}
