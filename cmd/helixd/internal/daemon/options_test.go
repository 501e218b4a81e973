package daemon

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/cmd/helixd/config"
	"github.com/helixd/helixd/cmd/helixd/internal/clitest"
)

// TestChatOptions: what helix.yaml says of chat streams is what clients get.
func TestChatOptions(t *testing.T) {
	t.Parallel()
	const agents = `
agents:
  a: {model: {provider: scripted, script: [{reasoning: Hm., text: I am a.}]}}
`
	status, plain := post(t, startWith(t, agents)+"/chat", hello)
	require.Equal(t, http.StatusOK, status, plain)
	require.Contains(t, plain, `{"type":"start","messageId":"msg-1"}`)
	require.Contains(t, plain, `"reasoning-delta"`)
	require.NotContains(t, plain, "checkpoint")

	url := startWith(t, `
chat:
  startMetadata: {shop: oslo}
  finishMetadata: {shop: closed}
  messageId: "{role}-{index}"
  hideChunks: [thinking]
  exposeCheckpoints: true
  resyncOnResume: false
`+agents)
	status, answer := post(t, url+"/chat", hello)
	require.Equal(t, http.StatusOK, status, answer)
	require.Contains(t, answer, `{"type":"start","messageId":"assistant-1","messageMetadata":{"shop":"oslo"}}`)
	require.Contains(t, answer, `"messageMetadata":{"shop":"closed"}`)
	require.Contains(t, answer, "I am a.")
	require.Contains(t, answer, "data-checkpoint-created")
	require.NotContains(t, answer, `"reasoning-delta"`)
	_, snapshot := ask(t, http.MethodGet, url+"/chat/s/snapshot", "", "", "")
	require.Contains(t, snapshot, `"id":"user-0"`)
	require.Contains(t, snapshot, `"id":"assistant-1"`)
}

// TestResyncOnResume: a client that resumes from a sequence gets stream_resync
// first, unless helix.yaml says that it does not.
func TestResyncOnResume(t *testing.T) {
	t.Parallel()
	for _, resync := range []bool{true, false} {
		block := make(chan struct{})
		tool := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			select {
			case <-block:
			case <-r.Context().Done():
			}
			_, _ = io.WriteString(w, `{"result":1}`)
		}))
		t.Cleanup(tool.Close)
		url := startWith(t, fmt.Sprintf(`
chat: {resyncOnResume: %v}
agents:
  a:
    model: {provider: scripted, script: [{text: wait, toolCalls: [{name: slow, arguments: {}}]}, {text: done}]}
    tools: {slow: {http: {url: %q}}}
`, resync, tool.URL))
		status, answer := post(t, url+"/start", `{"sessionId":"s","agentType":"a","message":"go"}`)
		require.Equal(t, http.StatusOK, status, answer)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/chat/s/stream", nil)
		require.NoError(t, err)
		req.Header.Set("X-Resume-From-Sequence", "1")
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		close(block)
		stream, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		require.NoError(t, err)
		require.Contains(t, string(stream), "done")
		require.Equal(t, resync, strings.Contains(string(stream), "data-stream-resync"), string(stream))
	}
}

// TestServerOptions: what helix.yaml says of the HTTP server reaches it.
func TestServerOptions(t *testing.T) {
	c := config.Default()
	c.ServiceName, c.InterruptObservationDeadline, c.Heartbeat, c.VerboseValidationErrors = "house", 7*time.Second, time.Second, true
	o := serverOptions(c, nil)
	require.Equal(t, []any{"house", 7 * time.Second, time.Second, true},
		[]any{o.ServiceName, o.InterruptObservationDeadline, o.Heartbeat, o.VerboseValidationErrors})
}

