package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/integration/testkit"
	"github.com/helixd/helixd/projector"
	"github.com/helixd/helixd/snapshot"
)

func TestMain(m *testing.M) {
	testkit.AtOnce(4)
	goleak.VerifyTestMain(testkit.InMemory(m))
}

// rig is a loop on a log in memory.
type rig struct {
	t    *testing.T
	log  eventlog.Log
	loop *engine.Loop
}

func newRig(t *testing.T, agents ...agentloop.Agent) *rig {
	return newRigOn(t, memory.New(), agents...)
}

func newRigOn(t *testing.T, log eventlog.Log, agents ...agentloop.Agent) *rig {
	t.Helper()
	loop, err := engine.New(log, agents, &engine.Options{RetryDelay: time.Millisecond})
	require.NoError(t, err)
	t.Cleanup(loop.Stop)
	return &rig{t: t, log: log, loop: loop}
}

func (g *rig) start(session, agent, message string) engine.Started {
	g.t.Helper()
	s, err := g.loop.Start(g.t.Context(), engine.StartRequest{
		SessionID: session, AgentType: agent, Messages: []agentloop.Input{{Content: message}},
	})
	require.NoError(g.t, err)
	return s
}

// ended waits until the session's stream ends and returns its state.
func (g *rig) ended(session string) *projector.Tree {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(g.t.Context(), time.Minute)
	defer cancel()
	t := new(projector.Tree)
	for r, err := range g.log.Follow(ctx, session, 0) {
		require.NoError(g.t, err)
		projector.Apply(t, r)
		if t.StreamStatus.Terminal() {
			break
		}
	}
	return t
}

// types returns the types of the effective records, facts in brackets.
func (g *rig) types(session string) []string {
	g.t.Helper()
	var out []string
	for r, err := range eventlog.Effective(g.t.Context(), g.log, session, 0, 0) {
		require.NoError(g.t, err)
		if r.Kind == eventlog.KindFact {
			out = append(out, "["+r.Type+"]")
		} else {
			out = append(out, r.Type)
		}
	}
	return out
}

func script(turns ...scripted.Turn) model.Model { return scripted.New(turns, nil) }

func call(name, args string) scripted.Turn {
	return scripted.Turn{ToolCalls: []scripted.Call{{ID: "call-" + name, Name: name, Arguments: json.RawMessage(args)}}}
}

type counterState struct {
	Count int      `json:"count"`
	Notes []string `json:"notes,omitempty"`
}

func addTool() agentloop.Tool {
	type in struct {
		By int `json:"by" jsonschema:"how much"`
	}
	return agentloop.NewTool("add", "Adds to the counter.", func(_ context.Context, c *agentloop.Call, in in) (int, error) {
		var total int
		err := agentloop.UpdateState(c, func(s *counterState) error {
			s.Count += in.By
			total = s.Count
			return nil
		})
		return total, err
	})
}

func TestATextAnswerIsAStepAndEndsTheStream(t *testing.T) {
	log := memory.New()
	g := newRigOn(t, log, agentloop.Agent{Name: "writer", Model: paced{log: log, Model: script(scripted.Turn{
		Reasoning: "Hm, well.", Text: "Hello there.", Usage: fact.TokenUsage{Prompt: 5, Completion: 7},
	})}})
	started := g.start("s", "writer", "Hi")
	state := g.ended("s")
	require.Equal(t, []string{
		"[session_created]", "[user_message]", "[run_requested]", "[run_claimed]",
		"step_start", "thinking", "thinking", "thinking", "text_delta", "text_delta", "[model_turn]",
		"step_end", "step_committed", "checkpoint_created", "[run_ended]", "[stream_end]",
	}, g.types("s"))
	require.Equal(t, projector.SessionCompleted, state.Status)
	require.Equal(t, eventlog.StreamCompleted, state.StreamStatus)
	require.JSONEq(t, `"Hello there."`, string(state.Output))
	require.Equal(t, []fact.TurnPart{{Reasoning: "Hm, well."}, {Text: "Hello there."}}, state.Messages[1].Parts)
	require.EqualValues(t, 12, state.Usage.Tokens.Total)
	require.Equal(t, started.RunID, state.Runs[0].RunID)
	require.Equal(t, fact.RunCompleted, state.Runs[0].Status)
	require.Equal(t, 1, state.StepCount)
	require.Len(t, state.Checkpoints, 1)
	require.Empty(t, state.Parked)
}

