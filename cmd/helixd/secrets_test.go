package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/cmd/helixd/config"
	"github.com/helixd/helixd/cmd/helixd/internal/flags"
)

// TestSecretsAreNotTold: no token, key, password or header is in a log line, in
// an answer or in what commands print, whatever goes wrong; nor is what was
// said.
func TestSecretsAreNotTold(t *testing.T) {
	t.Parallel()
	const secret = "hunter2"
	refuses := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"error":{"message":"no to `+r.Header.Get("X-Gateway")+`"}}`)
	}))
	t.Cleanup(refuses.Close)
	_, mcp := newMCP(t)
	host := strings.TrimPrefix(refuses.URL, "http://")
	text := fmt.Sprintf(`log: {level: debug}
auth: {tokens: [{token: hunter2-token}, {token: hunter2-other, operations: [status]}]}
nats: {listen: "127.0.0.1:0", user: u, password: hunter2-nats}
tracing: {endpoint: "http://u:hunter2@127.0.0.1:1", headers: {Authorization: hunter2-otlp}}
debug: {pprof: true}
agents:
  fails: {model: {provider: openai, name: m, baseURL: "http://u:hunter2@%[1]s/v1", apiKey: hunter2-key, headers: {X-Gateway: "Basic hunter2-gateway"}, maxRetries: 0}}
  lost: {model: {provider: anthropic, name: m, baseURL: "http://u:hunter2@127.0.0.1:1", apiKey: hunter2-key, maxRetries: 0}}
  calls:
    model: {provider: scripted, script: [{toolCalls: [{name: far, arguments: {say: hunter2-said}}, {name: off, arguments: {}}]}, {text: hunter2-said}]}
    tools:
      far: {http: {url: "http://u:hunter2@%[1]s/", headers: {Authorization: hunter2-header}}}
      off: {http: {url: "http://u:hunter2@127.0.0.1:1/", headers: {Authorization: hunter2-header}}}
    mcp: [{name: m, url: %[2]q, headers: {Authorization: hunter2}}]
`, host, mcp)
	logs := &logBuffer{}
	path := writeConfig(t, text)
	d := serveFile(t, path, logs, nil)
	var told []string
	tell := func(method, target, token, body string) {
		_, answer := ask(t, method, d.url+target, token, "", body)
		told = append(told, answer)
	}
	for _, agent := range []string{"fails", "lost", "calls"} {
		tell(http.MethodPost, "/start", "hunter2-token", `{"sessionId":"`+agent+`","agentType":"`+agent+`","message":"hunter2-said"}`)
		_, stream := ask(t, http.MethodGet, d.url+"/sse?sessionId="+agent, "hunter2-token", "", "") // it ends with the run
		require.NotContains(t, strings.ReplaceAll(stream, "hunter2-said", ""), secret)
		tell(http.MethodPost, "/start", "hunter2-wrong", `{"sessionId":"x","agentType":"calls","message":"hunter2-said"}`)
		tell(http.MethodGet, "/sessions/"+agent, "hunter2-token", "")
	}
	tell(http.MethodGet, "/status?sessionId=calls", "hunter2-wrong", "")
	tell(http.MethodGet, "/sessions", "hunter2-other", "")
	tell(http.MethodGet, "/metrics", "hunter2-token", "")
	tell(http.MethodGet, "/readyz", "", "")
	tell(http.MethodGet, "/debug/pprof/cmdline", "hunter2-token", "")
	tell(http.MethodPost, "/admin/reload", "hunter2-token", "{}")
	rewrite(t, path, strings.NewReplacer("provider: openai", "provider: hunter2", "level: debug", "level: hunter2", "listen: \"127.0.0.1:0\"", "listen: hunter2").Replace(text))
	tell(http.MethodPost, "/admin/reload", "hunter2-token", "{}")
	require.Contains(t, told[len(told)-1], "nats.listen: must be host:port")

	for _, args := range [][]string{{"--config", path, "--config-only"}, {"--nats", "nats://u:hunter2@127.0.0.1:1"}, {"--server", d.url, "--token", "hunter2-token"}} {
		out, err := doctorText(t, t.Context(), time.Now, args...)
		told = append(told, out, fmt.Sprint(err))
	}
	rewrite(t, path, text)
	out, err := doctorText(t, t.Context(), time.Now, "--config", path, "--config-only", "--json")
	told = append(told, out, fmt.Sprint(err))
	for _, what := range []string{"nats: {url: \"nats://u:hunter2@127.0.0.1:1\"}\n", "nats: {url: \"nats://127.0.0.1:1\", user: u, password: hunter2}\n"} {
		other := filepath.Join(t.TempDir(), "helix.yaml")
		require.NoError(t, os.WriteFile(other, []byte("listen: 127.0.0.1:0\n"+what), 0o600))
		c, err := config.Load(other, nil)
		require.NoError(t, err)
		_, err = startDaemon(t.Context(), c, nil, false, flags.NewLogger(logs, config.Log{Level: "debug"}))
		require.Error(t, err)
		told = append(told, err.Error(), c.String())
	}
	require.Contains(t, logs.String(), "model call failed")
	for _, text := range append(told, logs.String()) {
		require.NotContains(t, text, secret)
	}
}
