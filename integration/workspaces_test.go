package integration_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/integration/testkit"
)

// secret is in files of coders only.
const secret = "xyzzy-7f3a"

// coders are agents whose files are kept in different ways: each writes a file,
// edits it twice, reads it, and is done.
func coders() string {
	out := "agents:\n"
	for _, kind := range []string{"local", "objects"} {
		out += `
  ` + kind + `:
    workspace: {provider: ` + kind + `}
    model:
      provider: scripted
      scriptDelay: 20ms
      script:
        - toolCalls: [{name: workspace_write_file, arguments: {path: doc/note, content: "` + secret + ` one"}}]
        - toolCalls: [{name: workspace_edit_file, arguments: {path: doc/note, old: one, new: one two}}]
        - toolCalls: [{name: workspace_edit_file, arguments: {path: doc/note, old: two, new: two three}}]
        - toolCalls: [{name: workspace_read_file, arguments: {path: doc/note}}]
        - text: I have written three words.
`
	}
	return out
}

// readFiles is what the calls of a session gave that have read a file, in their
// order.
func (d *daemon) readFiles(session string) (contents []string) {
	d.t.Helper()
	_, state := d.get("/sessions/" + session + "/state")
	raw, err := json.Marshal(state["state"])
	require.NoError(d.t, err)
	var s struct {
		Messages []struct {
			ToolName string
			Result   struct{ Content string }
			Error    string
		}
	}
	require.NoError(d.t, json.Unmarshal(raw, &s))
	for _, m := range s.Messages {
		require.Empty(d.t, m.Error)
		if m.ToolName == "workspace_read_file" {
			contents = append(contents, m.Result.Content)
		}
	}
	return contents
}

// appended waits for the n-th record of a type.
func (d *daemon) appended(session, typ string, n int) {
	d.t.Helper()
	require.Eventually(d.t, func() bool {
		resp, err := client.Get(d.url + "/sessions/" + session + "/records?type=" + typ)
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		var body bytes.Buffer
		_, err = body.ReadFrom(resp.Body)
		return err == nil && bytes.Count(body.Bytes(), []byte("\n")) >= n
	}, time.Minute, time.Millisecond)
}

// A coder's files are there after kill -9 at any step; a fork of a checkpoint
// has the files of then; and an erasure leaves nothing of them on the disk.
func TestACodersFiles(t *testing.T) {
	testkit.Long(t)
	t.Parallel() // most of it is waiting
	for _, kind := range []string{"local", "objects"} {
		t.Run(kind, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, os.Chmod(filepath.Dir(dir), 0o755)) // a root's commands run as somebody else
			file := filepath.Join(dir, "helix.yaml")
			require.NoError(t, os.WriteFile(file, []byte(coders()), 0o600))
			data := filepath.Join(dir, "data")
			d := newDaemon(t, "serve", "--config", file, "--allow-unauthenticated", "--data-dir", data)
			d.start()
			const lives = 3
			for n := range lives {
				session := fmt.Sprint("s", n)
				d.ok("/start", map[string]any{"sessionId": session, "agentType": kind, "message": "go"})
				d.appended(session, (*fact.WorkspaceSaved)(nil).Type(), n+1)
				d.kill()
				d.start()
				d.waitFor(session, "completed")
				require.Equal(t, []string{secret + " one two three"}, d.readFiles(session), session)
			}
			_, page := d.get("/sessions/s0/checkpoints")
			first := page["items"].([]any)[0].(map[string]any)["id"]
			status, answer := d.post("/sessions/s0/fork", map[string]any{"checkpointId": first, "sessionId": "fork", "run": true})
			require.Less(t, status, 300, "%v", answer)
			d.waitFor("fork", "completed")
			require.Equal(t, []string{secret + " one two three"}, d.readFiles("fork"))
			_, described := d.get("/workspace?sessionId=fork")
			require.Equal(t, kind, described["workspace"].(map[string]any)["providerId"])

			require.NotEmpty(t, filesWith(t, data, secret))
			for _, session := range []string{"s0", "s1", "s2", "fork"} {
				again := false
				require.Eventually(t, func() bool {
					status, _, _ := d.do(http.MethodDelete, "/sessions/"+session, "")
					done := status == http.StatusOK || again && status == http.StatusNotFound
					again = true
					return done
				}, 2*time.Minute, 10*time.Millisecond)
			}
			require.Eventually(t, func() bool { // the read models follow
				return len(filesWith(t, data, secret)) == 0
			}, 2*time.Minute, 20*time.Millisecond)
			d.stop()
			require.Empty(t, filesWith(t, data, secret))
		})
	}
}

// filesWith returns the files below a folder that contain a text. A daemon
// may use them meanwhile.
func filesWith(t *testing.T, dir, text string) (found []string) {
	t.Helper()
	found, err := testkit.Scan(t.Context(), dir, text)
	require.NoError(t, err)
	return found
}