func TestEachStateUpdateIsOnePatch(t *testing.T) {
	twice := agentloop.NewTool("twice", "", func(ctx context.Context, c *agentloop.Call, _ struct{}) (string, error) {
		for range 2 {
			err := agentloop.UpdateState(c, func(s *counterState) error {
				s.Count++
				s.Notes = append(s.Notes, fmt.Sprint(s.Count))
				return nil
			})
			if err != nil {
				return "", err
			}
			if err := c.Emit(ctx, "progress", map[string]int{"percent": 50}); err != nil {
				return "", err
			}
		}
		var s counterState
		return fmt.Sprint(s.Count), c.GetState(&s)
	})
	g := newRig(t, agentloop.Agent{
		Name: "a", Model: script(call("twice", `{}`), scripted.Turn{Text: "ok"}), Tools: []agentloop.Tool{twice},
		InitialState: json.RawMessage(`{"other":{"kept":[1.50]}}`),
	})
	g.start("s", "a", "go")
	state := g.ended("s")
	require.Equal(t, []string{
		"[session_created]", "[user_message]", "[run_requested]", "[run_claimed]",
		"step_start", "tool_arg_stream_start", "tool_arg_stream_delta", "tool_arg_stream_end", "[model_turn]",
		"tool_start", "custom", "custom", "state_patch", "state_patch", "[tool_result]", "tool_end",
		"step_end", "step_committed", "checkpoint_created",
		"step_start", "text_delta", "[model_turn]", "step_end", "step_committed", "checkpoint_created",
		"[run_ended]", "[stream_end]",
	}, g.types("s"))
	require.JSONEq(t, `{"other":{"kept":[1.50]},"count":2,"notes":["1","2"]}`, state.CustomState.String())
	require.Contains(t, state.CustomState.String(), "1.50", "numbers stay as they are written")
}

func TestParallelCallsLoseNoUpdate(t *testing.T) {
	var calls []scripted.Call
	for i := range 8 {
		calls = append(calls, scripted.Call{ID: fmt.Sprintf("c%d", i), Name: "add", Arguments: json.RawMessage(`{"by":1}`)})
	}
	g := newRig(t, agentloop.Agent{
		Name: "a", Tools: []agentloop.Tool{addTool()}, Model: script(scripted.Turn{ToolCalls: calls}, scripted.Turn{Text: "ok"}),
	})
	g.start("s", "a", "go")
	state := g.ended("s")
	require.JSONEq(t, `{"count":8}`, state.CustomState.String())
	var order []string
	for _, m := range state.Messages {
		if m.Role == projector.RoleTool {
			order = append(order, m.ToolCallID)
		}
	}
	require.Equal(t, []string{"c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7"}, order, "results keep the model's order")
	require.Equal(t, 8, state.Usage.ToolStats.TotalCalls)
}

func TestFinishingToolsSeeTheStateOfTheOthers(t *testing.T) {
	submit := agentloop.NewTool("submit", "", func(_ context.Context, c *agentloop.Call, _ struct{}) (counterState, error) {
		var s counterState
		return s, c.GetState(&s)
	})
	submit.FinishWith = true
	submit.Execute = func(_ context.Context, c *agentloop.Call, _ json.RawMessage) (any, error) {
		var s counterState
		err := c.GetState(&s)
		return s, err
	}
	g := newRig(t, agentloop.Agent{
		Name: "a", Tools: []agentloop.Tool{submit, addTool()},
		Model: script(scripted.Turn{ToolCalls: []scripted.Call{
			{ID: "one", Name: "submit", Arguments: json.RawMessage(`{}`)},
			{ID: "two", Name: "add", Arguments: json.RawMessage(`{"by":41}`)},
		}}),
	})
	g.start("s", "a", "go")
	state := g.ended("s")
	require.JSONEq(t, `{"count":41}`, string(state.Output))
	require.Contains(t, g.types("s"), "output")
	require.Equal(t, "one", state.Messages[2].ToolCallID)
}

