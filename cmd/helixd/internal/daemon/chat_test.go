package daemon

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/cmd/helixd/config"
	"github.com/helixd/helixd/cmd/helixd/internal/agentconfig"
)

// startWith runs a daemon until the test ends, and returns its URL.
func startWith(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "helix.yaml")
	text = "listen: 127.0.0.1:0\ndurability: interval=1s\nauth: {allowUnauthenticated: true}\n" + text
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	c, err := config.Load(path, nil)
	require.NoError(t, err)
	c.DataDir = t.TempDir()
	agents, err := agentconfig.Agents(c)
	require.NoError(t, err)
	d, err := Start(t.Context(), c, agents, false, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- d.Run(ctx, nil) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-stopped)
	})
	return d.URL
}

func post(t *testing.T, url, body string) (status int, answer string) {
	t.Helper()
	resp, err := http.Post(url, "application/json", strings.NewReader(body))
	require.NoError(t, err)
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(raw)
}

const hello = `{"id":"s","trigger":"submit-message","messages":[{"id":"u","role":"user","parts":[{"type":"text","text":"hi"}]}]}`

// TestDaemonChat: the keys of chat reach the server.
func TestDaemonChat(t *testing.T) {
	t.Parallel()
	const agents = `
agents:
  a: {model: {provider: scripted, script: [{text: I am a}]}}
  b:
    model: {provider: scripted, script: [{toolCalls: [{id: c, name: locate, arguments: {}}]}, {text: I am b}]}
    tools: {locate: {client: true}}
`
	const submit = `{"kind":"client-tool-result","toolCallId":"c","result":1}`
	url := startWith(t, agents)
	status, answer := post(t, url+"/chat", hello)
	require.Equal(t, http.StatusBadRequest, status, answer)
	require.Contains(t, answer, "agentType", "there is no default agent")

	url = startWith(t, "chat: {defaultAgent: b}\n"+agents)
	status, answer = post(t, url+"/chat", hello)
	require.Equal(t, http.StatusOK, status, answer)
	require.NotContains(t, answer[strings.Index(answer, `"finish"`):], "messageId", "strict parts")
	status, answer = post(t, url+"/chat/s/submit-tool-result", submit)
	require.Equal(t, http.StatusOK, status, answer)
	require.Equal(t, "completed", settled(t, url))

	url = startWith(t, "chat: {defaultAgent: b, autoResume: false, contentReplay: false, strictParts: false}\n"+agents)
	status, answer = post(t, url+"/chat", hello)
	require.Equal(t, http.StatusOK, status, answer)
	require.Contains(t, answer[strings.Index(answer, `"finish"`):], "messageId")
	status, answer = post(t, url+"/chat/s/submit-tool-result", submit)
	require.Equal(t, http.StatusOK, status, answer)
	require.Equal(t, "paused", settled(t, url))

	status, answer = post(t, startWith(t, "")+"/chat", hello)
	require.Equal(t, http.StatusNotImplemented, status, answer)
}

// settled waits for the session's stream to end or wait, and returns its
// status.
func settled(t *testing.T, url string) string {
	t.Helper()
	resp, err := http.Get(url + "/sse?sessionId=s")
	require.NoError(t, err)
	_, err = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	require.NoError(t, err)
	resp, err = http.Get(url + "/status?sessionId=s")
	require.NoError(t, err)
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(raw), `"status":"`)
	status, _, _ := strings.Cut(rest, `"`)
	return status
}

// TestClientToolDeadline: a client tool waits without a deadline unless the file
// has one; 0s says that there is none.
func TestClientToolDeadline(t *testing.T) {
	t.Parallel()
	for timeout, deadline := range map[string]bool{"": false, ", timeout: 0s": false, ", timeout: 1h": true} {
		url := startWith(t, `
agents:
  b:
    model: {provider: scripted, script: [{toolCalls: [{id: c, name: locate, arguments: {}}]}, {text: done}]}
    tools: {locate: {client: true`+timeout+`}}
`)
		status, answer := post(t, url+"/chat", hello)
		require.Equal(t, http.StatusOK, status, answer)
		_, session := ask(t, http.MethodGet, url+"/sessions/s", "", "", "")
		require.Contains(t, session, `"toolCallId":"c"`)
		require.Equal(t, deadline, strings.Contains(session, `"deadline"`), session)
	}
}
