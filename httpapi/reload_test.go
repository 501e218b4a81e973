package httpapi_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/httpapi"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/auth"
	"github.com/helixd/helixd/httpapi/chat"
)

// reloading counts how often it is asked.
func reloading(times *int) func(context.Context) (api.Reloaded, error) {
	return func(ctx context.Context) (api.Reloaded, error) {
		if _, bounded := ctx.Deadline(); bounded {
			return api.Reloaded{}, errors.New("new MCP servers may take longer")
		}
		if times != nil {
			*times++
		}
		return api.Reloaded{Agents: []string{"a"}, NeedsRestart: []string{}}, nil
	}
}

// TestReloadIsForAdmins: who may do it on all sessions.
func TestReloadIsForAdmins(t *testing.T) {
	times := 0
	a := newAPIOn(t, memory.New(), nil, func(o *httpapi.Options) {
		o.Reload = reloading(&times)
		o.Auth = auth.BearerTokens([]auth.Token{
			{Token: "admin", Operations: []string{"admin"}, Sessions: []string{"*"}},
			{Token: "one", Operations: []string{"*"}, Sessions: []string{"s"}},
			{Token: "other", Operations: []string{"chat*", "retain"}, Sessions: []string{"*"}},
		})
	})
	for token, status := range map[string]int{"one": 403, "other": 403, "nobody": 401} {
		a.post("/admin/reload", "{}", "Authorization", "Bearer "+token).failed(t, status, api.CodeUnauthorized)
	}
	require.Zero(t, times)
	got := a.post("/admin/reload", "{}", "Authorization", "Bearer admin")
	require.Equal(t, 200, got.status)
	require.JSONEq(t, `{"agents":["a"],"needsRestart":[]}`, got.body)
	require.Equal(t, 1, times)
}

func TestReloadThatIsRefused(t *testing.T) {
	refused := errors.Join(&httpapi.ReloadError{Problems: []string{"helix.yaml:3: agents.a.model: needs a provider", "helix.yaml:9: x: unknown key"}})
	a := newAPIOn(t, memory.New(), nil, func(o *httpapi.Options) {
		o.Reload = func(context.Context) (api.Reloaded, error) { return api.Reloaded{}, refused }
	})
	body := a.post("/admin/reload", "{}").failed(t, 409, api.CodeInvalidConfig)
	require.Equal(t, "nothing has changed: helix.yaml:3: agents.a.model: needs a provider; helix.yaml:9: x: unknown key", body.Error)
	require.Equal(t, map[string]any{"problems": []any{"helix.yaml:3: agents.a.model: needs a provider", "helix.yaml:9: x: unknown key"}}, body.Detail)
}

func tokenFor(token string) auth.Authenticator {
	return auth.BearerTokens([]auth.Token{{Token: token, Operations: []string{"*"}, Sessions: []string{"*"}}})
}

// TestReconfigure: another token counts from the next request on, and a stream
// continues only for those who may still hear it.
func TestReconfigure(t *testing.T) {
	t.Parallel()
	a := newAPIOn(t, memory.New(), nil, func(o *httpapi.Options) { o.Auth = tokenFor("old") })
	old, fresh := []string{"Authorization", "Bearer old"}, []string{"Authorization", "Bearer new"}
	a.append("s", created("s"), text("s", "x"))
	require.Equal(t, 200, a.get("/status?sessionId=s", old...).status)
	req, err := http.NewRequestWithContext(a.ctx(), http.MethodGet, a.http.URL+"/sse?sessionId=s", nil)
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer old")
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	stream := bufio.NewReader(resp.Body)
	hears := func(want string) {
		t.Helper()
		for line := ""; !strings.Contains(line, want); {
			line, err = stream.ReadString('\n')
			require.NoError(t, err)
		}
	}
	hears(`"x"`)

	both := auth.AnyOf(tokenFor("old"), tokenFor("new"))
	require.NoError(t, a.srv.Reconfigure(both, nil, nil))
	require.Equal(t, 200, a.get("/status?sessionId=s", old...).status)
	require.Equal(t, 200, a.get("/status?sessionId=s", fresh...).status)
	a.append("s", text("s", "y"))
	hears(`"y"`)

	require.NoError(t, a.srv.Reconfigure(tokenFor("new"), nil, nil))
	a.get("/status?sessionId=s", old...).failed(t, 401, api.CodeUnauthorized)
	require.Equal(t, 200, a.get("/status?sessionId=s", fresh...).status)
	_, err = io.Copy(io.Discard, stream)
	require.NoError(t, err, "the stream ends")

	require.Error(t, a.srv.Reconfigure(nil, nil, nil), "all of a sudden everybody may do everything")
	require.Error(t, a.srv.Reconfigure(tokenFor("old"), nil, &chat.Options{DefaultAgent: "nobody"}))
	a.get("/status?sessionId=s", old...).failed(t, 401, api.CodeUnauthorized)
}

// TestGuard: what is not the server's own is refused as its own routes are.
func TestGuard(t *testing.T) {
	a := newAPIOn(t, memory.New(), nil, func(o *httpapi.Options) {
		o.Auth = auth.BearerTokens([]auth.Token{
			{Token: "admin", Operations: []string{"admin"}, Sessions: []string{"*"}},
			{Token: "some", Operations: []string{"*"}, Sessions: []string{"s*"}},
		})
	})
	guarded := a.srv.Guard(auth.OpAdmin, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	for _, tc := range []struct {
		host, token string
		want        int
	}{{"localhost", "admin", 418}, {"evil.example", "admin", 403}, {"localhost", "some", 403}, {"localhost", "", 401}} {
		want := tc.want
		r := httptest.NewRequest(http.MethodGet, "http://"+tc.host+"/debug/pprof/", nil)
		r.Header.Set("Authorization", "Bearer "+tc.token)
		w := httptest.NewRecorder()
		guarded.ServeHTTP(w, r)
		require.Equal(t, want, w.Code)
		require.NotEmpty(t, w.Header().Get("X-Request-Id"))
		if want != 418 {
			require.True(t, strings.Contains(w.Body.String(), string(api.CodeUnauthorized)), w.Body.String())
		}
	}
}