func TestStructuredOutput(t *testing.T) {
	schema := json.RawMessage(`{"type":"object","properties":{"answer":{"type":"string"}},"required":["answer"]}`)
	finish := func(args string) scripted.Turn {
		return scripted.Turn{ToolCalls: []scripted.Call{{Name: "__finish__", Arguments: json.RawMessage(args)}}}
	}
	t.Run("the finish tool gives it", func(t *testing.T) {
		g := newRig(t, agentloop.Agent{Name: "a", OutputSchema: schema, Model: script(finish(`{"answer":"42"}`))})
		g.start("s", "a", "go")
		state := g.ended("s")
		require.JSONEq(t, `{"answer":"42"}`, string(state.Output))
		require.JSONEq(t, `{"acknowledged":true}`, string(state.Messages[2].Result))
		types := g.types("s")
		require.Equal(t, []string{"output", "[run_ended]", "[stream_end]"}, types[len(types)-3:])
	})
	for _, strict := range []bool{false, true} {
		t.Run(fmt.Sprintf("strict output: %v", strict), func(t *testing.T) {
			var tools []model.ToolSpec
			answers := script(finish(`{"answer":"42"}`))
			g := newRig(t, agentloop.Agent{Name: "a", OutputSchema: schema, StrictOutput: strict, Model: modelFunc(
				func(ctx context.Context, req model.Request, emit func(model.Event) error) (model.Answer, error) {
					tools = req.Tools
					return answers.Generate(ctx, req, emit)
				})})
			g.start("s", "a", "go")
			g.ended("s")
			i := slices.IndexFunc(tools, func(s model.ToolSpec) bool { return s.Name == agentloop.FinishTool })
			require.GreaterOrEqual(t, i, 0)
			require.Equal(t, strict, tools[i].Strict, "what the provider is asked for")
		})
	}
	t.Run("an invalid one is reported to the model", func(t *testing.T) {
		g := newRig(t, agentloop.Agent{Name: "a", OutputSchema: schema, Model: script(finish(`{"answer":1}`), finish(`{"answer":"1"}`))})
		g.start("s", "a", "go")
		state := g.ended("s")
		require.JSONEq(t, `{"answer":"1"}`, string(state.Output))
		require.Equal(t, agentloop.CodeToolInput, state.Messages[2].ErrorCode)
		require.Contains(t, g.types("s"), "tool_input_error")
	})
	submit := func(results ...string) agentloop.Tool {
		n := 0
		return agentloop.Tool{Name: "submit", FinishWith: true, Execute: func(_ context.Context, c *agentloop.Call, _ json.RawMessage) (any, error) {
			result := json.RawMessage(results[n])
			n++
			return result, agentloop.UpdateState(c, func(s *counterState) error { s.Count++; return nil })
		}}
	}
	t.Run("the model receives that a tool's result does not fit", func(t *testing.T) {
		g := newRig(t, agentloop.Agent{Name: "a", OutputSchema: schema, Tools: []agentloop.Tool{submit(`{"answer":1}`, `"1"`, `{"answer":"1"}`)},
			Model: script(call("submit", `{}`), call("submit", `{}`), call("submit", `{}`))})
		g.start("s", "a", "go")
		state := g.ended("s")
		require.JSONEq(t, `{"answer":"1"}`, string(state.Output))
		for _, i := range []int{2, 4} {
			require.Equal(t, agentloop.CodeToolOutput, state.Messages[i].ErrorCode)
			require.Contains(t, state.Messages[i].Error, "does not fit the agent's output schema")
		}
		require.JSONEq(t, `{"count":1}`, state.CustomState.String(), "a call whose result is not taken changes nothing")
	})
	t.Run("a tool whose results never fit fails the run", func(t *testing.T) {
		g := newRig(t, agentloop.Agent{Name: "a", OutputSchema: schema, MaxSteps: 2, Tools: []agentloop.Tool{submit(`1`, `2`, `3`)},
			Model: script(call("submit", `{}`), call("submit", `{}`), call("submit", `{}`))})
		g.start("s", "a", "go")
		state := g.ended("s")
		require.Equal(t, agentloop.CodeMaxSteps, state.Error.Code)
		require.Nil(t, state.Output)
		require.NotContains(t, g.types("s"), "output")
	})
	t.Run("text is answered by one reminder", func(t *testing.T) {
		g := newRig(t, agentloop.Agent{Name: "a", OutputSchema: schema, Model: scripted.New([]scripted.Turn{{Text: "words"}}, nil)})
		g.start("s", "a", "go")
		state := g.ended("s")
		require.Equal(t, projector.SessionFailed, state.Status)
		require.Equal(t, agentloop.CodeOutputMissing, state.Error.Code)
		require.True(t, state.Messages[2].Hidden())
		require.Len(t, state.Messages, 4)
	})
}

