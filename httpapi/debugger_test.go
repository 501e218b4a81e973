package httpapi_test

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/httpapi"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/auth"
	"github.com/helixd/helixd/httpapi/debugger"
)

// TestDebuggerPage: wherever the server is mounted, the page finds its files,
// and a browser may run nothing but those.
func TestDebuggerPage(t *testing.T) {
	t.Parallel()
	a := newAPIOn(t, memory.New(), nil)
	mux := http.NewServeMux()
	mux.Handle("/agents/", http.StripPrefix("/agents", a.srv))
	below := httptest.NewServer(mux)
	t.Cleanup(below.Close)
	for _, base := range []string{a.http.URL + "/", below.URL + "/agents/"} {
		a.http.URL = strings.TrimSuffix(base, "/")
		page := a.get("/")
		require.Equal(t, 200, page.status, page.body)
		require.Equal(t, "text/html; charset=utf-8", page.header.Get("Content-Type"))
		require.Equal(t, debugger.Policy, page.header.Get("Content-Security-Policy"))
		require.Equal(t, "nosniff", page.header.Get("X-Content-Type-Options"))
		links := regexp.MustCompile(`(?:href|src)="([^"#]+)"`).FindAllStringSubmatch(page.body, -1)
		require.NotEmpty(t, links)
		for _, link := range links {
			require.True(t, strings.HasPrefix(link[1], "debugger/"), "%s: relative to the page, and of this server", link[1])
			got := a.get("/" + link[1])
			require.Equal(t, 200, got.status, link[1])
			require.NotEmpty(t, got.header.Get("Content-Type"), link[1])
			require.Equal(t, debugger.Policy, got.header.Get("Content-Security-Policy"))
		}
		head := a.request("HEAD", "/", "")
		require.Equal(t, page.header.Get("ETag"), head.header.Get("ETag"))
		require.Empty(t, head.body)
	}
}

// TestDebuggerIsSelfContained: the page has no script or style within, and no
// module of it is loaded from elsewhere.
func TestDebuggerIsSelfContained(t *testing.T) {
	t.Parallel()
	page := string(debugger.Page().Content)
	require.NotRegexp(t, `(?i)<script>|<style|\son\w+=|\sstyle=|javascript:`, page)
	names := regexp.MustCompile(`debugger/([\w.]+)`).FindAllStringSubmatch(page, -1)
	seen := map[string]bool{}
	for len(names) > 0 {
		name := names[0][1]
		names = names[1:]
		if seen[name] {
			continue
		}
		seen[name] = true
		f, ok := debugger.Asset(name)
		require.True(t, ok, name)
		require.NotEmpty(t, f.ContentType, name)
		text := string(f.Content)
		if strings.HasSuffix(name, ".css") {
			require.NotRegexp(t, `@import|url\(`, text, name)
			continue
		}
		require.NotRegexp(t, `\binnerHTML\b|\bouterHTML\b|insertAdjacentHTML|document\.write|\beval\(|new Function\b`, text, name)
		for _, m := range regexp.MustCompile(`(?m)(?:from|import) '([^']+)'`).FindAllStringSubmatch(text, -1) {
			require.Regexp(t, `^\./[\w.]+\.js$`, m[1], name)
			names = append(names, []string{"", strings.TrimPrefix(m[1], "./")})
		}
	}
}

// TestDebuggerKnowsTheTypes: the page's lists of types are those of the packages that define them.
func TestDebuggerKnowsTheTypes(t *testing.T) {
	t.Parallel()
	words := func(asset, pattern string) (all []string) {
		f, ok := debugger.Asset(asset)
		require.True(t, ok, asset)
		list := regexp.MustCompile(pattern).FindSubmatch(f.Content)
		require.NotNil(t, list, pattern)
		for _, m := range regexp.MustCompile(`'(\w+)'`).FindAllSubmatch(list[1], -1) {
			all = append(all, string(m[1]))
		}
		return all
	}
	set := func(name string) []string { return words("conversation.js", `const `+name+` = new Set\(\[([^\]]+)\]`) }
	var all, stream, lifecycle []string
	for _, typ := range eventlog.FactTypes() {
		e := eventlog.Envelope{Kind: eventlog.KindFact, Type: typ}
		if eventlog.ScopeAll.Truncates(e) {
			all = append(all, typ)
		}
		if eventlog.ScopeStream.Truncates(e) {
			stream = append(stream, typ)
		}
	}
	for _, typ := range eventlog.ChunkTypes() {
		if !eventlog.ScopeContent.Truncates(eventlog.Envelope{Kind: eventlog.KindChunk, Type: typ}) {
			lifecycle = append(lifecycle, typ)
		}
	}
	require.ElementsMatch(t, lifecycle, set("life"))
	require.ElementsMatch(t, all, set("mortal"))
	require.ElementsMatch(t, stream, set("ofStream"))
	f, _ := debugger.Asset("spans.js")
	pauses := regexp.MustCompile(`const pauses = \{(.+)\}`).FindSubmatch(f.Content)
	require.NotNil(t, pauses)
	for _, status := range []fact.RunStatus{fact.RunClientTool, fact.RunChildren, fact.RunStepPartial} {
		require.Contains(t, string(pauses[1]), " "+strings.TrimPrefix(string(status), "suspended_")+": ")
	}
}

// TestDebuggerIsKept: a browser that has a file receives only the status that it is
// current.
func TestDebuggerIsKept(t *testing.T) {
	a := newAPIOn(t, memory.New(), nil)
	for _, target := range []string{"/", "/debugger/app.js"} {
		tag := a.get(target).header.Get("ETag")
		require.NotEmpty(t, tag)
		for _, given := range []string{tag, "W/" + tag, `"x", ` + tag, "*"} {
			got := a.request("GET", target, "", "If-None-Match", given)
			require.Equal(t, 304, got.status, given)
			require.Empty(t, got.body)
		}
		require.Equal(t, 200, a.request("GET", target, "", "If-None-Match", `"x"`).status)
	}
	for _, other := range []string{"/debugger/x%2Fapp.js", "/debugger/index.html", "/debugger/none.js"} {
		require.Equal(t, 404, a.get(other).status, other)
	}
}

// TestDebuggerAsksForAToken: who is not known gets the page and nothing else,
// and who is known and may not use it gets nothing.
func TestDebuggerAsksForAToken(t *testing.T) {
	a := newAPIOn(t, memory.New(), nil, func(o *httpapi.Options) {
		o.Auth = auth.BearerTokens([]auth.Token{
			{Token: "all", Operations: []string{"*"}, Sessions: []string{"*"}},
			{Token: "reader", Operations: []string{"records"}, Sessions: []string{"*"}},
		})
	})
	want := a.get("/", bearer("all")...)
	require.Equal(t, 200, want.status)
	for _, header := range [][]string{nil, bearer("wrong"), {"If-None-Match", want.header.Get("ETag")}} {
		got := a.get("/", header...)
		require.Equal(t, 401, got.status)
		require.Equal(t, "Bearer", got.header.Get("WWW-Authenticate"))
		require.Equal(t, want.body, got.body)
	}
	a.get("/", bearer("reader")...).failed(t, 403, api.CodeUnauthorized)
	require.Equal(t, 200, a.get("/debugger/app.js").status)
	require.Contains(t, httpapi.Operations(), auth.OpDebugger)
}
