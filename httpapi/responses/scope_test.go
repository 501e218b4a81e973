package responses_test

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/httpapi"
	"github.com/helixd/helixd/httpapi/auth/authtest"
)

// as makes requests as a caller that a header names.
func as(g *rig, user, method, path, body string) (int, string) {
	g.t.Helper()
	req, err := http.NewRequestWithContext(g.t.Context(), method, g.url+path, strings.NewReader(body))
	require.NoError(g.t, err)
	req.Header.Set("Authorization", "Bearer "+user)
	answer, err := http.DefaultClient.Do(req)
	require.NoError(g.t, err)
	defer answer.Body.Close()
	raw, err := io.ReadAll(answer.Body)
	require.NoError(g.t, err)
	return answer.StatusCode, string(raw)
}

// Every route needs its operation, and tells a caller nothing of another user's sessions, nor
// changes them.
func TestScope(t *testing.T) {
	t.Parallel()
	var who authtest.Everybody
	g := newRig(t, func(o *httpapi.Options) {
		o.AllowUnauthenticated, o.Auth, o.Identify = false, who.Auth, who.Identify
	})
	status, body := as(g, "ada", "POST", "/v1/responses", `{"model":"brain","input":"hello"}`)
	require.Equal(t, 200, status, body)
	id := body[strings.Index(body, `"resp_`)+1:]
	id = id[:strings.Index(id, `"`)]
	session := sessionOf(object{"id": id})
	head, err := g.log.Head(t.Context(), session)
	require.NoError(t, err)
	bodies := map[string]string{
		"/v1/responses": `{"model":"brain","input":"x","previous_response_id":"` + id + `"}`, "/v1/conversations": `{}`,
		"/v1/conversations/{conversationId}/items": `{"items":[{"role":"user","content":"x"}]}`,
	}
	routes := slices.DeleteFunc(httpapi.ProtocolRoutes(), func(rt httpapi.RouteInfo) bool {
		return !strings.HasPrefix(rt.Pattern, "/v1/responses") && !strings.HasPrefix(rt.Pattern, "/v1/conversations")
	})
	require.Len(t, routes, 13)
	for _, rt := range routes {
		path := strings.NewReplacer("{responseId}", id, "{conversationId}", "conv_"+session, "{itemId}", "x").Replace(rt.Pattern)
		body := bodies[rt.Pattern]
		if body == "" && rt.Method == "POST" {
			body = "{}"
		}
		status, text := as(g, "", rt.Method, path, body)
		require.Equal(t, 401, status, rt)
		require.Contains(t, text, `"type":"authentication_error"`)
		who.Refuse(rt.Operation)
		status, text = as(g, "ada", rt.Method, path, body)
		who.Refuse("")
		require.Equal(t, 403, status, rt)
		require.Contains(t, text, `"type":"permission_error"`)
		if rt.Pattern == "/v1/conversations" {
			continue
		}
		status, text = as(g, "bob", rt.Method, path, body)
		require.Contains(t, []int{400, 404}, status, "%v: %s", rt, text)
		require.Contains(t, text, "not found", rt)
	}
	status, text := as(g, "bob", "POST", "/v1/responses", `{"model":"brain","input":"x","conversation":"conv_`+session+`"}`)
	require.Equal(t, 404, status, text)
	for _, path := range []string{"/v1/conversations/conv_" + session, "/v1/conversations/conv_" + session + "/items"} {
		status, text = as(g, "bob", "POST", path, `{"items": nonsense`)
		require.Equal(t, 404, status, "it is not parsed: %s", text)
	}
	now, err := g.log.Head(t.Context(), session)
	require.NoError(t, err)
	require.Equal(t, head, now, "nothing has changed")
	for s, err := range g.log.Sessions(t.Context()) {
		require.NoError(t, err)
		require.False(t, s != session && hasRun(t, g, s), "no run began")
	}
}

func hasRun(t *testing.T, g *rig, session string) bool {
	t.Helper()
	for r, err := range g.log.Read(t.Context(), session, 0, 0) {
		require.NoError(t, err)
		if r.Type == (*fact.RunRequested)(nil).Type() {
			return true
		}
	}
	return false
}

// A session can become another user's between the authorization and the answer.
func TestOwnerIsCheckedAgain(t *testing.T) {
	t.Parallel()
	var who authtest.Everybody
	then := new(atomic.Pointer[paused])
	g := newRig(t, func(o *httpapi.Options) {
		o.AllowUnauthenticated, o.Auth, o.Identify = false, who.Auth, who.Identify
		o.Log = pausedLog{o.Log, then}
	})
	begin := func(user string) {
		run, err := g.loop.Execute(t.Context(), engine.StartRequest{
			SessionID: "s", UserID: user, AgentType: "brain", Messages: []agentloop.Input{{Content: "hello"}},
		})
		require.NoError(t, err)
		_, err = run.Result(t.Context())
		require.NoError(t, err)
	}
	begin("ada")
	then.Store(&paused{state: true, call: func() {
		_, err := g.loop.Admin.Erase(t.Context(), "s")
		require.NoError(t, err)
		begin("bob")
	}})
	status, text := as(g, "ada", "GET", "/v1/conversations/conv_s/items", "")
	require.Nil(t, then.Load())
	require.Equal(t, 404, status, text)
}
