package integration_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/integration/testkit"
	"github.com/helixd/helixd/projector"
)

// travelled is a daemon whose session "walk" has waited for its client at a
// sequence and has then ended, and ways to ask about it: the daemon, and NATS.
func travelled(t *testing.T) (d *daemon, waited uint64, sources [][]string) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "helix.yaml")
	require.NoError(t, os.WriteFile(file, []byte(`
prices: {scripted: {input: 3, output: 15}}
agents:
  guide:
    initialState: {asked: 0}
    model:
      provider: scripted
      script:
        - reasoning: It depends on where they are.
          text: Let me see where you are.
          toolCalls: [{name: get_location, arguments: {}}]
        - text: From there it is a short walk.
    tools:
      get_location: {description: Where the user is., client: true}
`), 0o600))
	nats := freeAddress(t)
	d = newDaemon(t, "dev", "--config", file, "--data-dir", filepath.Join(dir, "data"), "--nats-listen", nats)
	d.start()
	sources = [][]string{{"--server", d.url}, {"--nats", "nats://" + nats}}
	d.ok("/start", map[string]any{"sessionId": "walk", "agentType": "guide", "message": "How far is it?"})
	require.Contains(t, helixd(t, "tail", "walk", "--server", d.url), "ended paused\n")
	_, answer := d.get("/sessions/walk/state")
	waited = uint64(answer["sequence"].(float64))
	d.goOn(t, "walk", "result", map[string]any{"city": "Oslo"})
	return d, waited, sources
}

// goOn answers the call of a session that waits, and waits for its end.
func (d *daemon) goOn(t *testing.T, session, outcome string, value any) {
	t.Helper()
	d.ok("/submit-tool-result", map[string]any{
		"sessionId": session, "kind": "client-tool-result", "toolCallId": "call_0_0", outcome: value,
	})
	d.ok("/resume", map[string]any{"sessionId": session})
	require.Contains(t, helixd(t, "tail", session, "--server", d.url), "ended\n")
}

// TestRecordsAreFollowed: who follows a session sees what is written, and ends
// it without a failure.
func TestRecordsAreFollowed(t *testing.T) {
	t.Parallel()
	d, waited, sources := travelled(t)
	type follower struct {
		cmd  *exec.Cmd
		seen *testkit.Log
	}
	var all []follower
	for _, source := range sources {
		f := follower{exec.Command(program(t), append([]string{"records", "walk", "--from", fmt.Sprint(waited), "--type", "text_delta", "--follow"}, source...)...), new(testkit.Log)}
		f.cmd.Stdout, f.cmd.Stderr = f.seen, f.seen
		require.NoError(t, f.cmd.Start())
		t.Cleanup(func() {
			f.cmd.Process.Kill()
			f.cmd.Wait()
		})
		require.Eventually(t, func() bool { return strings.Contains(f.seen.String(), "walk.") }, 2*time.Minute, 5*time.Millisecond, "what was there")
		all = append(all, f)
	}
	helixd(t, "rollback", "walk", "--to", fmt.Sprint(waited), "--yes", "--server", d.url)
	d.goOn(t, "walk", "result", map[string]any{"city": "Rome"})
	for _, f := range all {
		require.Eventually(t, func() bool { return strings.Count(f.seen.String(), "walk.") == 2 }, 2*time.Minute, 5*time.Millisecond, "what has come")
		require.NoError(t, f.cmd.Process.Signal(os.Interrupt))
		require.NoError(t, f.cmd.Wait(), "%s", f.seen)
		require.NotContains(t, f.seen.String(), "stream_resync", "a filter holds for what comes")
	}
}

// TestTimeTravel: a session is looked at, forked, gone on with in another way,
// compared and taken back, by commands.
func TestTimeTravel(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	d, waited, sources := travelled(t)
	at := fmt.Sprint(waited)
	out := helixd(t, "fork", "walk", "--at", at, "--as", "elsewhere", "--server", d.url)
	require.Equal(t, "elsewhere is what walk was at "+at+"\n", out)
	d.goOn(t, "elsewhere", "error", "The user does not say.")

	for _, source := range sources {
		run := func(args ...string) string {
			t.Helper()
			return helixd(t, append(args, source...)...)
		}
		tail := run("tail", "walk")
		require.Contains(t, tail, "  thinking   It depends on where they are.\n")
		require.Contains(t, tail, `  result     get_location call_0_0 {"city":"Oslo"}`+"\n")
		require.NotContains(t, run("tail", "walk", "--from", at), "thinking")

		facts := run("records", "walk", "--type", "model_turn", "--type", "tool_result", "--kind", "fact")
		require.Equal(t, 3, strings.Count(facts, "\n"), facts)
		require.Empty(t, run("records", "walk", "--type", "model_turn", "--run", "nobody's"))

		var then struct{ State projector.Tree }
		require.NoError(t, json.Unmarshal([]byte(run("state", "walk", "--at", at, "--json")), &then))
		require.Len(t, then.State.Messages, 2)

		diff := run("diff", "walk", at+"..")
		require.Contains(t, diff, "  tool       get_location call_0_0 {\"city\":\"Oslo\"}\n")
		require.Contains(t, diff, "  get_location call_0_0 waiting → done")
		require.Contains(t, diff, `  ~ /status "active" → "completed"`)
		var change api.StateDiff
		require.NoError(t, json.Unmarshal([]byte(run("diff", "walk", "..", "--json")), &change))
		require.Zero(t, change.From)
		require.Len(t, change.Messages, 4)

		require.Equal(t, tail, run("replay", "walk", "--speed", "0"), "printed as before")
		part := run("replay", "walk", "--speed", "100", "--to", at)
		require.Contains(t, part, "Let me see where you are.\n")
		require.NotContains(t, part, "Oslo")
		require.Contains(t, run("replay", "walk", "--speed", "0", "--sse"), "event: end\n")

		compared := run("compare", "walk", "elsewhere", "--width", "160")
		require.Contains(t, compared, "the first 2 messages of both: the same")
		require.Contains(t, compared, "failed get_location call_0_0 The user does not say.")
		require.Contains(t, compared, "forked from walk at "+at)
		require.Equal(t, compared, run("diff", "walk@", "elsewhere@", "--width", "160"))

		checkpoints := run("checkpoints", "walk")
		require.Equal(t, 3, strings.Count(checkpoints, "\n"), checkpoints)
	}

	var page api.Page[projector.Checkpoint]
	require.NoError(t, json.Unmarshal([]byte(helixd(t, "checkpoints", "walk", "--json", "--server", d.url)), &page))
	require.Len(t, page.Items, 2)
	first := page.Items[0]
	out = helixd(t, "rollback", "walk", "--checkpoint", first.ID, "--yes", "--server", d.url)
	require.Contains(t, out, fmt.Sprintf("walk is back at %d: ", first.StreamSequence))
	for _, source := range sources {
		shown := helixd(t, append([]string{"records", "walk", "--type", "text_delta", "--from", at}, source...)...)
		require.NotContains(t, shown, "short")
		shown = helixd(t, append([]string{"records", "walk", "--type", "text_delta", "--from", at, "--dead"}, source...)...)
		require.Contains(t, shown, "short")
		require.Contains(t, helixd(t, append([]string{"tail", "walk"}, source...)...), "  resync     rollback: ")
	}
}
