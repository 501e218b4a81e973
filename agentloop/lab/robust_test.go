package lab_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/lab"
	"github.com/helixd/helixd/agentloop/lab/cohort"
	"github.com/helixd/helixd/agentloop/lab/result"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/integration/testkit"
	"github.com/helixd/helixd/projector/readmodel"
)

// A lab that a signal ends has not judged the sessions that it was driving.
func TestASignalIsNoVerdict(t *testing.T) {
	testkit.Sequential(t)
	c := recordAll(t, 20)
	o := lab.Options{Cohort: c, Candidate: tried(&world{}), Parallel: 2, Log: memory.New(), State: "1"}
	ctx, die := context.WithCancelCause(t.Context())
	cause := errors.New("terminated signal received")
	o.Progress = func(done, _ int) {
		if done == 5 {
			die(cause)
		}
	}
	_, err := lab.Run(ctx, o)
	require.EqualError(t, err, cause.Error())
	o.Progress = nil
	r := run(t, o)
	require.Empty(t, r.Unjudged)
}

// Sub-agents that work at the same time and ask their models and tools the same get their own answers.
func TestAgentsThatAskTheSame(t *testing.T) {
	var n atomic.Int64
	counting := func() []agentloop.Agent {
		count := agentloop.Tool{Name: "count", InputSchema: json.RawMessage(`{"type":"object"}`), Execute: func(context.Context, *agentloop.Call, json.RawMessage) (any, error) {
			return n.Add(1), nil
		}}
		return []agentloop.Agent{
			{Name: "grader", OutputSchema: json.RawMessage(verdict), Tools: []agentloop.Tool{count}, Model: says{"m", func(_ string, results []string) turn {
				if len(results) == 0 {
					return turn{calls: []call{{"count", object{}}}}
				}
				i := n.Add(1)
				return turn{calls: []call{{agentloop.FinishTool, object{"grade": results[0], "of": i}}}}
			}}},
			{Name: "planner", SubAgents: []agentloop.SubAgent{{Agent: "grader"}}, Model: says{"m", func(_ string, results []string) turn {
				if len(results) == 0 {
					c := call{"subagent__grader", object{"message": "Grade it"}}
					return turn{calls: []call{c, c, c, c}}
				}
				return turn{text: strings.Join(results, " ")}
			}}},
		}
	}
	log := memory.New()
	loop, err := engine.New(log, counting(), nil)
	require.NoError(t, err)
	defer loop.Stop()
	c := &cohort.Cohort{}
	for i := range 4 {
		id := fmt.Sprint("s", i)
		r, err := loop.Execute(t.Context(), engine.StartRequest{SessionID: id, AgentType: "planner", Messages: []agentloop.Input{{Content: "x"}}})
		require.NoError(t, err)
		_, err = r.Result(t.Context())
		require.NoError(t, err)
		c.Sessions = append(c.Sessions, sessionOf(t, log, id))
	}
	for range rounds(t, 4) {
		r := run(t, lab.Options{Cohort: c, Candidate: lab.Agents(counting()...)})
		require.Empty(t, r.Regressions)
		require.Empty(t, r.Unjudged)
	}
}

// The id of a session may be any word, and its lanes are stored as they were driven.
func TestIdsThatAreWords(t *testing.T) {
	for _, id := range []string{"completed", "looper", "step", "results", "run_requested", "a/b~c%20+@é x", strings.Repeat("x", 256), "i"} {
		t.Run(id[:min(20, len(id))], func(t *testing.T) {
			log, loop := recordedLoop(t)
			session(t, loop, id, "looper", 10)
			candidate := tried(&world{})
			candidate[4].MaxSteps = 1
			o := lab.Options{Cohort: &cohort.Cohort{Sessions: []cohort.Session{sessionOf(t, log, id)}}, Candidate: candidate, Log: memory.New(), State: "1"}
			r := run(t, o)
			require.Len(t, r.Regressions, 1)
			ids, err := lab.Sessions(t.Context(), o.Log, r.Lab)
			require.NoError(t, err)
			require.Len(t, ids, 2, "the lane is kept")
			tree := folded(t, o.Log, ids[0])
			require.Empty(t, tree.Parked)
			require.Equal(t, cohort.LaneType, tree.AgentType)
			require.Equal(t, "failed", string(tree.Status))
			want := folded(t, log, id)
			require.Equal(t, want.Messages[0].Content, tree.Messages[0].Content)
			require.Equal(t, want.Messages[1].Parts, tree.Messages[1].Parts)
		})
	}
}

// What a tool or an assertion says may be larger than a record.
func TestAReasonOfAnySize(t *testing.T) {
	log, loop := recordedLoop(t)
	session(t, loop, "s", "looper", 10)
	suite, err := result.NewSuite([]result.Assertion{{Func: func(_, _ string, l result.Lane) error { return errors.New(strings.Repeat("字", 3<<20)) }}})
	require.NoError(t, err)
	r := run(t, lab.Options{
		Cohort: &cohort.Cohort{Sessions: []cohort.Session{sessionOf(t, log, "s")}}, Candidate: tried(&world{}), Log: memory.New(), State: "1",
		Rules: result.Rules{Suite: suite},
	})
	require.Len(t, r.Regressions, 1)
	require.Less(t, len(r.Regressions[0].Why), 10_000)
}

// dear is a judge that costs.
type dear struct{ passes }

func (dear) Lane(context.Context, result.Lane) (result.Judgement, fact.TokenUsage, error) {
	return result.Judgement{Pass: true}, fact.TokenUsage{Prompt: 100, Completion: 10, Total: 110}, nil
}

// What a lab has spent before it was killed counts: in its report and against its budget.
func TestWhatAKilledLabHasSpent(t *testing.T) {
	testkit.Sequential(t)
	o := lab.Options{
		Cohort: recordAll(t, 10), Candidate: tried(&world{}), Parallel: 1, State: "1", Judge: dear{}, Prices: map[string]readmodel.Price{"m": {Input: 1e6}},
	}
	whole := run(t, o)
	require.EqualValues(t, 10*3*110, whole.Tokens)
	require.InDelta(t, 3000, whole.Cost, 1e-6)
	die := func(o lab.Options) lab.Options {
		ctx, die := context.WithCancel(t.Context())
		o.Log = memory.New()
		o.Progress = func(done, _ int) {
			if done == 4 {
				die()
			}
		}
		_, err := lab.Run(ctx, o)
		require.ErrorIs(t, err, context.Canceled)
		o.Progress = nil
		return o
	}
	again := run(t, die(o))
	require.Equal(t, whole.Tokens, again.Tokens)
	require.InDelta(t, whole.Cost, again.Cost, 1e-6)
	o.Budget.Tokens = 6 * 330
	require.Equal(t, run(t, o).Unjudged, run(t, die(o)).Unjudged)
}