func TestFailedCallsGoToTheModel(t *testing.T) {
	boom := agentloop.NewTool("boom", "", func(_ context.Context, c *agentloop.Call, _ struct{}) (int, error) {
		if err := agentloop.UpdateState(c, func(s *counterState) error { s.Count = 9; return nil }); err != nil {
			return 0, err
		}
		return 0, fmt.Errorf("no luck")
	})
	panics := agentloop.NewTool("panics", "", func(context.Context, *agentloop.Call, struct{}) (int, error) { panic("x") })
	slow := agentloop.NewTool("slow", "", func(ctx context.Context, _ *agentloop.Call, _ struct{}) (int, error) {
		<-ctx.Done()
		return 0, ctx.Err()
	})
	slow.Timeout = time.Millisecond
	g := newRig(t, agentloop.Agent{
		Name: "a", Tools: []agentloop.Tool{boom, panics, slow, addTool()},
		Model: script(scripted.Turn{ToolCalls: []scripted.Call{
			{ID: "1", Name: "boom", Arguments: json.RawMessage(`{}`)},
			{ID: "2", Name: "panics", Arguments: json.RawMessage(`{}`)},
			{ID: "3", Name: "slow", Arguments: json.RawMessage(`{}`)},
			{ID: "4", Name: "nowhere", Arguments: json.RawMessage(`{}`)},
			{ID: "5", Name: "add", Arguments: json.RawMessage(`{"by":"x"}`)},
		}}, scripted.Turn{Text: "ok"}),
	})
	g.start("s", "a", "go")
	state := g.ended("s")
	require.Equal(t, projector.SessionCompleted, state.Status, "a tool's failure is not the run's")
	codes := map[string]string{}
	for _, m := range state.Messages {
		if m.Role == projector.RoleTool {
			codes[m.ToolName] = m.ErrorCode
		}
	}
	require.Equal(t, map[string]string{
		"boom": agentloop.CodeToolFailed, "panics": agentloop.CodeToolFailed, "slow": agentloop.CodeToolTimeout,
		"nowhere": agentloop.CodeToolNotFound, "add": agentloop.CodeToolInput,
	}, codes)
	require.JSONEq(t, `{}`, state.CustomState.String(), "a failed call's updates are dropped")
	require.Equal(t, 5, state.Usage.ToolStats.FailedCalls)
}

func TestTooManySteps(t *testing.T) {
	g := newRig(t, agentloop.Agent{Name: "a", MaxSteps: 3, Tools: []agentloop.Tool{addTool()}, Model: scripted.New(
		[]scripted.Turn{{ToolCalls: []scripted.Call{{Name: "add", Arguments: json.RawMessage(`{"by":1}`)}}}}, nil)})
	g.start("s", "a", "go")
	state := g.ended("s")
	require.Equal(t, agentloop.CodeMaxSteps, state.Error.Code)
	require.Equal(t, eventlog.StreamTerminated, state.StreamStatus)
	require.JSONEq(t, `{"count":3}`, state.CustomState.String())
}

