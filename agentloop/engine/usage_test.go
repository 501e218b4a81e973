package engine_test

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/engine/timetravel"
	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/projector"
)

// clock is what a test says the time is.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.UnixMilli(1_000_000)} }

func (c *clock) time() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// clocked is a rig whose time is a test's.
func clocked(t *testing.T, log eventlog.Log, c *clock, agents ...agentloop.Agent) *rig {
	t.Helper()
	loop, err := engine.New(log, agents, &engine.Options{RetryDelay: time.Millisecond, Now: c.time})
	require.NoError(t, err)
	t.Cleanup(loop.Stop)
	return &rig{t: t, log: log, loop: loop}
}

func overloaded() error {
	return &model.Error{Code: model.CodeOverloaded, Message: "busy", Retryable: true}
}

// costly says turns, but fails the first time.
type costly struct {
	model.Model
	mu     sync.Mutex
	failed bool
}

func (m *costly) Generate(ctx context.Context, req model.Request, emit func(model.Event) error) (model.Answer, error) {
	m.mu.Lock()
	first := !m.failed
	m.failed = true
	m.mu.Unlock()
	if first {
		return model.Answer{}, overloaded()
	}
	return m.Model.Generate(ctx, req, emit)
}

func used(turn scripted.Turn, prompt, completion int64) scripted.Turn {
	turn.Usage = fact.TokenUsage{Prompt: prompt, Completion: completion, Total: prompt + completion}
	return turn
}

// spenders are an agent that fails once, asks a client, asks a sub-agent, and
// searches; the sub-agent answers.
func spenders() []agentloop.Agent {
	search := agentloop.NewTool("search", "", func(ctx context.Context, c *agentloop.Call, _ struct{}) (string, error) {
		if err := c.RecordUsage(ctx, "pages", 2.5); err != nil {
			return "", err
		}
		return "found", c.RecordUsage(ctx, "pages", 1)
	})
	return []agentloop.Agent{
		{
			Name: "boss", Tools: []agentloop.Tool{search, {Name: "ask", Client: true}}, SubAgents: []agentloop.SubAgent{{Agent: "helper"}},
			Model: &costly{Model: scripted.New([]scripted.Turn{
				used(toolStep("ask", "q", `{}`), 1, 2),
				used(scripted.Turn{ToolCalls: []scripted.Call{
					{ID: "h", Name: "subagent__helper", Arguments: json.RawMessage(`{"message":"x"}`)}, {ID: "s", Name: "search"},
				}}, 10, 20),
				used(done, 100, 200),
			}, &scripted.Options{Name: "big"})},
		},
		{
			Name: "helper", OutputSchema: json.RawMessage(`{"type":"object"}`),
			Model: scripted.New([]scripted.Turn{used(toolStep("__finish__", "f", `{}`), 1000, 2000)}, &scripted.Options{Name: "small"}),
		},
	}
}

