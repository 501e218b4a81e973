package engine_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/agentloop/remote"
	"github.com/helixd/helixd/eventlog/memory"
)

func TestWhatIsRefusedAtDefinition(t *testing.T) {
	run := func(context.Context, *agentloop.Call, json.RawMessage) (any, error) { return nil, nil }
	said := script(scripted.Turn{Text: "ok"})
	output := json.RawMessage(`{"type":"object"}`)
	helper := agentloop.Agent{Name: "helper", Model: said, OutputSchema: output}
	with := func(tools ...agentloop.Tool) agentloop.Agent {
		return agentloop.Agent{Name: "a", Model: said, Tools: tools}
	}
	for problem, a := range map[string]agentloop.Agent{
		"a client-executed tool can't finish the turn":  with(agentloop.Tool{Name: "t", Client: true, FinishWith: true}),
		"a client-executed tool can't require approval": with(agentloop.Tool{Name: "t", Client: true, RequireApproval: agentloop.AlwaysApprove}),
		"a tool that finishes the turn can't require":   with(agentloop.Tool{Name: "t", Execute: run, FinishWith: true, RequireApproval: agentloop.AlwaysApprove}),
		"a client-executed tool has nothing to execute": with(agentloop.Tool{Name: "t", Client: true, Execute: run}),
		"nothing to execute":                            with(agentloop.Tool{Name: "t"}),
		"defined twice":                                 with(agentloop.Tool{Name: "t", Execute: run}, agentloop.Tool{Name: "t", Client: true}),
		"are reserved":                                  with(agentloop.Tool{Name: "subagent__x", Execute: run}),
		"unknown agent type":                            {Name: "a", Model: said, SubAgents: []agentloop.SubAgent{{Agent: "nobody"}}},
		"it must have an output schema":                 {Name: "a", Model: said, SubAgents: []agentloop.SubAgent{{Agent: "a"}}},
		`unknown mode "sometimes"`:                      {Name: "a", Model: said, PersistentAgents: []agentloop.PersistentAgent{{Agent: "helper", Mode: "sometimes"}}},
		"remote agent r: no transport":                  {Name: "a", Model: said, RemoteAgents: []agentloop.RemoteAgent{{Name: "r", AgentType: "x", Timeout: 1}}},
		"remote agent r: it needs a time-out":           {Name: "a", Model: said, RemoteAgents: []agentloop.RemoteAgent{{Name: "r", AgentType: "x", Transport: &remote.HTTP{}}}},
		"subagent__helper: defined twice":               {Name: "a", Model: said, SubAgents: []agentloop.SubAgent{{Agent: "helper"}, {Agent: "helper"}}},
	} {
		t.Run(problem, func(t *testing.T) {
			_, err := engine.New(memory.New(), []agentloop.Agent{helper, a}, nil)
			require.ErrorContains(t, err, problem)
		})
	}
}

// The stream of a handle ends with its run, and goes on with the next one's
// from where it ended.
func TestAHandlesStreamEndsWithItsRun(t *testing.T) {
	g := newRig(t, agentloop.Agent{
		Name: "a", Tools: []agentloop.Tool{{Name: "ask", Client: true}}, Model: script(call("ask", `{}`), scripted.Turn{Text: "Thanks."}),
	})
	h, err := g.loop.Execute(t.Context(), engine.StartRequest{
		SessionID: "s", AgentType: "a", Messages: []agentloop.Input{{Content: "go"}},
	})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	types, last := streamed(t, ctx, h, 0)
	require.Equal(t, "run_paused", types[len(types)-1])
	again, _ := streamed(t, ctx, h, 0)
	require.Equal(t, types, again, "it can be read again when the run is over")

	_, err = g.loop.Submit(ctx, engine.Submission{
		SessionID: "s", ToolCallID: "call-ask", Kind: "client-tool-result", Result: json.RawMessage(`1`),
	})
	require.NoError(t, err)
	next, err := h.Resume(ctx, engine.ResumeRequest{})
	require.NoError(t, err)
	types, _ = streamed(t, ctx, next, last)
	require.Equal(t, []string{
		"run_resumed", "tool_end", "step_end", "step_committed", "checkpoint_created", "step_start", "text_delta", "step_end",
		"step_committed", "checkpoint_created",
	}, types)
}

func streamed(t *testing.T, ctx context.Context, h *engine.Handle, from uint64) (types []string, last uint64) {
	t.Helper()
	for c, err := range h.Stream(ctx, from) {
		require.NoError(t, err)
		types, last = append(types, c.Chunk.Type()), c.Sequence
	}
	return types, last
}
