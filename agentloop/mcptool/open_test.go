package mcptool_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/mcptool"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/eventlog/memory"
)

// offer is a server with tools of the names.
func offer(names ...string) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	for _, name := range names {
		s.AddTool(&mcp.Tool{Name: name, InputSchema: anyObject}, nil)
	}
	return s
}

func TestOpenFails(t *testing.T) {
	exe, err := os.Executable()
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	nobody := l.Addr().String()
	require.NoError(t, l.Close())
	server := func(name string, names ...string) mcptool.Server {
		return mcptool.Server{Name: name, URL: newWeb(t, offer(names...), nil).URL}
	}
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(dir+"/broken", nil, 0o600))
	locked := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "no", http.StatusUnauthorized)
	}))
	defer locked.Close()

	for name, tc := range map[string]struct {
		server mcptool.Server
		want   []string
	}{
		"name":       {mcptool.Server{Name: "a b", URL: "http://h"}, []string{`server "a b"`, "name must match"}},
		"both":       {mcptool.Server{Name: "s", URL: "http://h", Command: []string{"x"}}, []string{"either a command or a URL"}},
		"neither":    {mcptool.Server{Name: "s"}, []string{"either a command or a URL"}},
		"no command": {mcptool.Server{Name: "s", Command: []string{"no-such-command"}}, []string{"server s", "no-such-command", "not found"}},
		"it exits": {
			mcptool.Server{Name: "s", Command: []string{exe}, Env: map[string]string{serverDir: dir}},
			[]string{"server s", "(the command: exit status 7)"},
		},
		"no MCP":    {mcptool.Server{Name: "s", Command: []string{"echo", "hello"}}, []string{"server s", "(the command: exit status 0)"}},
		"nobody":    {mcptool.Server{Name: "s", URL: "http://user:hunter2@" + nobody + "/?key=hunter2"}, []string{"connection refused"}},
		"locked":    {mcptool.Server{Name: "s", URL: locked.URL + "/?key=hunter2"}, []string{"Unauthorized"}},
		"collision": {server("s", "a.b", "a/b"), []string{`tools "a.b" and "a/b" would both be named s_a_b`}},
		"reserved":  {server("subagent", "_x"), []string{`tool "_x" would be named subagent__x`, "reserved"}},
		"internal":  {server("__", "x"), []string{`tool "x" would be named ___x`, "reserved"}},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			_, err := mcptool.Open(ctx, tc.server, nil)
			for _, want := range tc.want {
				require.ErrorContains(t, err, want)
			}
			require.NotContains(t, err.Error(), "hunter2")
			require.NotContains(t, err.Error(), "http://")
		})
	}
}

func TestOpenDoesNotWaitForEver(t *testing.T) {
	hangs := make(chan struct{})
	w := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if body, _ := io.ReadAll(r.Body); !strings.Contains(string(body), "notifications/") {
			<-hangs
		}
		rw.WriteHeader(http.StatusAccepted)
	}))
	defer w.Close()
	defer close(hangs)
	for _, server := range []mcptool.Server{
		{Name: "s", URL: w.URL}, {Name: "s", Command: []string{"sleep", "1000"}},
	} {
		_, err := mcptool.Open(t.Context(), server, &mcptool.Options{ConnectTimeout: 20 * time.Millisecond, StopTimeout: 10 * time.Millisecond})
		require.ErrorContains(t, err, "it did not answer in time")
	}
}

func TestNamesAreMadeToFit(t *testing.T) {
	long := strings.Repeat("x", 70)
	c := open(t, mcptool.Server{Name: "s", URL: newWeb(t, offer("a.é", long+"1", long+"2"), nil).URL}, nil)
	var names []string
	for _, tool := range c.Tools() {
		names = append(names, tool.Name)
		require.LessOrEqual(t, len(tool.Name), 64)
	}
	require.Contains(t, names, "s_a__")
	require.NotEqual(t, names[1], names[2])
}

// A schema that we can't use is no reason to lose the tool.
func TestASchemaThatCannotBeUsed(t *testing.T) {
	for name, schema := range map[string]string{
		"pattern":   `{"properties":{"q":{"pattern":"^(?!x)","type":"string"}},"type":"object"}`,
		"reference": `{"$ref":"https://example.org/schema","type":"object"}`,
		"endless":   `{"$ref":"#","type":"object"}`,
		"draft":     `{"$schema":"http://json-schema.org/draft-04/schema#","type":"object"}`,
	} {
		t.Run(name, func(t *testing.T) {
			s := offer()
			s.AddTool(&mcp.Tool{Name: "t", Description: "Does it.", InputSchema: json.RawMessage(schema)},
				func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
					return &mcp.CallToolResult{}, nil
				})
			var log logs
			c := open(t, mcptool.Server{Name: "s", URL: newWeb(t, s, nil).URL}, &mcptool.Options{Logger: log.logger()})
			require.Equal(t, "Does it.\n\nJSON Schema of the arguments: "+schema, c.Tools()[0].Description)
			require.True(t, log.contain("tool=t"), log.String())
			loop, err := engine.New(memory.New(), []agentloop.Agent{{
				Name: "a", Model: scripted.New([]scripted.Turn{{Text: "x"}}, nil), Tools: c.Tools(),
			}}, nil)
			require.NoError(t, err)
			loop.Stop()
			_, err = call(t, t.Context(), c, "s_t", `{"q":"x"}`)
			require.NoError(t, err)
		})
	}
}

func TestTheEnvironmentOfACommand(t *testing.T) {
	t.Setenv("HELIX_SECRET", "hunter2")
	t.Setenv("LANG", "C.UTF-8")
	server, dir := stdio(t)
	server.Env["TOKEN"] = "t0ken"
	server.Env["HOME"] = "/elsewhere"
	var log logs
	c := open(t, server, &mcptool.Options{Logger: log.logger()})
	raw, err := call(t, t.Context(), c, "s_environment", `{}`)
	require.NoError(t, err)
	var text string
	require.NoError(t, json.Unmarshal([]byte(raw), &text))
	require.ElementsMatch(t, []string{
		"PATH=" + os.Getenv("PATH"), "HOME=/elsewhere", "LANG=C.UTF-8", "TOKEN=t0ken", serverDir + "=" + dir,
	}, strings.Split(text, "\n"))
	require.NoError(t, c.Close())
	require.NotContains(t, log.String(), "t0ken")
	require.NotContains(t, log.String(), "a line for stderr")
}

func TestHeaders(t *testing.T) {
	dir := t.TempDir()
	w := newWeb(t, newServer(dir), nil)
	inner := *w.handler.Load()
	checked := http.Handler(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer hunter2" || !strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") && r.Method == http.MethodPost {
			http.Error(rw, "no", http.StatusUnauthorized)
			return
		}
		inner.ServeHTTP(rw, r)
	}))
	w.handler.Store(&checked)
	headers := map[string]string{"Authorization": "Bearer hunter2", "Content-Type": "text/plain"}
	var log logs
	c := open(t, mcptool.Server{Name: "s", URL: w.URL, Headers: headers}, &mcptool.Options{Logger: log.logger()})
	pid(t, c)

	// They go nowhere else.
	reached := make(chan http.Header, 100)
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { reached <- r.Header }))
	defer elsewhere.Close()
	redirect := http.Handler(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	w.handler.Store(&redirect)
	_, err := call(t, t.Context(), c, "s_text", `{}`)
	require.EqualError(t, err, "the MCP server answered with status 307 Temporary Redirect")
	require.Empty(t, reached)
	require.NotContains(t, log.String(), "hunter2")
}
