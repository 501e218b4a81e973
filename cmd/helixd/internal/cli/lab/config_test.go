package lab

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/lab/result"
	"github.com/helixd/helixd/cmd/helixd/config"
)

func TestLabFile(t *testing.T) {
	path := text(t, "lab.yaml", `
cohort: week.cohort
candidate: helix.yaml
models: script.yaml
unmatched: simulate
simulate:
  - {tool: search, arguments: {q: x}, result: {hits: []}}
  - {tool: pay, error: no money}
accept: [model-answer]
assert:
  - {name: done, outcome: completed, contains: [done]}
  - {agent: shop, paths: [{path: $.order.id, equals: A1}], trajectory: {calls: [{tool: search, arguments: {q: x}}], order: exact, never: [pay]}}
  - {schema: {type: object}, budget: {cost: 0.5, tokens: 900, steps: 3, seconds: 2.5}}
judge:
  model: {provider: scripted, script: [{text: pass}]}
  prompt: Is it polite?
  labels: {s1: true, s2: false}
budget: {cost: 2.5, tokens: 10000, time: 5m, parallel: 2}
repeat: 3
`)
	dir := filepath.Dir(path)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "script.yaml"), []byte("shop: [{text: Done.}]\n"), 0o600))
	f, err := load(path)
	require.NoError(t, err)
	require.Equal(t, []string{filepath.Join(dir, "week.cohort"), filepath.Join(dir, "helix.yaml"), "recorded", filepath.Join(dir, "script.yaml")},
		[]string{f.Cohort, f.Candidate, f.Baseline, f.Models})
	require.JSONEq(t, `{"q":"x"}`, string(f.Simulate[0].Arguments))
	require.JSONEq(t, `{"hits":[]}`, string(f.Simulate[0].Result))
	require.Equal(t, map[string][]config.Turn{"shop": {{Text: "Done."}}}, f.scripts)
	require.Equal(t, []result.Kind{result.ModelAnswer}, f.Accept)
	require.Len(t, f.suite.Check("s", "shop", result.Lane{}), 3)
	require.JSONEq(t, `"A1"`, string(f.Assert[1].Paths[0].Equals))
	require.Equal(t, &result.Budget{Cost: 0.5, Tokens: 900, Steps: 3, Seconds: 2.5}, f.Assert[2].Budget)
	require.Equal(t, map[string]bool{"s1": true, "s2": false}, f.Judge.Labels)
	require.Equal(t, budget{2.5, 10000, 5 * time.Minute, 2}, f.Budget)
	require.Equal(t, 3, f.Repeat)
}

func TestDefaultsOfALabFile(t *testing.T) {
	f, err := load(text(t, "lab.yaml", "cohort: c\ncandidate: h\n"))
	require.NoError(t, err)
	require.Equal(t, []string{recorded, recorded, refuse}, []string{f.Baseline, f.Models, f.Unmatched})
	require.Equal(t, 1, f.Repeat)
}

// Each problem names its line and key.
func TestProblemsOfALabFile(t *testing.T) {
	path := text(t, "lab.yaml", `candidate: helix.yaml
unmatched: guess
accept: [prompt]
assert:
  - matches: "("
  - name: nothing
  - {trajectory: {order: some}, outcome: done}
simulate: [{tool: x}, {tool: "[", error: e}]
judge: {}
`)
	_, err := load(path)
	require.Error(t, err)
	var got []string
	for line := range strings.Lines(err.Error()) {
		got = append(got, strings.TrimPrefix(strings.TrimSpace(line), path))
	}
	require.Contains(t, got, ": cohort: is needed: the file that helixd lab cohort create has written")
	require.Contains(t, got, ":2: unmatched: must be refuse, simulate or allow")
	require.Contains(t, got, ":3: accept[0]: must be one of "+words(acceptable))
	require.Contains(t, got, ":5: assert[0].matches: error parsing regexp: missing closing ): `(`")
	require.Contains(t, got, ":6: assert[1].name: the assertion checks nothing: give it outcome, contains, excludes, matches, schema, paths, trajectory or budget")
	require.Contains(t, got, `:7: assert[2].trajectory.order: must be ordered, exact or any, not "some"`)
	require.Contains(t, got, ":7: assert[2].outcome: must be one of completed, failed, interrupted, paused")
	require.Contains(t, got, ":8: simulate[1].tool: is no name and no pattern such as get_*")
	require.Contains(t, got, ":8: simulate[0]: needs result or error, one of them")
	require.Contains(t, got, ":9: judge.prompt: must not be empty: say what a good session is")
	require.Contains(t, got, ":9: judge.model: needs a provider")

	_, err = load(text(t, "lab.yaml", "cohorts: x\nbudget: {cost: much}\n"))
	require.ErrorContains(t, err, ":1: cohorts: unknown key; known are cohort, candidate")
	require.ErrorContains(t, err, ":2: budget.cost: must be a number")
	_, err = load(text(t, "lab.yaml", "cohort: c\ncandidate: h\nmodels: none.yaml\n"))
	require.ErrorContains(t, err, ":3: models: must be recorded, live, script or a script's file: ")
	_, err = load(filepath.Join(t.TempDir(), "none.yaml"))
	require.ErrorIs(t, err, os.ErrNotExist)
}
