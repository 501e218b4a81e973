package lab_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/lab"
	"github.com/helixd/helixd/agentloop/lab/cohort"
	"github.com/helixd/helixd/agentloop/lab/result"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/integration/testkit"
)

// tried are the agents, whose world is only reached if the lab lets them.
func tried(w *world) []lab.Agent { return lab.Agents(agents(w)...) }

func run(t *testing.T, o lab.Options) *result.Report {
	t.Helper()
	r, err := lab.Run(t.Context(), o)
	require.NoError(t, err)
	return r
}

// Agents that did not change do not differ, whether the records are compared with or the agents.
func TestUnchangedAgentsDoNotDiffer(t *testing.T) {
	c := recordAll(t, 15)
	lived := &world{}
	for n := range rounds(t, 4) {
		o := lab.Options{Cohort: c, Candidate: tried(lived)}
		if n%2 == 1 {
			o.Baseline, o.Repeat = tried(lived), 2
		}
		r := run(t, o)
		require.Empty(t, slices.Concat(r.Regressions, r.Unjudged, r.Improvements, r.Changed, r.Flaky), "round %d", n)
		require.Equal(t, 15, r.Judged)
		require.Equal(t, r.Results[0].Observed.Tokens, r.Results[0].Candidate.Tokens)
	}
	require.Empty(t, lived.done, "nothing is really done")
}

// A lab that dies at any point and is started again gives the same report.
func TestALabThatDiesContinues(t *testing.T) {
	testkit.Sequential(t)
	c := recordAll(t, 20)
	candidate := tried(&world{})
	candidate[0].SystemPrompt += " Be brief."
	o := lab.Options{Name: "c", Cohort: c, Candidate: candidate, Baseline: tried(&world{}), Parallel: 2, State: "1"}
	whole := run(t, o)
	require.Len(t, whole.Unjudged, 8, "the desk's sessions")
	require.Contains(t, whole.Unjudged[0].Why, "prompt")
	for _, at := range []int{1, 7, 19} {
		o.Journal = filepath.Join(t.TempDir(), "journal")
		ctx, die := context.WithCancel(t.Context())
		o.Progress = func(done, sessions int) {
			require.Equal(t, 20, sessions)
			if done == at {
				die()
			}
		}
		_, err := lab.Run(ctx, o)
		require.ErrorIs(t, err, context.Canceled)
		f, err := os.OpenFile(o.Journal, os.O_APPEND|os.O_WRONLY, 0)
		require.NoError(t, err)
		_, err = f.WriteString(`{"lanes":{"session":"s-0001","agent`) // a line that was being written
		require.NoError(t, err)
		require.NoError(t, f.Close())

		first := 0
		o.Progress = func(done, _ int) { first = max(first, done) }
		again := run(t, o)
		require.Equal(t, 20, first)
		whole.Seconds, again.Seconds = 0, 0
		require.Equal(t, text(t, whole), text(t, again))
		require.NoFileExists(t, o.Journal)

		require.NoError(t, os.WriteFile(o.Journal, []byte(`{"state":"other"}`+"\n"+`{"lanes":{"session":"s-0001"}}`+"\n"), 0o600))
		again = run(t, o)
		again.Seconds = 0
		require.Equal(t, text(t, whole), text(t, again), "a journal of another lab is not used")
	}
}

func text(t *testing.T, r *result.Report) string {
	t.Helper()
	raw, err := r.JSON()
	require.NoError(t, err)
	return string(raw)
}

// What has changed in the model's request is named, and the request is answered only if that is
// allowed.
func TestChangedRequests(t *testing.T) {
	c := recordAll(t, 5)
	lived := &world{}
	for part, change := range map[string]func(a *lab.Agent){
		"prompt":      func(a *lab.Agent) { a.SystemPrompt += " Be brief." },
		"model":       func(a *lab.Agent) { a.ModelID = "other" },
		"tool schema": func(a *lab.Agent) { a.Tools[0].Description += " Fast." },
	} {
		candidate := tried(lived)
		change(&candidate[0])
		o := lab.Options{Cohort: c, Candidate: candidate, Baseline: tried(lived)}
		r := run(t, o)
		require.Len(t, r.Unjudged, 2, part)
		require.Contains(t, r.Unjudged[0].Why, part)
		require.Equal(t, 2, r.ExitCode())
		for _, one := range r.Results {
			require.NotEmpty(t, one.Prefix)
		}

		o.Live = true // the model itself, which answers as it did
		r = run(t, o)
		require.Empty(t, r.Regressions, part)
		require.Empty(t, r.Unjudged, part)
		require.Len(t, r.Changed, 2, part)
		require.Positive(t, r.Tokens)
		require.Less(t, r.Tokens, r.Results[0].Observed.Tokens+r.Results[4].Observed.Tokens+1, "only the desk's model is asked")
		o.Budget = lab.Budget{Tokens: 1}
		r = run(t, o)
		require.NotEmpty(t, r.Unjudged)
		require.Contains(t, r.Unjudged[0].Why, "budget")
	}
	require.Empty(t, lived.done, "tools are not")
}

