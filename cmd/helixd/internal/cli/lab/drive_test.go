package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/lab/cohort"
	"github.com/helixd/helixd/agentloop/lab/result"
	"github.com/helixd/helixd/cmd/helixd/config"
	"github.com/helixd/helixd/cmd/helixd/internal/agentconfig"
	"github.com/helixd/helixd/cmd/helixd/internal/clitest"
	"github.com/helixd/helixd/cmd/helixd/internal/flags"
	"github.com/helixd/helixd/cmd/helixd/internal/settings"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/memory"
)

// shop is a configuration whose agent looks an order up over HTTP and answers.
func shop(url, more string) string {
	return `
agents:
  shop:
    systemPrompt: You know the orders.
    model: {provider: scripted, name: script, script: [{toolCalls: [{name: order, arguments: {id: 7}}]}, {text: It is on its way.}]}
    ` + more + `
    tools:
      order: {http: {url: "` + url + `"}, description: Finds an order.}
`
}

// recordShop writes a cohort of sessions of the configuration, and returns how often its tool was
// called so far.
func recordShop(t *testing.T, dir string, sessions int) (calls *atomic.Int64, url string) {
	t.Helper()
	calls = new(atomic.Int64)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		calls.Add(1)
		_, _ = w.Write([]byte(`{"state":"sent"}`))
	}))
	t.Cleanup(server.Close)
	helix := filepath.Join(dir, "helix.yaml")
	require.NoError(t, os.WriteFile(helix, []byte(shop(server.URL, "")), 0o600))
	c, err := config.Load(helix, os.LookupEnv)
	require.NoError(t, err)
	agents, err := agentconfig.Agents(c)
	require.NoError(t, err)
	log := memory.New()
	loop, err := engine.New(log, agents, nil)
	require.NoError(t, err)
	defer loop.Stop()
	for n := range sessions {
		h, err := loop.Execute(t.Context(), engine.StartRequest{
			SessionID: fmt.Sprintf("s-%03d", n), AgentType: "shop", Messages: []agentloop.Input{{Content: "Where is it?"}},
		})
		require.NoError(t, err)
		_, err = h.Result(t.Context())
		require.NoError(t, err)
	}
	made, err := cohort.Create(t.Context(), func(yield func(cohort.Source, error) bool) {
		for id, err := range log.Sessions(t.Context()) {
			if !yield(cohort.Source{ID: id, Records: func(ctx context.Context) iter.Seq2[eventlog.Record, error] { return log.Read(ctx, id, 0, 0) }}, err) {
				return
			}
		}
	}, cohort.Options{})
	require.NoError(t, err)
	require.NoError(t, settings.WriteWhole(filepath.Join(dir, "c.ndjson"), made.Write))
	return calls, server.URL
}

// try runs lab.yaml, and returns its report and its exit code.
func try(t *testing.T, dir, lab string, args ...string) (*result.Report, int, string) {
	t.Helper()
	file := filepath.Join(dir, "lab.yaml")
	require.NoError(t, os.WriteFile(file, []byte("cohort: c.ndjson\n"+lab), 0o600))
	var out, errs bytes.Buffer
	err := clitest.RunIn[Commands](t, &flags.Process{Ctx: t.Context(), Stdout: &out, Stderr: &errs, Log: slog.New(slog.DiscardHandler)},
		append([]string{"lab", "run", file, "--json"}, args...)...)
	code := 0
	text := ""
	if err != nil {
		code, text = flags.ExitCode(err), err.Error()
	}
	if out.Len() == 0 {
		return nil, code, text
	}
	r := new(result.Report)
	require.NoError(t, json.Unmarshal(out.Bytes(), r))
	return r, code, text
}

