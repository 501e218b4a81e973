package daemon

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/cmd/helixd/config"
	"github.com/helixd/helixd/cmd/helixd/internal/clitest"
	"github.com/helixd/helixd/cmd/helixd/internal/flags"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/integration/testkit"
)

// logBuffer keeps what a process logs.
type logBuffer struct{ testkit.Log }

// line returns the first JSON line with the message.
func (l *logBuffer) line(t *testing.T, msg string) map[string]any {
	t.Helper()
	var found map[string]any
	require.Eventually(t, func() bool {
		for text := range strings.Lines(l.String()) {
			var line map[string]any
			require.NoError(t, json.Unmarshal([]byte(text), &line), "every line is JSON: %s", text)
			if line["msg"] == msg {
				found = line
				return true
			}
		}
		return false
	}, time.Minute, 10*time.Millisecond, "nothing is logged of %q", msg)
	return found
}

// ask sends a request with a token and a request id, and returns the answer.
func ask(t *testing.T, method, url, token, id, body string) (status int, answer string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	if id != "" {
		req.Header.Set("X-Request-Id", id)
	}
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(raw)
}

// TestLogLinesHaveKeys: lines of a run and of a request say which it was.
func TestLogLinesHaveKeys(t *testing.T) {
	t.Parallel()
	logs := &logBuffer{}
	d := serveFile(t, clitest.Config(t, `
log: {level: debug, format: json}
auth: {tokens: [{token: t0ken}]}
agents:
  asks:
    model: {provider: scripted, script: [{toolCalls: [{id: c, name: locate, arguments: {}}]}, {text: done}]}
    tools: {locate: {client: true}}
  fails:
    model: {provider: openai, name: m, baseURL: "http://127.0.0.1:1/v1", maxRetries: 0}
`), logs, nil)
	var started struct{ RunID string }
	start := func(agent string) string {
		status, answer := ask(t, http.MethodPost, d.URL+"/start", "t0ken", "", `{"sessionId":"`+agent+`","agentType":"`+agent+`","message":"go"}`)
		require.Equal(t, http.StatusOK, status, answer)
		require.NoError(t, json.Unmarshal([]byte(answer), &started))
		return started.RunID
	}
	run := start("asks")
	line := logs.line(t, "client_tool.suspended")
	require.Equal(t, []any{"asks", run, "c", "locate"}, []any{line[eventlog.LogSession], line[eventlog.LogRun], line[eventlog.LogCall], line[eventlog.LogTool]})

	status, answer := ask(t, http.MethodPost, d.URL+"/submit-tool-result", "t0ken", "my-request", `{"sessionId":"asks","kind":"client-tool-result","toolCallId":"c","result":1}`)
	require.Equal(t, http.StatusOK, status, answer)
	line = logs.line(t, "client_tool.submitted")
	require.Equal(t, []any{"asks", run, "my-request"}, []any{line[eventlog.LogSession], line[eventlog.LogRun], line[eventlog.LogRequestID]})

	run = start("fails")
	line = logs.line(t, "model call failed")
	require.Equal(t, []any{"fails", run}, []any{line[eventlog.LogSession], line[eventlog.LogRun]})

	status, _ = ask(t, http.MethodGet, d.URL+"/sessions/asks/state", "wrong", "refused", "")
	require.Equal(t, http.StatusUnauthorized, status)
	line = logs.line(t, "request refused")
	require.Equal(t, []any{"refused", "/sessions/{id}/state"}, []any{line[eventlog.LogRequestID], line["route"]})
}

// serveFile runs helixd serve until the test ends. Hangups, which may be nil,
// stand for SIGHUP.
func serveFile(t *testing.T, path string, logs io.Writer, hangups <-chan os.Signal, args ...string) *Daemon {
	t.Helper()
	var c struct {
		flags.Log
		Serve ServeCommand `cmd:""`
	}
	parser, err := kong.New(&c)
	require.NoError(t, err)
	_, err = parser.Parse(append([]string{"serve", "--config", path}, args...))
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	t.Cleanup(stop)
	p := &flags.Process{Ctx: ctx, Stderr: logs, Logs: c.Log}
	cfg, agents, err := c.Serve.Configure(p)
	require.NoError(t, err)
	d, err := Start(ctx, cfg, agents, false, p.Log)
	require.NoError(t, err)
	d.ReadBy(func() (*config.Config, []agentloop.Agent, error) { return c.Serve.reread(c.Log) })
	stopped := make(chan error, 1)
	go func() { stopped <- d.Run(ctx, hangups) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-stopped)
	})
	return d
}