func TestUsageOfATree(t *testing.T) {
	log, clock := memory.New(), newClock()
	g := clocked(t, log, clock, spenders()...)
	ctx := t.Context()
	first, err := g.loop.Execute(ctx, engine.StartRequest{
		SessionID: "s", AgentType: "boss", Messages: []agentloop.Input{{Content: "go"}},
	})
	require.NoError(t, err)
	_, err = first.Result(ctx)
	require.NoError(t, err)
	clock.add(90 * time.Second)
	_, err = g.loop.Submit(ctx, engine.Submission{
		SessionID: "s", ToolCallID: "q", Kind: fact.SubmitClientResult, Result: json.RawMessage(`1`),
	})
	require.NoError(t, err)
	clock.add(time.Hour) // between the answer and the resume nobody waits
	second, err := first.Resume(ctx, engine.ResumeRequest{})
	require.NoError(t, err)
	_, err = second.Result(ctx)
	require.NoError(t, err)

	sum := stateOf(t, log, "s").RollUp("s")
	require.EqualValues(t, 3333, sum.Tokens.Total)
	require.EqualValues(t, 1111, sum.Tokens.Prompt)
	require.Equal(t, 4, sum.ModelCalls, "the attempt that failed has no usage")
	require.Equal(t, projector.ToolStats{TotalCalls: 4}, sum.ToolStats)
	require.Equal(t, map[string]projector.ToolStats{
		"ask": {TotalCalls: 1}, "search": {TotalCalls: 1}, "subagent__helper": {TotalCalls: 1}, "__finish__": {TotalCalls: 1},
	}, sum.Tools)
	require.EqualValues(t, 333, sum.Models["big"].Tokens.Total)
	require.EqualValues(t, 3000, sum.Models["small"].Tokens.Total)
	require.Equal(t, projector.Amount{Count: 2, Sum: 3.5}, sum.Recorded["pages"]["search"])
	require.Equal(t, map[string]projector.Wait{"ask": {Calls: 1, TotalMs: 90_000}}, sum.Waits)

	require.Len(t, sum.Runs, 3)
	require.Equal(t, first.RunID, sum.Runs[0].RunID)
	require.EqualValues(t, 3, sum.Runs[0].Tokens.Total)
	require.Equal(t, second.RunID, sum.Runs[1].RunID)
	require.EqualValues(t, 330, sum.Runs[1].Tokens.Total)
	require.Equal(t, "s-sub-h", sum.Runs[2].SessionID)
	require.Len(t, sum.SubAgents, 1)
	require.Equal(t, "helper", sum.SubAgents[0].AgentType)
	require.EqualValues(t, 3000, sum.SubAgents[0].Tokens.Total)

	sumsOfEntries(t, log, sum)

	// What was used was used; who starts again starts at zero.
	page, _, err := g.loop.TimeTravel.Checkpoints(ctx, "s", 1, 0)
	require.NoError(t, err)
	_, err = g.loop.TimeTravel.Rollback(ctx, "s", timetravel.Target{CheckpointID: page[0].ID})
	require.NoError(t, err)
	back := stateOf(t, log, "s").RollUp("s")
	require.Equal(t, sum.Totals, back.Totals)
	sumsOfEntries(t, log, back)
	fork, err := g.loop.TimeTravel.Fork(ctx, timetravel.ForkRequest{FromSessionID: "s", NewSessionID: "f"})
	require.NoError(t, err)
	none := stateOf(t, log, fork.SessionID).RollUp(fork.SessionID)
	require.Equal(t, projector.Totals{}, none.Totals)
}

// sumsOfEntries checks that the entries are those of the sums.
func sumsOfEntries(t *testing.T, log eventlog.Log, sum projector.Rollup) {
	t.Helper()
	var total int64
	calls, pages, waits := 0, 0.0, 0.0
	ids := map[string]bool{}
	for e, err := range projector.UsageEntries(log.Read(t.Context(), "s", 0, 0)) {
		require.NoError(t, err)
		require.False(t, ids[e.ID])
		require.NotEmpty(t, e.RunID)
		require.Positive(t, e.StepCount)
		ids[e.ID] = true
		switch e.Kind {
		case projector.UsageTokens:
			require.Equal(t, fact.UsageAgent, e.Source)
			total += e.Tokens.Total
		case projector.UsageTool, projector.UsageSubAgent:
			require.Equal(t, e.SourceName == "subagent__helper", e.Source == fact.UsageSubAgent)
			calls++
		case projector.UsageCustom:
			switch e.SourceType {
			case "pages":
				pages += *e.Amount
			case fact.ClientToolWait:
				require.Equal(t, "ask", e.SourceName)
				waits += *e.Amount
			}
		}
	}
	require.Equal(t, sum.Tokens.Total, total)
	require.Equal(t, sum.ToolStats.TotalCalls, calls)
	require.InDelta(t, 3.5, pages, 1e-9)
	require.InDelta(t, 90_000, waits, 1e-9)
}

func TestWhatUsageAToolMayRecord(t *testing.T) {
	errs := make(chan error, 3)
	var kept *agentloop.Call
	tool := agentloop.NewTool("t", "", func(ctx context.Context, c *agentloop.Call, _ struct{}) (string, error) {
		kept = c
		errs <- c.RecordUsage(ctx, fact.ClientToolWait, 1)
		errs <- c.RecordUsage(ctx, "", 1)
		return "", nil
	})
	g := newRig(t, agentloop.Agent{Name: "a", Tools: []agentloop.Tool{tool}, Model: script(toolStep("t", "c", `{}`), done)})
	g.start("s", "a", "go")
	g.ended("s")
	require.ErrorContains(t, <-errs, "reserved")
	require.Error(t, <-errs)
	require.Error(t, kept.RecordUsage(t.Context(), "pages", 1), "the call is finished")
}
