package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/projector"
)

// countingHooks are hooks of which each adds one to the count of its name.
func countingHooks(t *testing.T, o *told) *agentloop.Hooks {
	type H = agentloop.HookContext
	count := func(h *H, name string) {
		err := agentloop.UpdateState(h, func(s *map[string]any) error {
			n, _ := (*s)[name].(float64)
			(*s)[name] = n + 1
			return nil
		})
		if name == "complete" {
			o.add("%s", name)
			require.Error(t, err, "the stream has ended")
			return
		}
		require.NoError(t, err)
	}
	return &agentloop.Hooks{
		OnAgentStart:    func(_ context.Context, h *H, _ agentloop.AgentStartPayload) { count(h, "start") },
		OnAgentComplete: func(_ context.Context, h *H, _ agentloop.AgentCompletePayload) { count(h, "complete") },
		BeforeLLMCall:   func(_ context.Context, h *H, _ agentloop.BeforeLLMCallPayload) { count(h, "beforeLLM") },
		AfterLLMCall:    func(_ context.Context, h *H, _ agentloop.AfterLLMCallPayload) { count(h, "afterLLM") },
		BeforeTool:      func(_ context.Context, h *H, _ agentloop.BeforeToolPayload) { count(h, "beforeTool") },
		AfterTool:       func(_ context.Context, h *H, _ agentloop.AfterToolPayload) { count(h, "afterTool") },
		OnStateChange:   func(_ context.Context, h *H, _ agentloop.StateChangePayload) { count(h, "state") },
		OnMessage:       func(_ context.Context, h *H, _ agentloop.MessagePayload) { count(h, "message") },
	}
}

func TestHooksAndParallelCallsLoseNoUpdate(t *testing.T) {
	const n = 8
	var calls []scripted.Call
	for i := range n {
		calls = append(calls, scripted.Call{ID: fmt.Sprintf("c%d", i), Name: "add", Arguments: json.RawMessage(`{"by":1}`)})
	}
	o := newTold()
	g := newRig(t, agentloop.Agent{
		Name: "a", Tools: []agentloop.Tool{addTool()}, Hooks: countingHooks(t, o),
		Model: script(scripted.Turn{ToolCalls: calls}, scripted.Turn{Text: "ok"}),
	})
	g.start("s", "a", "go")
	state := g.ended("s")
	o.until(t, "complete")
	require.JSONEq(t, `{"count":8,"start":1,"beforeLLM":2,"afterLLM":2,"beforeTool":8,"afterTool":8,"state":8,"message":11}`,
		state.CustomState.String())
	require.Empty(t, state.Parked)
	require.JSONEq(t, state.CustomState.String(), string(patched(t, g.log, "s")), "who follows the stream has the same state")
}

// patched is the custom state as a client of the effective stream has it.
func patched(t *testing.T, log eventlog.Log, session string) json.RawMessage {
	t.Helper()
	state := json.RawMessage(`{}`)
	for r, err := range eventlog.Effective(t.Context(), log, session, 0, 0) {
		require.NoError(t, err)
		if r.Type != "state_patch" {
			continue
		}
		c, err := r.Chunk()
		require.NoError(t, err)
		state, _, err = projector.Patch(state, c.(*eventlog.StatePatch).Patches, projector.MaxPatchWork)
		require.NoError(t, err)
	}
	return state
}

// What a hook wrote before a model call that fails is not truncated with what
// the call has streamed.
func TestAHooksUpdateOutlivesAFailedModelCall(t *testing.T) {
	o := newTold()
	hooks := countingHooks(t, o)
	hooks.AfterLLMCall = nil
	g := newRig(t, agentloop.Agent{Name: "a", Hooks: hooks, Model: &flaky{fail: 2, err: overloaded()}})
	g.start("s", "a", "go")
	state := g.ended("s")
	o.until(t, "complete")
	require.JSONEq(t, `{"start":1,"beforeLLM":3,"message":2}`, state.CustomState.String())
	require.JSONEq(t, state.CustomState.String(), string(patched(t, g.log, "s")))
}

func TestWhatAHookMayWrite(t *testing.T) {
	o := newTold()
	g := newRigOn(t, memory.New(), agentloop.Agent{Name: "a", Model: script(done), Hooks: &agentloop.Hooks{
		AfterLLMCall: func(_ context.Context, h *agentloop.HookContext, _ agentloop.AfterLLMCallPayload) {
			require.NoError(t, h.EmitCustom("seen", map[string]int{"n": 1}))
			require.NoError(t, h.Emit(&eventlog.SourceURL{SourceID: "x", URL: "https://example.com"}))
			require.Error(t, h.Emit(&eventlog.StepCommitted{RunID: h.RunID, StepID: "x", CheckpointID: "y"}))
			require.NoError(t, h.Patch([]eventlog.PatchOp{{Op: "add", Path: "/seen", Value: json.RawMessage(`true`)}}))
			var s map[string]bool
			require.NoError(t, h.GetState(&s))
			require.True(t, s["seen"])
		},
		OnAgentComplete: func(context.Context, *agentloop.HookContext, agentloop.AgentCompletePayload) { o.add("complete") },
	}})
	g.start("s", "a", "go")
	o.until(t, "complete")
	types := g.types("s")
	require.Subset(t, types, []string{"custom", "source_url", "state_patch"})
	require.Empty(t, stateOf(t, g.log, "s").Parked)
}
