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
	"github.com/helixd/helixd/agentloop/remote/remotehttp"
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
		"tools.t.finishWith: can't be combined with client":          with(agentloop.Tool{Name: "t", Client: true, FinishWith: true}),
		"tools.t.requireApproval: can't be combined with client":     with(agentloop.Tool{Name: "t", Client: true, RequireApproval: agentloop.AlwaysApprove}),
		"tools.t.requireApproval: can't be combined with finishWith": with(agentloop.Tool{Name: "t", Execute: run, FinishWith: true, RequireApproval: agentloop.AlwaysApprove}),
		"tools.t: a client-executed tool has nothing to execute":     with(agentloop.Tool{Name: "t", Client: true, Execute: run}),
		"tools.t: nothing to execute":                                with(agentloop.Tool{Name: "t"}),
		"tools.t: is given twice":                                    with(agentloop.Tool{Name: "t", Execute: run}, agentloop.Tool{Name: "t", Client: true}),
		"are reserved":                                               with(agentloop.Tool{Name: "subagent__x", Execute: run}),
		"subAgents[0]: must be one of the agents: a, helper":         {Name: "a", Model: said, SubAgents: []agentloop.SubAgent{{Agent: "nobody"}}},
		"subAgents[0]: agent a needs an outputSchema":                {Name: "a", Model: said, SubAgents: []agentloop.SubAgent{{Agent: "a"}}},
		"persistentAgents[0].mode: must be blocking or non-blocking": {Name: "a", Model: said, PersistentAgents: []agentloop.PersistentAgent{{Agent: "helper", Mode: "sometimes"}}},
		"remoteAgents.r: no transport":                               {Name: "a", Model: said, RemoteAgents: []agentloop.RemoteAgent{{Name: "r", AgentType: "x", Timeout: 1}}},
		"remoteAgents.r.timeout: must be greater than 0":             {Name: "a", Model: said, RemoteAgents: []agentloop.RemoteAgent{{Name: "r", AgentType: "x", Transport: &remotehttp.Transport{}}}},
		"subAgents[1]: is given twice":                               {Name: "a", Model: said, SubAgents: []agentloop.SubAgent{{Agent: "helper"}, {Agent: "helper"}}},
	} {
		t.Run(problem, func(t *testing.T) {
			_, err := engine.New(memory.New(), []agentloop.Agent{helper, a}, nil)
			require.ErrorContains(t, err, `agentloop: agent "a": `)
			require.ErrorContains(t, err, problem)
		})
	}
}

// All faults are reported at once, in the order of the agents.
func TestAllFaultsAreReported(t *testing.T) {
	err := engine.Check([]agentloop.Agent{
		{Name: "b", InputSchema: json.RawMessage(`7`), SubAgents: []agentloop.SubAgent{{Agent: "nobody"}}},
		{Name: "a c", Model: script(scripted.Turn{Text: "ok"}), Tools: []agentloop.Tool{{Name: "t"}}},
	})
	require.EqualError(t, err, `agentloop: agent "b": model: must be given
agentloop: agent "b": inputSchema: must be a JSON Schema, a mapping
agentloop: agent "b": subAgents[0]: must be one of the agents: a c, b
agentloop: agent "a c": the name must match [a-zA-Z0-9_-]{1,64}
agentloop: agent "a c": tools.t: nothing to execute`)
	require.ErrorIs(t, err, agentloop.ErrUnknownAgent)
}

// The stream of a handle ends with its run, and continues with the next one's
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
	require.Equal(t, types, again, "it can be read again when the run is finished")

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
