package integration_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
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

// labAgents are a configuration whose agent asks a client and answers.
func labAgents(answer string) string {
	return `
auth: {allowUnauthenticated: true}
agents:
  clerk:
    model:
      provider: scripted
      scriptDelay: 10ms
      script:
        - toolCalls: [{name: look_up, arguments: {customer: ann@example.org}}]
        - text: ` + answer + `
    tools:
      look_up: {client: true}
`
}

// lab runs helixd lab, in a process that is killed after a while unless that is 0.
func lab(t *testing.T, kill time.Duration, args ...string) (code int, out string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program(t), append([]string{"lab"}, args...)...)
	var both bytes.Buffer
	cmd.Stdout, cmd.Stderr = &both, &both
	require.NoError(t, cmd.Start())
	if kill > 0 {
		<-time.After(kill) // the moment is the test's input, not a wait for something
		_ = cmd.Process.Kill()
	}
	_ = cmd.Wait() // the code says how it has ended
	return cmd.ProcessState.ExitCode(), both.String()
}

// TestLab records sessions of a daemon, redacted, tries a changed configuration on them, and kills
// the lab (SIGKILL) again and again: the report is that of a lab that was left alone.
func TestLab(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	d := newDaemon(t, "serve", "--config", file("helix.yaml", labAgents("She has one order of two.")), "--data-dir", filepath.Join(dir, "data"))
	d.start()
	const sessions = 20
	for n := range sessions {
		id := fmt.Sprintf("s-%02d", n)
		d.ok("/start", map[string]any{"sessionId": id, "agentType": "clerk", "userId": "user-of-" + id, "message": "Ask about ann@example.org."})
	}
	for n := range sessions {
		id := fmt.Sprintf("s-%02d", n)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		f := follow(ctx, d.url, id)
		<-f.done
		cancel()
		helixd(t, "answer", id, `{"name":"Ann Bo","orders":[1]}`, "--server", d.url)
	}
	cohort := filepath.Join(dir, "c.ndjson")
	code, out := lab(t, 0, "cohort", "create", cohort, "--server", d.url, "--redact", file("rules.yaml", "fields: [name]\npatterns: ['[a-z]+@example.org']\nusers: true\n"))
	require.Zero(t, code, out)
	text, err := os.ReadFile(cohort)
	require.NoError(t, err)
	for _, secret := range []string{"ann@example.org", "Ann Bo", "user-of-s-01"} {
		require.NotContains(t, string(text), secret)
	}

	same := file("same.yaml", "cohort: c.ndjson\ncandidate: helix.yaml\nbaseline: helix.yaml\n")
	code, out = lab(t, 0, "run", same)
	require.Zero(t, code, "a redacted cohort is replayed like any: %s", out)

	file("changed.yaml", strings.ReplaceAll(labAgents("She has no order that I would know of."), "ann@example.org", "redacted-1"))
	changed := file("lab.yaml", "cohort: c.ndjson\ncandidate: changed.yaml\nmodels: script\nbudget: {parallel: 2}\n")
	report := func(name string, kill time.Duration) (code int, text string) {
		path := filepath.Join(dir, name)
		code, out := lab(t, kill, "run", changed, "--report", path)
		if code < 0 { // it was killed
			return code, ""
		}
		raw, err := os.ReadFile(path)
		require.NoError(t, err, out)
		var r map[string]any
		require.NoError(t, json.Unmarshal(raw, &r))
		delete(r, "seconds")
		again, err := json.MarshalIndent(r, "", " ")
		require.NoError(t, err)
		return code, string(again)
	}
	began := time.Now()
	code, whole := report("whole.json", 0)
	took := time.Since(began)
	require.Equal(t, 1, code, whole)
	killed := 0
	for round := range 2 {
		for kill := took / 8; ; kill += took / 8 {
			code, again := report(fmt.Sprintf("again-%d.json", round), kill)
			if code < 0 {
				killed++
				continue
			}
			require.Equal(t, 1, code)
			require.Equal(t, whole, again)
			break
		}
	}
	require.Positive(t, killed)
	t.Logf("killed %d times; a lab that is left alone takes %s", killed, took)

	view := newDaemon(t, "lab", "view", changed)
	view.start()
	var labs, lanes api.Page[api.Summary]
	view.into("/sessions?agentType=lab", &labs)
	require.EqualValues(t, projector.SessionCompleted, labs.Items[0].Status)
	rows := 0
	for _, r := range view.records(labs.Items[0].SessionID) {
		if r.Call == "results" {
			rows++
		}
	}
	require.Equal(t, 1+sessions, rows)
	view.into("/sessions?agentType=clerk", &lanes)
	require.Equal(t, sessions, lanes.Total, "the recorded sessions")
	view.into("/sessions?agentType=lab-lane", &lanes)
	require.GreaterOrEqual(t, lanes.Total, sessions, "the candidate's lanes")
	code, out = lab(t, 0, "run", changed)
	require.Equal(t, 2, code)
	require.Contains(t, out, "lab view")
	view.stop()

	for range 2 { // again, what is there is left alone
		code, out = lab(t, 0, "run", changed, "--server", d.url)
		require.Equal(t, 1, code, out)
	}
	d.into("/sessions?agentType=lab", &labs)
	require.Equal(t, 2, labs.Total)
	d.into("/sessions?agentType=lab-lane", &lanes)
	require.Equal(t, 2*sessions, lanes.Total, "two labs' candidates")
	status, answer := d.post("/resume", map[string]any{"sessionId": lanes.Items[0].SessionID, "message": "Go on."})
	require.Equal(t, http.StatusNotFound, status, "no agent continues a lane: %v", answer)
}