// helixd lab run tries a helix.yaml on a cohort: with exit codes for scripts, without a call of a
// tool, and with what lab.yaml allows.
func TestLabRun(t *testing.T) {
	dir := t.TempDir()
	calls, url := recordShop(t, dir, 3)
	require.EqualValues(t, 3, calls.Load())
	changed := filepath.Join(dir, "changed.yaml")
	change := func(text string) { require.NoError(t, os.WriteFile(changed, []byte(text), 0o600)) }

	for _, about := range []string{"agent: nobody", "sessions: [nosuch]"} {
		_, code, text := try(t, dir, "candidate: helix.yaml\nassert: [{name: idle, "+about+", outcome: completed}]\n")
		require.Equal(t, 2, code)
		require.Contains(t, text, `assertion "idle" is about no session of the cohort`)
	}
	_, _, refused := try(t, dir, "candidate: helix.yaml\n", "--repeat", "0")
	require.Contains(t, refused, "--repeat is at least 1")
	_, code, text := try(t, dir, "candidate: helix.yaml\n", "--report", filepath.Join(dir, "none", "r.json"))
	require.Equal(t, 2, code)
	require.Contains(t, text, "no such folder")

	r, code, _ := try(t, dir, "candidate: helix.yaml\nbaseline: helix.yaml\n")
	require.Zero(t, code)
	require.Equal(t, []int{3, 3}, []int{r.Sessions, r.Judged})
	require.Equal(t, "c.ndjson", r.Cohort)
	require.Len(t, r.Hash, 64)
	_, code, text = try(t, dir, "candidate: helix.yaml\nassert: [{contains: [lost]}]\n")
	require.Equal(t, 1, code)
	require.Equal(t, "3 regressions", text)

	change(shop(url, "requireApproval: {order: true}"))
	r, code, _ = try(t, dir, "candidate: changed.yaml\n")
	require.Equal(t, 1, code)
	require.Equal(t, result.Approval, r.Regressions[0].Kind)
	_, code, _ = try(t, dir, "candidate: changed.yaml\naccept: [approval]\n")
	require.Equal(t, 1, code, "the run waits and does not complete")

	change(strings.Replace(shop(url, ""), "You know", "You know all", 1))
	_, code, text = try(t, dir, "candidate: changed.yaml\nbaseline: helix.yaml\n")
	require.Equal(t, 2, code)
	require.Contains(t, text, "prompt")
	_, code, _ = try(t, dir, "candidate: changed.yaml\nbaseline: helix.yaml\nmodels: script\n")
	require.Zero(t, code, "the agent's own script answers")

	change(strings.Replace(shop(url, ""), "id: 7", "id: 8", 1))
	r, code, _ = try(t, dir, "candidate: changed.yaml\nmodels: script\n")
	require.Equal(t, 1, code)
	require.Equal(t, result.ToolCall, r.Regressions[0].Kind)
	require.Contains(t, r.Regressions[0].Why, "id")
	_, code, _ = try(t, dir, "candidate: changed.yaml\nmodels: script\naccept: [tool-call]\nunmatched: simulate\nsimulate: [{tool: order, arguments: {id: 8}, result: {state: sent}}]\n")
	require.Zero(t, code)
	_, code, _ = try(t, dir, "candidate: changed.yaml\nmodels: script\naccept: [tool-call]\nunmatched: simulate\nsimulate: [{tool: order, arguments: {id: 9}, result: {state: sent}}]\n")
	require.Equal(t, 2, code, "the rule is for other arguments")
	require.EqualValues(t, 3, calls.Load(), "no call was made so far")
	_, code, _ = try(t, dir, "candidate: changed.yaml\nmodels: script\naccept: [tool-call]\nunmatched: allow\n", "--live", "order")
	require.Zero(t, code)
	require.EqualValues(t, 6, calls.Load(), "only what was named is called")
	_, code, _ = try(t, dir, "candidate: changed.yaml\nmodels: script\naccept: [tool-call]\nunmatched: allow\nsafe: [order]\n")
	require.Zero(t, code)
	require.EqualValues(t, 9, calls.Load(), "or is declared safe")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "say.yaml"), []byte("shop: [{text: I do not know.}]\n"), 0o600))
	r, code, _ = try(t, dir, "candidate: helix.yaml\nmodels: say.yaml\n", "--repeat", "2")
	require.Equal(t, 1, code)
	require.Contains(t, r.Regressions[0].Why, "instead of tool-call order")

	change(strings.Replace(shop(url, ""), "{provider: scripted,", "{provider: openai, apiKey: env:NO_KEY_IN_CI,", 1))
	_, code, text = try(t, dir, "candidate: changed.yaml\n")
	require.Equal(t, 2, code, "a script is for provider scripted")
	require.NotContains(t, text, "NO_KEY_IN_CI")
	change(strings.Replace(shop(url, ""), "{provider: scripted, name: script, script: [{toolCalls: [{name: order, arguments: {id: 7}}]}, {text: It is on its way.}]}", "{provider: openai, name: gpt, apiKey: env:NO_KEY_IN_CI}", 1))
	_, code, _ = try(t, dir, "candidate: changed.yaml\n")
	require.Zero(t, code, "recorded answers need no key")
	_, code, text = try(t, dir, "candidate: changed.yaml\nmodels: live\n")
	require.Equal(t, 2, code)
	require.Contains(t, text, "NO_KEY_IN_CI is not set")

	for key, bad := range map[string]string{
		"candidate: ": "candidate: none.yaml\n", "baseline: ": "candidate: helix.yaml\nbaseline: none.yaml\n", "models: ": "candidate: helix.yaml\nmodels: none.yaml\n",
	} {
		_, code, text = try(t, dir, bad)
		require.Equal(t, 2, code, bad)
		require.Regexp(t, `lab\.yaml:\d+: `+key+`.*none\.yaml`, text)
	}
	ignored, err := os.ReadFile(filepath.Join(dir, ".lab", "lab", ".gitignore"))
	require.NoError(t, err)
	require.Equal(t, "*\n", string(ignored))
}

