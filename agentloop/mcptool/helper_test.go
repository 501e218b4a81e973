package mcptool_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/mcptool"
	"github.com/helixd/helixd/integration/testkit"
)

const patience = 2 * time.Minute

// waitForFile waits until another process has made a file.
func waitForFile(ctx context.Context, path string) {
	for ctx.Err() == nil {
		if _, err := os.Stat(path); err == nil {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// stdio is a server that is this test binary, and the folder it writes to.
func stdio(t *testing.T) (mcptool.Server, string) {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	dir := t.TempDir()
	return mcptool.Server{Name: "s", Command: []string{exe}, Env: map[string]string{serverDir: dir}}, dir
}

// web is an HTTP server whose MCP handler can be exchanged, as by a restart.
type web struct {
	*httptest.Server
	handler atomic.Pointer[http.Handler]
}

func newWeb(t *testing.T, s *mcp.Server, o *mcp.StreamableHTTPOptions) *web {
	t.Helper()
	w := &web{}
	w.serve(t, s, o)
	w.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		(*w.handler.Load()).ServeHTTP(rw, r)
	}))
	t.Cleanup(w.Server.Close)
	return w
}

// serve exchanges the handler; the sessions of the former one are unknown to
// the new one.
func (w *web) serve(t *testing.T, s *mcp.Server, o *mcp.StreamableHTTPOptions) {
	var h http.Handler = mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, o)
	w.handler.Store(&h)
	t.Cleanup(func() {
		for session := range s.Sessions() {
			session.Close()
		}
	})
}

// eachTransport runs a test over every way to a server.
func eachTransport(t *testing.T, test func(t *testing.T, server mcptool.Server, dir string)) {
	t.Run("stdio", func(t *testing.T) {
		server, dir := stdio(t)
		test(t, server, dir)
	})
	for name, o := range map[string]*mcp.StreamableHTTPOptions{
		"http with sessions": {},
		"http with JSON":     {JSONResponse: true},
		"http stateless":     {Stateless: true, PropagateRequestCancellation: true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			w := newWeb(t, newServer(dir), o)
			test(t, mcptool.Server{Name: "s", URL: w.URL}, dir)
		})
	}
}

func open(t *testing.T, server mcptool.Server, o *mcptool.Options) *mcptool.Client {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c, err := mcptool.Open(ctx, server, o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

func tool(t *testing.T, c *mcptool.Client, name string) agentloop.Tool {
	t.Helper()
	for _, tool := range c.Tools() {
		if tool.Name == name {
			return tool
		}
	}
	require.Fail(t, "no such tool", name)
	return agentloop.Tool{}
}

// call calls a tool and returns its result as the log would have it.
func call(t *testing.T, ctx context.Context, c *mcptool.Client, name, args string) (string, error) {
	t.Helper()
	result, err := tool(t, c, name).Execute(ctx, &agentloop.Call{ID: "c1", IdempotencyKey: "s:r:c1"}, json.RawMessage(args))
	if err != nil {
		return "", err
	}
	raw, err := json.Marshal(result)
	require.NoError(t, err)
	return string(raw), nil
}

// pid calls echo and returns the server's process.
func pid(t *testing.T, c *mcptool.Client) int {
	t.Helper()
	raw, err := call(t, t.Context(), c, "s_echo", `{"text":"x"}`)
	require.NoError(t, err)
	var result struct{ Pid int }
	require.NoError(t, json.Unmarshal([]byte(raw), &result))
	return result.Pid
}

func content(dir, file string) string {
	raw, _ := os.ReadFile(filepath.Join(dir, file))
	return string(raw)
}

func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	require.Eventually(t, f, patience, time.Millisecond, what)
}

// logs is what a logger has written.
type logs struct{ testkit.Log }

func (l *logs) contain(s string) bool { return strings.Contains(l.String(), s) }

func (l *logs) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }
