package integration_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/remote/remotehttp"
	"github.com/helixd/helixd/integration/deployment"
	"github.com/helixd/helixd/integration/testkit"
)

// storyConfig has an agent whose only tool must be approved.
const storyConfig = `
protocols: {responses: {enabled: true}, durableStreams: {enabled: true}, agui: {enabled: true}}
agents:
  payer:
    model:
      provider: scripted
      scriptDelay: 20ms
      script:
        - text: They are to be paid.
          toolCalls: [{name: pay, arguments: {to: them}}]
        - text: They have been paid, and everybody can read it.
    tools:
      pay: {inputSchema: {type: object, properties: {to: {type: string}}}, http: {url: "%TOOL%"}, requireApproval: true}
`

// TestOneStory: a run that an OpenAI SDK begins, that is watched in AG-UI, that a person approves
// in the debugger, that is read as a Durable Stream and forked on the command line is one session, with the same bytes in
// all of them. It needs Chromium, node and what `make story` installs.
func TestOneStory(t *testing.T) {
	testkit.With(t, "HELIX_STORY", "story")
	paid := 0
	tool := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		paid++
		w.Write([]byte(`{"result":"paid"}`))
	}))
	t.Cleanup(tool.Close)
	dir := t.TempDir()
	config := filepath.Join(dir, "helix.yaml")
	require.NoError(t, os.WriteFile(config, []byte(strings.ReplaceAll(storyConfig, "%TOOL%", tool.URL)), 0o600))
	d := newDaemon(t, "serve", "--config", config, "--data-dir", filepath.Join(dir, "data"), "--allow-unauthenticated")
	d.start()
	const answer = "They have been paid, and everybody can read it."

	conversation := says(t, "openai", "story.mjs", "begin", d.url)
	session := strings.TrimPrefix(conversation, "conv_")
	require.NotEqual(t, conversation, session)
	require.Zero(t, paid, "nobody has approved it")

	watch := exec.CommandContext(t.Context(), "node", "story.mjs", d.url+"/ag-ui/payer", session)
	watch.Dir = "agui"
	obey(t, watch, func(command, said string) any {
		if command == "approve" {
			says(t, "debugger", "approve.mjs", d.url, session, answer)
		} else {
			require.JSONEq(t, `["They are to be paid.", "`+answer+`"]`, said)
		}
		return struct{}{}
	})
	require.Equal(t, 1, paid)
	read := says(t, "openai", "story.mjs", "read", d.url, conversation)
	require.True(t, strings.HasPrefix(read, "Pay them.\nThey are to be paid.\n") && strings.HasSuffix(read, "\n"+answer+"\n"), "%s", read)

	chunks := durableChunks(t, d, session)
	require.Equal(t, sseChunks(t, d, session), chunks, "the stream has the bytes of the log")
	text := ""
	for _, raw := range chunks {
		var c struct{ Type, Delta string }
		require.NoError(t, json.Unmarshal([]byte(raw), &c))
		if c.Type == "text_delta" {
			text += c.Delta
		}
	}
	require.Equal(t, "They are to be paid."+answer, text)

	helixd(t, "fork", session, "--as", session+"-again", "--server", d.url)
	require.Equal(t, read, says(t, "openai", "story.mjs", "read", d.url, conversation+"-again"))
}

// says runs a program of a folder, and returns what it printed.
func says(t *testing.T, folder string, args ...string) string {
	t.Helper()
	program := exec.CommandContext(t.Context(), "node", args...)
	program.Dir = folder
	if folder == "debugger" {
		program.Env = append(os.Environ(), "CHROMIUM="+chromium(t))
	}
	program.Stderr = os.Stderr
	out, err := program.Output()
	require.NoError(t, err, "%s", out)
	return string(out)
}

// durableChunks returns a session's chunks as the client of Durable Streams reads them.
func durableChunks(t *testing.T, d *daemon, session string) (chunks []string) {
	t.Helper()
	var all []json.RawMessage
	require.NoError(t, json.Unmarshal([]byte(says(t, "durable", "story.mjs", d.url+"/v1/stream/sessions/"+session)), &all))
	for _, c := range all {
		chunks = append(chunks, string(c))
	}
	return chunks
}

// sseChunks returns a session's chunks as a client of GET /sse gets them.
func sseChunks(t *testing.T, d *daemon, session string) (chunks []string) {
	t.Helper()
	ended := false
	require.NoError(t, deployment.Read(t.Context(), deployment.Client(d.url, deployment.Within), session, 0, 0, func(e remotehttp.RawEvent) bool {
		var event struct{ Chunk json.RawMessage }
		require.NoError(t, json.Unmarshal(e.Data, &event))
		if event.Chunk != nil {
			chunks = append(chunks, string(event.Chunk))
		}
		ended = e.Name == "end"
		return ended
	}))
	require.True(t, ended, "the stream broke off")
	return chunks
}