// A judge says what it thinks of each lane, and the report how far it agrees with people.
func TestLabJudge(t *testing.T) {
	dir := t.TempDir()
	recordShop(t, dir, 2)
	const judged = `candidate: helix.yaml
judge:
  prompt: A good session names a day.
  labels: {s-000: true, s-001: false}
  model: {provider: scripted, name: strict, script: [{text: '`
	r, code, _ := try(t, dir, judged+`{"pass": false, "reason": "no day"}'}]}`+"\n")
	require.Zero(t, code, "the baseline is no better")
	require.Equal(t, "strict", r.Judge.Model)
	require.Contains(t, r.Judge.Prompt, "A good session names a day.")
	require.Equal(t, 2, r.Judge.Agreement.Rated)
	require.InDelta(t, 0.5, r.Judge.Agreement.Share, 1e-9)
	require.Zero(t, r.Compared.Passed.Candidate)

	_, code, text := try(t, dir, judged+"I do not know'}]}\n")
	require.Equal(t, 2, code)
	require.Contains(t, text, "the judge failed: judge: the model does not answer")

	for _, prompt := range []string{"Be strict.", "Be kind."} { // a lab with another prompt is another one, and continues none
		require.NoError(t, os.WriteFile(filepath.Join(dir, "prompt.txt"), []byte(prompt), 0o600))
		file := filepath.Join(dir, "lab.yaml")
		text := "cohort: c.ndjson\n" + strings.Replace(judged, "A good session names a day.", "file:prompt.txt", 1) + `{"pass": true, "reason": "fine"}'}]}` + "\n"
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		p := &flags.Process{Ctx: t.Context(), Stdout: new(bytes.Buffer), Stderr: new(bytes.Buffer), Log: slog.New(slog.DiscardHandler)}
		r, err := runCmd{File: file}.judge(p, drive)
		require.NoError(t, err)
		require.Contains(t, r.Judge.Prompt, prompt)
		require.Regexp(t, `^lab-[0-9a-f]+-1$`, r.Lab)
	}
}
