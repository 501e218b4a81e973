package httpapi_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/httpapi"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/auth"
)

// TestHosts: on every route the server answers under its own names alone.
func TestHosts(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		hosts        []string
		takes, turns []string
	}{
		"none": {nil,
			[]string{"localhost", "LOCALHOST:8080", "localhost.", "127.0.0.1:80", "[::1]:8080", "[fe80::1%25eth0]", "10.1.2.3"},
			[]string{"evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "2130706433", "127.1", "[evil.example]", "."}},
		"some": {[]string{"helix.example", "*.helix.internal"},
			[]string{"helix.example", "Helix.Example:443", "helix.example.", "n1.helix.internal", "a.b.helix.internal:8080"},
			[]string{"www.helix.example", "evilhelix.example", "helix.internal", "evilhelix.internal", "helix.example.evil.example", "*.helix.internal.x"}},
		"all": {[]string{"*"}, []string{"evil.example", "x"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAPIOn(t, memory.New(), nil, limitedTo("s"), func(o *httpapi.Options) {
				o.Hosts, o.Origins = tc.hosts, []string{"https://app.example"}
			})
			for _, host := range tc.takes {
				require.Equal(t, 200, a.get("/healthz", "Host", host).status, host)
				require.Equal(t, 404, a.get("/status?sessionId=s", append(bearer("for s"), "Host", host)...).status, host)
			}
			for _, host := range tc.turns {
				for _, target := range []string{"/", "/healthz", "/readyz", "/metrics", "/openapi.json", "/status?sessionId=s", "/nowhere"} {
					got := a.get(target, append(bearer("anybody"), "Host", host)...)
					require.Contains(t, []int{400, 403}, got.status, "%s %s", host, target) // 400: net/http refuses it
					require.NotContains(t, got.body, "version")
				}
				got := a.request("OPTIONS", "/chat", "", "Host", host, "Origin", "https://app.example", "Access-Control-Request-Method", "POST")
				require.Contains(t, []int{400, 403}, got.status, "a preflight for %s", host)
			}
		})
	}
}

func TestHostsErrors(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", "*.", "*.*", "a*", "helix.example:8080", "https://helix.example", "Helix.example", "a b", ".a", "a."} {
		require.Error(t, httpapi.ValidateHost(name), name)
	}
	a := newAPIOn(t, memory.New(), nil)
	options := func(o httpapi.Options) httpapi.Options {
		o.Log, o.Loop, o.AllowUnauthenticated = a.log, a.loop, true
		return o
	}
	_, err := httpapi.New(options(httpapi.Options{Hosts: []string{"A"}}))
	require.ErrorContains(t, err, `host "A" must be`)
	_, err = httpapi.New(options(httpapi.Options{Hosts: []string{"*"}}))
	require.ErrorContains(t, err, `"*" needs authentication`)
	_, err = httpapi.New(options(httpapi.Options{Public: []string{"/sessions"}}))
	require.EqualError(t, err, `httpapi: the route "/sessions" can't be public: only /readyz, /metrics, /openapi.json can`)
}

// TestPublicRoutes: without authentication a caller learns nothing but that the
// server serves, unless the configuration opens a route.
func TestPublicRoutes(t *testing.T) {
	t.Parallel()
	auth := func(o *httpapi.Options) {
		o.Auth = auth.BearerTokens([]auth.Token{
			{Token: "scraper", Operations: []string{"metrics"}, Sessions: []string{"*"}},
			{Token: "web", Operations: []string{"chat", "status", "openapi"}, Sessions: []string{"web-*"}},
			{Token: "limited", Operations: []string{"*"}, Sessions: []string{"a-*"}},
		})
	}
	closed := newAPIOn(t, memory.New(), agents(gatedModel{}), auth)
	for _, headers := range [][]string{nil, bearer("wrong"), bearer("scraper")} {
		got := closed.get("/readyz", headers...)
		require.Equal(t, 200, got.status)
		require.JSONEq(t, `{"ready":true}`, got.body)
	}
	require.Contains(t, closed.get("/readyz", bearer("web")...).body, `"agents":["broken","echo","gated"]`)
	closed.get("/openapi.json").failed(t, 401, api.CodeUnauthorized)
	closed.get("/openapi.json", bearer("scraper")...).failed(t, 403, api.CodeUnauthorized)
	require.Equal(t, 200, closed.get("/openapi.json", bearer("web")...).status)
	closed.get("/metrics").failed(t, 401, api.CodeUnauthorized)
	for _, token := range []string{"web", "limited"} {
		closed.get("/metrics", bearer(token)...).failed(t, 403, api.CodeUnauthorized)
	}
	closed.samples(bearer("scraper")...)
	closed.get("/sessions", bearer("scraper")...).failed(t, 403, api.CodeUnauthorized)

	open := newAPIOn(t, memory.New(), agents(gatedModel{}), auth, func(o *httpapi.Options) { o.Public = httpapi.PublicRoutes() })
	open.samples()
	require.Equal(t, 200, open.get("/openapi.json?via=proxy").status)
	require.Contains(t, open.get("/readyz").body, `"version":"v-test"`)
	open.get("/sessions").failed(t, 401, api.CodeUnauthorized)
}

// TestDegradedIsForOperators: what /readyz lists as degraded names other tenants, servers and files.
func TestDegradedIsForOperators(t *testing.T) {
	t.Parallel()
	all := []string{"*"}
	with := func(o *httpapi.Options) {
		tokens := []auth.Token{
			{Token: "operator", Operations: []string{"status"}, Sessions: all},
			{Token: "red", Operations: all, Sessions: all, Tenant: "red"},
			{Token: "ann", Operations: all, Sessions: all, User: "ann"},
			{Token: "some", Operations: all, Sessions: []string{"a-*"}},
		}
		o.Auth, o.Identify = auth.BearerTokens(tokens), auth.TokenCallers(tokens)
		o.Degraded = func() []api.Degradation { return []api.Degradation{{Check: "quotas", Target: "blue"}} }
	}
	closed := newAPIOn(t, memory.New(), nil, with)
	open := newAPIOn(t, memory.New(), nil, with, func(o *httpapi.Options) { o.Public = httpapi.PublicRoutes() })
	for _, a := range []*testAPI{closed, open} {
		require.Contains(t, a.get("/readyz", bearer("operator")...).body, "blue")
		for _, token := range []string{"red", "ann", "some"} {
			got := a.get("/readyz", bearer(token)...)
			require.Contains(t, got.body, "v-test", token)
			require.NotContains(t, got.body, "blue", token)
		}
		for _, headers := range [][]string{nil, bearer("wrong")} {
			got := a.get("/readyz", headers...)
			require.Equal(t, 200, got.status)
			require.NotContains(t, got.body, "blue")
		}
	}
}