// Calls without a recorded result are refused, simulated, or executed if they are safe or named.
func TestUnmatchedCalls(t *testing.T) {
	c := recordAll(t, 1)
	args := json.RawMessage(`{"n":77}`)
	script := []lab.Rule{{Agent: "desk", Turns: []scripted.Turn{
		{ToolCalls: []scripted.Call{{Name: "find", Arguments: args}}}, {Text: "Found."},
	}}}
	try := func(change func(o *lab.Options)) (*result.Report, map[string]int) {
		lived := &world{}
		o := lab.Options{Cohort: c, Candidate: tried(lived), Script: script, Rules: result.Rules{Accept: []result.Kind{result.ToolCall}}}
		change(&o)
		return run(t, o), lived.done
	}
	r, done := try(func(*lab.Options) {})
	require.Len(t, r.Unjudged, 1)
	require.Contains(t, r.Unjudged[0].Why, `find: the call with the arguments {"n":77} was not recorded`)
	require.Empty(t, done)
	for name, change := range map[string]func(o *lab.Options){
		"other": func(o *lab.Options) {
			o.Unmatched, o.Simulate = lab.SimulateCall, []lab.Simulation{{Tool: "find", Arguments: json.RawMessage(`{"n":78}`), Result: json.RawMessage("1")}}
		},
		"unnamed": func(o *lab.Options) { o.Unmatched, o.LiveTools = lab.Allow, []string{"refund"} },
	} {
		r, done := try(change)
		require.Len(t, r.Unjudged, 1, name)
		require.Empty(t, done, name)
	}
	r, done = try(func(o *lab.Options) {
		o.Unmatched, o.Simulate = lab.SimulateCall, []lab.Simulation{{Tool: "f*", Arguments: args, Result: json.RawMessage(`{"order":"x"}`)}}
	})
	require.Empty(t, r.Unjudged)
	require.Empty(t, done)
	for _, change := range []func(o *lab.Options){
		func(o *lab.Options) { o.Unmatched, o.Safe = lab.Allow, []string{"find"} },
		func(o *lab.Options) { o.Unmatched, o.LiveTools = lab.Allow, []string{"find"} },
	} {
		r, done := try(change)
		require.Empty(t, r.Unjudged)
		require.Equal(t, map[string]int{"find": 2}, done, "once a message")
	}
}

// Sessions whose inputs can't be given again are not judged, and the report says why.
func TestSessionsThatCanNotBeDriven(t *testing.T) {
	c := recordAll(t, 1)
	log, loop := recordedLoop(t)
	_, err := loop.Execute(t.Context(), engine.StartRequest{SessionID: "root", AgentType: "looper", Messages: []agentloop.Input{{Content: "Do 0."}}})
	require.NoError(t, err)
	h, err := loop.Handle(t.Context(), "root")
	require.NoError(t, err)
	_, err = h.Result(t.Context())
	require.NoError(t, err)
	_, err = loop.Resume(t.Context(), engine.ResumeRequest{SessionID: "root", Mode: "retry"})
	require.NoError(t, err)
	h, err = loop.Handle(t.Context(), "root")
	require.NoError(t, err)
	_, err = h.Result(t.Context())
	require.NoError(t, err)
	back := sessionOf(t, log, "root")
	c.Sessions = append(c.Sessions, back)
	r := run(t, lab.Options{Cohort: c, Candidate: tried(&world{})[:1]})
	require.Equal(t, []string{"root"}, []string{r.Unjudged[0].Session})
	require.Contains(t, r.Unjudged[0].Why, "went back")
	require.Equal(t, 1, r.Judged)

	_, err = lab.Run(t.Context(), lab.Options{Cohort: c})
	require.ErrorContains(t, err, "candidate")
	bad := tried(&world{})
	bad[0].Name = "no name"
	_, err = lab.Run(t.Context(), lab.Options{Cohort: c, Candidate: bad})
	require.Error(t, err)
	r = run(t, lab.Options{Cohort: &cohort.Cohort{Sessions: c.Sessions[:1]}, Candidate: tried(&world{})[1:2]})
	require.Contains(t, r.Unjudged[0].Why, "no agent desk")
}

// tb is a test that notes what fails.
type tb struct {
	*testing.T
	failed []string
}

func (t *tb) Errorf(format string, args ...any) {
	t.failed = append(t.failed, fmt.Sprintf(format, args...))
}

// In a test, Check fails it for each regression.
func TestCheck(t *testing.T) {
	c := recordAll(t, 3)
	inner := &tb{T: t}
	lab.Check(inner, lab.Options{Cohort: c, Candidate: tried(&world{})})
	require.Empty(t, inner.failed)
	candidate := tried(&world{})
	candidate[0].Tools[1].RequireApproval = agentloop.AlwaysApprove
	r := lab.Check(inner, lab.Options{Cohort: c, Candidate: candidate})
	require.Len(t, inner.failed, 1)
	require.Contains(t, inner.failed[0], "approval")
	require.Equal(t, 1, r.ExitCode())
	require.Equal(t, []string{"find", "note", "refund"}, lab.RecordedTools(c, "desk"))
}