func TestModelFailures(t *testing.T) {
	t.Run("a retryable one is repeated after a marker", func(t *testing.T) {
		m := &flaky{fail: 2, err: &model.Error{Code: model.CodeOverloaded, Message: "busy", Retryable: true}}
		g := newRig(t, agentloop.Agent{Name: "a", Model: m})
		g.start("s", "a", "go")
		state := g.ended("s")
		require.Equal(t, projector.SessionCompleted, state.Status)
		require.Equal(t, "whole answer", state.Messages[1].Content)
		require.Equal(t, 3, m.calls)
		var text string
		var reasons []eventlog.ResyncReason
		for r, err := range eventlog.Effective(t.Context(), g.log, "s", 0, 0) {
			require.NoError(t, err)
			if r.Kind != eventlog.KindChunk {
				continue
			}
			c, err := r.Chunk()
			require.NoError(t, err)
			switch c := c.(type) {
			case *eventlog.TextDelta:
				text += c.Delta
			case *eventlog.StreamResync:
				reasons = append(reasons, c.Reason)
			}
		}
		require.Equal(t, "whole answer", text)
		require.Equal(t, []eventlog.ResyncReason{eventlog.ResyncRetry, eventlog.ResyncRetry}, reasons)
	})
	t.Run("retries end", func(t *testing.T) {
		m := &flaky{fail: 99, err: &model.Error{Code: model.CodeOverloaded, Message: "busy", Retryable: true}}
		g := newRig(t, agentloop.Agent{Name: "a", Model: m, MaxRetries: 2})
		g.start("s", "a", "go")
		state := g.ended("s")
		require.Equal(t, model.CodeOverloaded, state.Error.Code)
		require.Equal(t, 3, m.calls)
	})
	t.Run("others end the run", func(t *testing.T) {
		m := &flaky{fail: 99, err: &model.Error{Code: model.CodeAuthFailed, Message: "who are you"}}
		g := newRig(t, agentloop.Agent{Name: "a", Model: m})
		g.start("s", "a", "go")
		state := g.ended("s")
		require.Equal(t, "who are you", state.Error.Message)
		require.Equal(t, 1, m.calls)
		types := g.types("s")
		require.Equal(t, []string{"error", "[run_ended]", "[stream_failed]"}, types[len(types)-3:])
	})
}

// flaky fails a number of times after half an answer.
type flaky struct {
	fail, calls int
	err         error
}

func (f *flaky) Generate(_ context.Context, _ model.Request, emit func(model.Event) error) (model.Answer, error) {
	f.calls++
	if err := emit(model.TextDelta{Text: "whole "}); err != nil {
		return model.Answer{}, err
	}
	if f.calls <= f.fail {
		return model.Answer{}, f.err
	}
	return model.Answer{StopReason: fact.StopEndTurn}, emit(model.TextDelta{Text: "answer"})
}

func TestStartAndResumeAnswers(t *testing.T) {
	g := newRig(t,
		agentloop.Agent{Name: "a", Model: script(scripted.Turn{Text: "ok"})},
		agentloop.Agent{Name: "b", Model: script(scripted.Turn{Text: "ok"})},
		agentloop.Agent{Name: "stuck", Model: hanging{}},
	)
	ctx := t.Context()
	start := func(session, agent string) (engine.Started, error) {
		return g.loop.Start(ctx, engine.StartRequest{
			SessionID: session, AgentType: agent, Messages: []agentloop.Input{{Content: "go"}},
		})
	}
	_, err := start("s", "nobody")
	require.ErrorIs(t, err, agentloop.ErrUnknownAgent)
	_, err = g.loop.Resume(ctx, engine.ResumeRequest{SessionID: "s"})
	require.ErrorIs(t, err, eventlog.ErrSessionNotFound)

	first, err := start("live", "stuck")
	require.NoError(t, err)
	again, err := start("live", "stuck")
	require.NoError(t, err)
	require.Equal(t, first, again, "idempotent")
	_, err = start("live", "a")
	require.ErrorIs(t, err, agentloop.ErrAlreadyRunning)
	same, err := g.loop.Resume(ctx, engine.ResumeRequest{SessionID: "live"})
	require.NoError(t, err)
	require.Equal(t, first, same)
	_, err = g.loop.Resume(ctx, engine.ResumeRequest{SessionID: "live", Messages: []agentloop.Input{{Content: "x"}}})
	require.ErrorIs(t, err, agentloop.ErrAlreadyRunning)

	g.start("s", "a", "go")
	g.ended("s")
	_, err = start("s", "a")
	require.ErrorIs(t, err, agentloop.ErrAlreadyCompleted)
	_, err = g.loop.Resume(ctx, engine.ResumeRequest{SessionID: "s"})
	require.ErrorIs(t, err, agentloop.ErrAlreadyCompleted)

	_, err = start("bad\x00id", "a")
	var invalid *eventlog.ValidationError
	require.ErrorAs(t, err, &invalid)
}

// hanging never answers.
type hanging struct{}

func (hanging) Generate(ctx context.Context, _ model.Request, _ func(model.Event) error) (model.Answer, error) {
	<-ctx.Done()
	return model.Answer{}, ctx.Err()
}

func stateOf(t *testing.T, log eventlog.Log, session string) *projector.Tree {
	t.Helper()
	state, err := snapshot.New(log, nil).Head(t.Context(), session)
	require.NoError(t, err)
	return state
}