// TestSubmissionsFitTheSchema: a submission that does not fit the file's schema is
// refused, by every route; the answer says why if the file asks for it.
func TestSubmissionsFitTheSchema(t *testing.T) {
	t.Parallel()
	const file = `
submitToolResultSchema: {properties: {result: {type: object, required: [lat]}}}
verboseValidationErrors: %v
agents:
  b:
    model: {provider: scripted, script: [{toolCalls: [{id: c, name: locate, arguments: {}}]}, {text: done}]}
    tools: {locate: {client: true}}
`
	const bad, good = `{"sessionId":"s","kind":"client-tool-result","toolCallId":"c","result":{"lon":1}}`,
		`{"sessionId":"s","kind":"client-tool-result","toolCallId":"c","result":{"lat":1}}`
	for _, verbose := range []bool{false, true} {
		url := startWith(t, fmt.Sprintf(file, verbose))
		status, answer := post(t, url+"/chat", hello)
		require.Equal(t, http.StatusOK, status, answer)
		inChat := `{"id":"s","trigger":"submit-message","messages":[{"id":"m","role":"assistant","parts":[` +
			`{"type":"tool-locate","toolCallId":"c","state":"output-available","input":{},"output":{"lon":1}}]}]}`
		for path, body := range map[string]string{"/submit-tool-result": bad, "/chat/s/submit-tool-result": bad, "/chat": inChat} {
			status, answer = post(t, url+path, body)
			require.Equal(t, http.StatusBadRequest, status, answer)
			require.Contains(t, answer, "validation_error")
			require.Equal(t, verbose, strings.Contains(answer, `missing properties`), answer)
		}
		status, answer = post(t, url+"/submit-tool-result", good)
		require.Equal(t, http.StatusOK, status, answer)
	}
}

// TestRemoteHeadersFromFiles: headers of files are read again for each attempt, and
// requests are repeated as often as the file says.
func TestRemoteHeadersFromFiles(t *testing.T) {
	t.Parallel()
	token := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(token, []byte("Bearer first\n"), 0o600))
	var mu sync.Mutex
	var got []string
	far := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, r.Header.Get("Authorization")+" "+r.Header.Get("X-Team"))
		if err := os.WriteFile(token, fmt.Appendf(nil, "Bearer after-%d", len(got)), 0o600); err != nil {
			t.Error(err)
		}
		w.WriteHeader(http.StatusBadGateway)
	}))
	t.Cleanup(far.Close)
	logs := &logBuffer{}
	d := serveFile(t, clitest.Config(t, fmt.Sprintf(`auth: {allowUnauthenticated: true}
serviceName: house
log: {level: debug}
agents:
  a:
    model: {provider: scripted, script: [{toolCalls: [{name: subagent__far, arguments: {message: hi}}]}, {text: done}]}
    remoteAgents:
      far: {url: %q, agentType: x, headers: {X-Team: blue}, headerFiles: {Authorization: %q}, maxRetries: 2, retryBaseDelay: 1ms, streamRetries: 0}
`, far.URL, token)), logs, nil)
	status, answer := post(t, d.URL+"/start", `{"sessionId":"s","agentType":"a","message":"go"}`)
	require.Equal(t, http.StatusOK, status, answer)
	require.Equal(t, "completed", settled(t, d.URL))
	mu.Lock()
	require.Equal(t, []string{"Bearer first blue", "Bearer after-1 blue", "Bearer after-2 blue"}, got[:3])
	mu.Unlock()
	require.NotContains(t, logs.String(), "after-1")
	require.Contains(t, logs.String(), "service=house")
}

// TestHTTPToolUsage: what an HTTP tool says that it has used is summed with the
// session's usage.
func TestHTTPToolUsage(t *testing.T) {
	t.Parallel()
	tool := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"result":1,"usage":{"pages":3,"euros":0.25}}`)
	}))
	t.Cleanup(tool.Close)
	url := startWith(t, fmt.Sprintf(`
agents:
  a:
    model: {provider: scripted, script: [{toolCalls: [{name: scan, arguments: {}}, {name: scan, arguments: {}}]}, {text: done}]}
    tools: {scan: {http: {url: %q}}}
`, tool.URL))
	status, answer := post(t, url+"/start", `{"sessionId":"s","agentType":"a","message":"go"}`)
	require.Equal(t, http.StatusOK, status, answer)
	require.Equal(t, "completed", settled(t, url))
	_, usage := ask(t, http.MethodGet, url+"/sessions/s/usage", "", "", "")
	require.Contains(t, usage, `"recorded":{"euros":{"scan":{"count":2,"sum":0.5}},"pages":{"scan":{"count":2,"sum":6}}}`)
}
