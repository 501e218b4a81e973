package httpapi_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/httpapi"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/auth"
	"github.com/helixd/helixd/integration/testkit"
)

// TestBodiesOfEveryRoute: a body must state its length, and not be too long. A caller
// without the right gets only that error, whatever the body is.
func TestBodiesOfEveryRoute(t *testing.T) {
	testkit.OneGoroutine(t)
	t.Parallel()
	a := newAPIOn(t, memory.New(), []agentloop.Agent{writer()}, limitedTo("mine", "yours"), func(o *httpapi.Options) {
		o.Auth = auth.AnyOf(o.Auth, auth.BearerTokens([]auth.Token{{Token: "nothing", Sessions: []string{"*"}}}))
	})
	for _, id := range []string{"mine", "yours"} {
		a.finished(id)
	}
	before := a.contents()
	eachRoute(t, func(t *testing.T, rt httpapi.TestRoute, c routeCase) {
		if rt.Method != "POST" {
			return
		}
		post := func(token, session, framing string) answer {
			auth := ""
			if token != "" {
				auth = "Authorization: Bearer " + token + "\r\n"
			}
			return raw(t, a, fmt.Sprintf("POST %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n%s%s", c.target(rt, session), auth, framing))
		}
		good := c.bodyFor(t, "mine", "mine-fork")
		none, whole := "\r\n", fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(good), good)
		chunked := fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(good), good)
		long := fmt.Sprintf("Content-Length: %d\r\n\r\n", c.limit+1) // and no body comes
		for _, framing := range []string{none, whole, chunked, long, "Content-Length: 4\r\n\r\njunk", "Content-Length: 0\r\n\r\n"} {
			if c.limit == 0 && framing == long {
				continue
			}
			post("", "mine", framing).failed(t, 401, api.CodeUnauthorized)
			post("wrong", "mine", framing).failed(t, 401, api.CodeUnauthorized)
			post("nothing", "mine", framing).failed(t, 403, api.CodeUnauthorized)
			if rt.NamesIn == "path" || c.everybodys {
				post("for mine", "yours", framing).failed(t, 403, api.CodeUnauthorized)
			}
		}

		if c.limit == 0 {
			require.Equal(t, "/sessions/{id}/import", rt.Pattern, "the only one that takes a body of any length")
			require.NotContains(t, []int{411, 413}, post("for mine", "mine", chunked).status)
			return
		}
		post("anybody", "mine", none).failed(t, 411, api.CodeLengthRequired)
		post("anybody", "mine", chunked).failed(t, 411, api.CodeLengthRequired)
		got := post("anybody", "mine", long).failed(t, 413, api.CodePayloadTooLarge)
		require.Equal(t, map[string]any{"limit": float64(c.limit)}, got.Detail)
	})
	require.Equal(t, before, a.contents())
}
