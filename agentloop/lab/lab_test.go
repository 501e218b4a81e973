package lab_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/lab"
	"github.com/helixd/helixd/agentloop/lab/cohort"
	"github.com/helixd/helixd/agentloop/lab/result"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/integration/testkit"
	"github.com/helixd/helixd/projector"
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
	t.Parallel()
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
	testkit.Long(t)
	testkit.Sequential(t)
	c := recordAll(t, 20)
	candidate := tried(&world{})
	candidate[0].SystemPrompt += " Be brief."
	o := lab.Options{Name: "c", Cohort: c, Candidate: candidate, Baseline: tried(&world{}), Parallel: 2, State: "1"}
	whole := run(t, o)
	require.Len(t, whole.Unjudged, 8, "the desk's sessions")
	require.Contains(t, whole.Unjudged[0].Why, "prompt")
	for _, at := range []int{1, 7, 19} {
		o.Log = memory.New()
		ctx, die := context.WithCancel(t.Context())
		o.Progress = func(done, sessions int) {
			require.Equal(t, 20, sessions)
			if done == at {
				die()
			}
		}
		_, err := lab.Run(ctx, o)
		require.ErrorIs(t, err, context.Canceled)

		first := 0
		o.Progress = func(done, _ int) { first = max(first, done) }
		again := run(t, o)
		require.Equal(t, 20, first)
		whole.Seconds, again.Seconds = 0, 0
		require.Equal(t, text(t, whole), text(t, again))
		require.Len(t, labsOf(t, o.Log), 1)

		again = run(t, o)
		again.Seconds = 0
		require.Equal(t, text(t, whole), text(t, again), "a lab that has ended is not continued")
		o.State = "2"
		again = run(t, o)
		again.Seconds, o.State = 0, "1"
		require.Equal(t, text(t, whole), text(t, again), "nor is another one")
		require.Len(t, labsOf(t, o.Log), 3)
	}
}

// labsOf are the labs in a log.
func labsOf(t *testing.T, log eventlog.Log) (labs []string) {
	t.Helper()
	for id, err := range log.Sessions(t.Context()) {
		require.NoError(t, err)
		if strings.HasPrefix(id, "lab-") && !strings.Contains(id, ".") {
			labs = append(labs, id)
		}
	}
	return labs
}

// folded is the state of a session.
func folded(t *testing.T, log eventlog.Log, id string) *projector.Tree {
	t.Helper()
	tree := new(projector.Tree)
	for r, err := range log.Read(t.Context(), id, 0, 0) {
		require.NoError(t, err)
		projector.Apply(tree, r)
	}
	return tree
}

// A lab is a session of the log, and so are the lanes that differ: as they were driven, with their
// sub-agents.
func TestALabIsInTheLog(t *testing.T) {
	t.Parallel()
	c := recordAll(t, 20)
	candidate, script := changedAgents(&world{})
	candidate[4].MaxSteps = 2 // the looper's
	o := lab.Options{Name: "c", Cohort: c, Candidate: candidate, Baseline: tried(&world{}), Script: script, Log: memory.New()}
	r := run(t, o)
	require.NotEmpty(t, r.Regressions)
	id := labsOf(t, o.Log)[0]
	tree := folded(t, o.Log, id)
	require.Equal(t, cohort.LabType, tree.AgentType)
	require.Equal(t, projector.SessionCompleted, tree.Status)
	var report result.Report
	require.NoError(t, json.Unmarshal(tree.Output, &report))
	require.Equal(t, r.Regressions, report.Regressions)
	require.Empty(t, report.Results)

	rows := 0
	for record, err := range o.Log.Read(t.Context(), id, 0, 0) {
		require.NoError(t, err)
		chunk, err := record.Chunk()
		event, is := chunk.(*eventlog.CustomEvent)
		if err != nil || !is || event.EventName != "lab-result" {
			continue
		}
		require.Equal(t, "results", record.Call)
		var row struct {
			Result result.Comparison
			Stored *struct{ Baseline, Candidate []string }
		}
		require.NoError(t, json.Unmarshal(event.Data, &row))
		rows++
		require.Equal(t, row.Result.Verdict == result.Same, row.Stored == nil)
		if row.Stored == nil {
			continue
		}
		require.Len(t, row.Stored.Baseline, 1)
		observed, driven := folded(t, o.Log, row.Result.Session), folded(t, o.Log, row.Stored.Candidate[0])
		require.Equal(t, observed.Messages[0].Content, driven.Messages[0].Content)
		if outcome := row.Result.Candidate.Outcome; outcome == "completed" || outcome == "failed" {
			require.EqualValues(t, outcome, driven.Status)
		}
		require.Equal(t, cohort.LaneType, driven.AgentType, "no node continues it")
		for _, s := range driven.Sessions() {
			require.True(t, strings.HasPrefix(s.SessionID, row.Stored.Candidate[0]), s.SessionID)
		}
	}
	require.Equal(t, 20, rows)
}

// passes is a judge that passes every lane.
type passes struct{}

func (passes) Lane(context.Context, result.Lane) (result.Judgement, fact.TokenUsage, error) {
	return result.Judgement{Pass: true}, fact.TokenUsage{}, nil
}
func (passes) Report() *result.JudgeReport { return &result.JudgeReport{Model: "m"} }

// Labels that people give in the debugger count as those of lab.yaml, which win.
func TestLabelsInTheLog(t *testing.T) {
	c := recordAll(t, 5)
	require.NoError(t, c.Write(io.Discard)) // it has a hash then
	o := lab.Options{Cohort: c, Candidate: tried(&world{}), Log: memory.New(), Judge: passes{}, Labels: map[string]bool{"s-0001": true}}
	id := cohort.LabelsType + "-" + c.Header.Hash[:12]
	for _, s := range []string{"s-0001", "s-0002"} {
		patch := &eventlog.StatePatch{
			Patches: []eventlog.PatchOp{{Op: "add", Path: "/" + s, Value: json.RawMessage("false")}},
			Base:    eventlog.Base{AgentID: id, AgentType: cohort.LabelsType, Timestamp: 1},
		}
		e, err := eventlog.NewChunk(patch, eventlog.Labels{})
		require.NoError(t, err)
		head, err := o.Log.Head(t.Context(), id)
		if !errors.Is(err, eventlog.ErrSessionNotFound) {
			require.NoError(t, err)
		}
		_, err = eventlog.AppendOnce(t.Context(), o.Log, id, s, head, []eventlog.Entry{e})
		require.NoError(t, err)
	}
	agreement := run(t, o).Judge.Agreement
	require.Equal(t, 2, agreement.Rated)
	require.InDelta(t, 0.5, agreement.Share, 1e-9)
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
	testkit.OneGoroutine(t)
	t.Parallel()
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

// A lab without a candidate, or with one that is no agent, does not begin; one that does not have
// the agent of a session does not judge it.
func TestCandidatesThatCanNotBeTried(t *testing.T) {
	c := recordAll(t, 1)
	_, err := lab.Run(t.Context(), lab.Options{Cohort: c})
	require.ErrorContains(t, err, "candidate")
	bad := tried(&world{})
	bad[0].Name = "no name"
	_, err = lab.Run(t.Context(), lab.Options{Cohort: c, Candidate: bad})
	require.Error(t, err)
	r := run(t, lab.Options{Cohort: c, Candidate: tried(&world{})[1:2]})
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
