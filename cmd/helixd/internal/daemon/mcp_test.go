package daemon

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	neturl "net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/cmd/helixd/config"
	"github.com/helixd/helixd/cmd/helixd/internal/agentconfig"
	"github.com/helixd/helixd/integration/testkit"
)

// newMCP serves an MCP tool "hello" to those who know the key.
func newMCP(t *testing.T) (*mcp.Server, string) {
	t.Helper()
	s := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	type in struct {
		Name string `json:"name"`
	}
	mcp.AddTool(s, &mcp.Tool{Name: "hello"}, func(_ context.Context, _ *mcp.CallToolRequest, i in) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "hello, " + i.Name}}}, nil, nil
	})
	h := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "hunter2" {
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(web.Close)
	return s, web.URL
}

// startWithMCP starts a daemon whose agent "a" calls s_hello once and has the
// MCP servers, YAML that begins on line 11.
func startWithMCP(t *testing.T, tools, servers string) (*Daemon, string, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "helix.yaml")
	require.NoError(t, os.WriteFile(path, []byte(`listen: 127.0.0.1:0
durability: interval=1s
auth: {allowUnauthenticated: true}
agents:
  a:
    model:
      provider: scripted
      script: [{toolCalls: [{name: s_hello, arguments: {name: you}}]}, {text: done}]
    tools: {`+tools+`}
    mcp:
`+servers), 0o600))
	c, err := config.Load(path, func(name string) (string, bool) { return "hunter2", name == "MCP_KEY" })
	require.NoError(t, err)
	c.DataDir = t.TempDir()
	agents, err := agentconfig.Agents(c)
	require.NoError(t, err)
	d, err := (&Daemon{openWithin: openWithin}).started(t.Context(), c, agents, false, slog.New(slog.DiscardHandler))
	return d, path, err
}

// openWithin is less than a slow MCP server needs.
const openWithin = 5 * time.Second

// TestMCPServersHaveTheirOwnTime: they are opened at the same time, and the time that the log
// may take to open is not theirs.
func TestMCPServersHaveTheirOwnTime(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	_, url := newMCP(t)
	target, err := neturl.Parse(url)
	require.NoError(t, err)
	const n = 3
	var contacted atomic.Int32
	all, ended := make(chan struct{}), make(chan struct{})
	servers := ""
	for i := range n {
		first := sync.OnceFunc(func() {
			if contacted.Add(1) == n {
				time.AfterFunc(openWithin, func() { close(all) })
			}
		})
		proxy := httputil.NewSingleHostReverseProxy(target)
		slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			first()
			select {
			case <-all:
				proxy.ServeHTTP(w, r)
			case <-ended:
			}
		}))
		t.Cleanup(slow.Close)
		servers += fmt.Sprintf("      - {name: s%d, url: %q, headers: {Authorization: env:MCP_KEY}, connectTimeout: 20s}\n", i, slow.URL)
	}
	t.Cleanup(func() { close(ended) }) // before the servers close
	d, _, err := startWithMCP(t, "", servers)
	require.NoError(t, err)
	d.close()
}

func TestAnAgentCallsAnMCPTool(t *testing.T) {
	t.Parallel()
	server, url := newMCP(t)
	d, _, err := startWithMCP(t, "", "      - {name: s, url: \""+url+"\", headers: {Authorization: env:MCP_KEY}}\n")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- d.Run(ctx, nil) }()

	resp, err := http.Post(d.URL+"/start", "application/json", strings.NewReader(`{"sessionId":"x","agentType":"a","message":"go"}`))
	require.NoError(t, err)
	resp.Body.Close()
	require.Equal(t, http.StatusOK, resp.StatusCode)
	reading, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	sse, err := http.NewRequestWithContext(reading, http.MethodGet, d.URL+"/sse?sessionId=x", nil)
	require.NoError(t, err)
	resp, err = http.DefaultClient.Do(sse)
	require.NoError(t, err)
	stream, err := io.ReadAll(resp.Body) // it ends with the run
	resp.Body.Close()
	require.NoError(t, err)
	require.Contains(t, string(stream), `"result":"hello, you"`)

	require.Len(t, slices.Collect(server.Sessions()), 1)
	stop()
	require.NoError(t, <-stopped)
	require.Empty(t, slices.Collect(server.Sessions()), "the session ends with the daemon")
}

func TestMCPServersThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	_, url := newMCP(t)
	entry := func(name string) string {
		return fmt.Sprintf("      - {name: %s, url: %q, headers: {Authorization: env:MCP_KEY}}\n", name, url)
	}
	for name, tt := range map[string]struct{ tools, servers, want string }{
		"no command": {"", "      - {name: s, command: [no-such-command]}\n", `:11: agents.a.mcp[0]: mcptool: server s: exec: "no-such-command"`},
		"locked":     {"", entry("s") + "      - {name: other, url: \"" + url + "?key=hunter2\"}\n", ":12: agents.a.mcp[1]: mcptool: server other: "},
		"own tool": {
			"s_hello: {http: {url: 'http://h'}}", entry("s"),
			":11: agents.a.mcp[0]: its tool s_hello has the same name as tools.s_hello",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, path, err := startWithMCP(t, tt.tools, tt.servers)
			require.ErrorContains(t, err, path+tt.want)
			require.NotContains(t, err.Error(), "hunter2")
		})
	}
}

// TestAnMCPToolWaitsForApproval: a pattern of helix.yaml guards the tools of an MCP
// server; one that guards nothing is refused with its file and line.
func TestAnMCPToolWaitsForApproval(t *testing.T) {
	t.Parallel()
	_, url := newMCP(t)
	server := "      - {name: s, url: \"" + url + "\", headers: {Authorization: env:MCP_KEY}}\n"
	d, _, err := startWithMCP(t, "", server+"    requireApproval: {\"s_*\": true}\n")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- d.Run(ctx, nil) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-stopped)
	})
	status, answer := post(t, d.URL+"/start", `{"sessionId":"s","agentType":"a","message":"go"}`)
	require.Equal(t, http.StatusOK, status, answer)
	require.Equal(t, "paused", settled(t, d.URL))
	_, session := ask(t, http.MethodGet, d.URL+"/sessions/s", "", "", "")
	require.Contains(t, session, `"kind":"approval"`)
	_, call, _ := strings.Cut(session, `"toolCallId":"`)
	call, _, _ = strings.Cut(call, `"`)
	status, answer = post(t, d.URL+"/chat/s/submit-tool-result", `{"kind":"approval-response","toolCallId":"`+call+`","approved":true}`)
	require.Equal(t, http.StatusOK, status, answer)
	require.Equal(t, "completed", settled(t, d.URL))
	_, stream := ask(t, http.MethodGet, d.URL+"/sse?sessionId=s", "", "", "")
	require.Contains(t, stream, "hello, you")

	_, path, err := startWithMCP(t, "", server+"    requireApproval: {\"t_*\": true}\n")
	require.EqualError(t, err, path+":12: agents.a.requireApproval.t_*: it matches none of the agent's tools: s_hello")
}
