package httpapi_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/httpapi"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/auth"
	"github.com/helixd/helixd/httpapi/responses"
)

const app = "https://app.example"

// fromPage are the headers that a browser adds for a page of another origin.
func fromPage(origin string, more ...string) []string {
	return append([]string{"Origin", origin, "Sec-Fetch-Site", "cross-site"}, more...)
}

func tokens(o *httpapi.Options) {
	o.Auth = auth.BearerTokens([]auth.Token{{Token: "t0ken", Operations: []string{"*"}, Sessions: []string{"*"}}})
}

func TestValidateOrigin(t *testing.T) {
	for _, origin := range []string{
		"*", app, "http://localhost:3000", "http://127.0.0.1:8080", "http://[::1]:3000", "https://app.example:8443",
		"http://app.example:443", "capacitor://localhost", "https://xn--bcher-kva.example",
	} {
		require.NoError(t, httpapi.ValidateOrigin(origin), origin)
	}
	for _, origin := range []string{
		"", "null", "app.example", "//app.example", "https://", "https:app.example", "https://app.example/", "https://app.example/x",
		"https://app.example?", "https://app.example#", "https://u@app.example", "https://u:p@app.example", "https://app.example:",
		"https://app.example:443", "http://app.example:80", "https://:443", "https://App.example", "HTTPS://app.example",
		"https://*.example", "https://*", "**", "https://bücher.example", "https://app.example ", " https://app.example",
		"https://a,https://b", "https://app.example\n", "https://app%2eexample", "https://app.example:port", "file:///x",
	} {
		require.Error(t, httpapi.ValidateOrigin(origin), origin)
	}
}

func TestOriginsAreChecked(t *testing.T) {
	log := memory.New()
	loop, err := engine.New(log, nil, nil)
	require.NoError(t, err)
	defer loop.Stop()
	o := httpapi.Options{Log: log, Loop: loop, AllowUnauthenticated: true, Origins: []string{app, "https://app.example/"}}
	_, err = httpapi.New(o)
	require.ErrorContains(t, err, `origin "https://app.example/" must be`)
	o.Origins = []string{app, "*"}
	_, err = httpapi.New(o)
	require.ErrorContains(t, err, "needs authentication")
	tokens(&o)
	_, err = httpapi.New(o)
	require.NoError(t, err)
}

// TestPreflight: what pages may ask for, without showing who they are.
func TestPreflight(t *testing.T) {
	a := newAPIOn(t, memory.New(), nil, tokens, func(o *httpapi.Options) { o.Origins = []string{app, "http://localhost:3000"} })
	ask := func(origin, method, headers string) http.Header {
		got := a.request("OPTIONS", "/sessions/s%2F1/chunks", "", "Origin", origin,
			"Access-Control-Request-Method", method, "Access-Control-Request-Headers", headers)
		require.Equal(t, 204, got.status)
		require.Empty(t, got.body)
		require.Contains(t, strings.Join(got.header.Values("Vary"), ","), "Origin")
		return got.header
	}
	all := "authorization,content-type,helix-expected-sequence,idempotency-key,last-event-id,x-existing-message-id,x-helix-agent,x-request-id,x-resume-from-sequence"
	for _, origin := range []string{app, "http://localhost:3000"} {
		for _, method := range []string{"GET", "POST", "DELETE"} {
			h := ask(origin, method, all)
			require.Equal(t, origin, h.Get("Access-Control-Allow-Origin"))
			require.Equal(t, method, h.Get("Access-Control-Allow-Methods"))
			require.Equal(t, all, h.Get("Access-Control-Allow-Headers"))
			require.Equal(t, "600", h.Get("Access-Control-Max-Age"))
			require.Empty(t, h.Get("Access-Control-Allow-Credentials"))
		}
	}
	for _, tc := range [][3]string{
		{"https://evil.example", "POST", "content-type"}, {"https://app.example.evil.example", "POST", ""}, {"http://app.example", "POST", ""},
		{"null", "POST", ""}, {app, "PUT", ""}, {app, "PATCH", ""}, {app, "POST", "cookie"}, {app, "POST", "content-type,x-other"},
	} {
		h := ask(tc[0], tc[1], tc[2])
		require.Empty(t, h.Get("Access-Control-Allow-Origin"), "%v", tc)
		require.Empty(t, h.Get("Access-Control-Allow-Methods"), "%v", tc)
	}
	a.request("OPTIONS", "/start", "").failed(t, 405, api.CodeMethodNotAllowed) // no preflight
}

// TestPreflightOfOpenAI: a page may use OpenAI's SDK, which names its version and platform.
func TestPreflightOfOpenAI(t *testing.T) {
	t.Parallel()
	const headers = "authorization,content-type,idempotency-key,openai-organization,x-stainless-arch,x-stainless-lang,x-stainless-os," +
		"x-stainless-package-version,x-stainless-retry-count,x-stainless-runtime,x-stainless-runtime-version,x-stainless-timeout"
	for _, served := range []bool{true, false} {
		a := newAPIOn(t, memory.New(), nil, tokens, func(o *httpapi.Options) {
			o.Origins = []string{app}
			if served {
				o.Protocols.Responses = &responses.Options{}
			}
		})
		got := a.request("OPTIONS", "/v1/responses", "", "Origin", app, "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", headers)
		require.Equal(t, served, got.header.Get("Access-Control-Allow-Headers") == headers)
	}
}

// TestPagesOfConfiguredOrigins: they can use the server and read every answer;
// others can't.
func TestPagesOfConfiguredOrigins(t *testing.T) {
	t.Parallel()
	a := newAPIOn(t, memory.New(), nil, func(o *httpapi.Options) { o.Origins = []string{app} })
	a.append("s", created("s"), ended("s", `1`))
	chunks := `{"type":"text_delta","agentId":"n","agentType":"w","timestamp":1,"step":1,"delta":"x"}`
	for _, got := range []answer{
		a.get("/status?sessionId=s", fromPage(app)...),
		a.get("/sse?sessionId=s", fromPage(app)...),
		a.get("/status?sessionId=none", fromPage(app)...),
		a.get("/nowhere", fromPage(app)...),
		a.post("/start", "junk", fromPage(app)...),
		a.post("/sessions/n/chunks", chunks, fromPage(app)...),
		a.request("DELETE", "/sessions/s", "", fromPage(app)...),
	} {
		require.NotEqual(t, 403, got.status)
		require.Equal(t, app, got.header.Get("Access-Control-Allow-Origin"), got.body)
		require.Equal(t, "X-Session-Id, X-Request-Id, Retry-After", got.header.Get("Access-Control-Expose-Headers"))
	}
	require.Equal(t, 200, a.get("/status?sessionId=n").status, "the page has appended")
	a.get("/status?sessionId=s").failed(t, 404, api.CodeNotFound) // and erased

	for _, origin := range []string{"https://evil.example", "http://app.example", "https://app.example:8443", "null"} {
		got := a.request("DELETE", "/sessions/n", "", fromPage(origin)...)
		got.failed(t, 403, api.CodeUnauthorized)
		require.Empty(t, got.header.Get("Access-Control-Allow-Origin"))
		got = a.get("/status?sessionId=n", fromPage(origin)...)
		require.Empty(t, got.header.Get("Access-Control-Allow-Origin"), "the browser keeps it from the page")
	}

	none := newAPIOn(t, memory.New(), nil)
	none.request("OPTIONS", "/start", "", fromPage(app, "Access-Control-Request-Method", "POST")...).failed(t, 405, api.CodeMethodNotAllowed)
	got := none.post("/start", "junk", fromPage(app)...)
	got.failed(t, 403, api.CodeUnauthorized)
	require.Empty(t, got.header.Get("Access-Control-Allow-Origin"))
}

// TestEveryOrigin: any page may use the server with its own token. Credentials that a
// browser adds by itself do not count, even if a server would accept them as
// authentication.
func TestEveryOrigin(t *testing.T) {
	a := newAPIOn(t, memory.New(), nil, func(o *httpapi.Options) {
		o.Origins = []string{"*"}
		bearer := auth.BearerTokens([]auth.Token{{Token: "t0ken", Operations: []string{"*"}, Sessions: []string{"*"}}})
		cookie := func(r *http.Request, _ auth.Operation, _ string) error {
			if _, err := r.Cookie("login"); errors.Is(err, http.ErrNoCookie) {
				return auth.ErrUnauthorized
			}
			return nil
		}
		o.Auth = auth.AnyOf(bearer, cookie)
	})
	a.append("s", created("s"), ended("s", `1`))
	page := fromPage("https://any.example")
	got := a.get("/status?sessionId=s", append(page, "Authorization", "Bearer t0ken")...)
	require.Equal(t, 200, got.status)
	require.Equal(t, "*", got.header.Get("Access-Control-Allow-Origin"))
	a.post("/start", "junk", append(page, "Authorization", "Bearer t0ken")...).failed(t, 400, api.CodeInvalidRequest)
	a.post("/start", "junk", append(page, "Authorization", "Bearer wrong")...).failed(t, 401, api.CodeUnauthorized)
	got = a.post("/start", "junk", page...)
	got.failed(t, 401, api.CodeUnauthorized)
	require.Equal(t, "*", got.header.Get("Access-Control-Allow-Origin"), "the page sees that it has to sign in")

	a.post("/start", "junk", "Cookie", "login=1", "Origin", a.http.URL).failed(t, 400, api.CodeInvalidRequest) // same origin
	a.post("/start", "junk", append(page, "Cookie", "login=1")...).failed(t, 401, api.CodeUnauthorized)
	a.request("DELETE", "/sessions/s", "", append(page, "Cookie", "login=1")...).failed(t, 401, api.CodeUnauthorized)
	require.Equal(t, 200, a.get("/status?sessionId=s", "Cookie", "login=1").status)
}
