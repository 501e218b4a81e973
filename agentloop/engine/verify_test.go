package engine_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/agentloop/verify"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
)

// verify replays all sessions of the story: today is when they were recorded.
func (te *teller) verify() {
	te.t.Helper()
	for session, err := range te.log.Sessions(te.t.Context()) {
		require.NoError(te.t, err)
		if !strings.HasPrefix(session, te.prefix) {
			continue
		}
		found, err := verify.Session(te.t.Context(), te.log.Read(te.t.Context(), session, 0, 0), te.agents, nil)
		require.NoError(te.t, err, session)
		require.Nil(te.t, found.Differs, session)
		te.decisions += found.Decisions
	}
	require.NotZero(te.t, te.decisions)
}

// verified is what a recorded session has of everything: an agent with a tool, a
// gated one, a client's, a sub-agent and structured output.
func verified() (boss, kid agentloop.Agent) {
	echo := func(_ context.Context, _ *agentloop.Call, args json.RawMessage) (any, error) { return args, nil }
	object := json.RawMessage(`{"type":"object"}`)
	boss = agentloop.Agent{
		Name: "boss", OutputSchema: object, Recall: recalls("m1", "They like it short."), SubAgents: []agentloop.SubAgent{{Agent: "kid"}},
		Tools: []agentloop.Tool{
			{Name: "look", Execute: echo},
			{Name: "pay", Execute: echo, RequireApproval: func(_ context.Context, c *agentloop.Call, _ json.RawMessage) (bool, error) {
				var s struct{ Trusted bool }
				return !s.Trusted, c.GetState(&s)
			}},
			{Name: "ask", Client: true},
		},
		Model: unmoved{script(
			call("look", `{"at":7}`), call("pay", `{}`), call("ask", `{}`), call("subagent__kid", `{"message":"go"}`),
			scripted.Turn{Text: "Well."}, call("__finish__", `{"sum":1}`))},
	}
	kid = agentloop.Agent{Name: "kid", OutputSchema: object, Model: script(call("__finish__", `{"ok":true}`))}
	return boss, kid
}

// recorded runs the agents of verified, to the end.
func recorded(t *testing.T) eventlog.Log {
	boss, kid := verified()
	g := newRig(t, boss, kid)
	waits := func(call string) func(*projector.Tree) bool {
		return func(s *projector.Tree) bool {
			_, c := s.OpenCall(call)
			return s.Suspended() && c != nil && c.Awaited()
		}
	}
	g.start("s", "boss", "go")
	g.comes("s", waits("call-pay"))
	submit := func(sub engine.Submission) {
		sub.SessionID = "s"
		_, err := g.loop.Submit(t.Context(), sub)
		require.NoError(t, err)
		_, err = g.loop.Resume(t.Context(), engine.ResumeRequest{SessionID: "s"})
		require.NoError(t, err)
	}
	submit(engine.Submission{ToolCallID: "call-pay", Kind: fact.SubmitApproval, Approved: true})
	g.comes("s", waits("call-ask"))
	submit(engine.Submission{ToolCallID: "call-ask", Kind: fact.SubmitClientResult, Result: json.RawMessage(`{"n":1}`)})
	require.Equal(t, projector.SessionCompleted, g.ended("s").Status)
	return g.log
}

// Each change of an agent is found where the session would have gone another
// way, and nowhere before.
func TestVerifyFindsWhereAChangedAgentGoesAnotherWay(t *testing.T) {
	t.Parallel()
	log := recorded(t)
	tool := func(a *agentloop.Agent, name string) *agentloop.Tool {
		for i := range a.Tools {
			if a.Tools[i].Name == name {
				return &a.Tools[i]
			}
		}
		return nil
	}
	for _, c := range []struct {
		name            string
		change          func(boss, kid *agentloop.Agent)
		typ, text       string // of the record, and what it holds
		recorded, today string
	}{
		{"a tool is removed", func(b, _ *agentloop.Agent) { b.Tools = b.Tools[1:] },
			"tool_start", "look", "executed look", "would refuse look: tool_not_found"},
		{"a tool is renamed", func(b, _ *agentloop.Agent) { tool(b, "look").Name = "see" },
			"tool_start", "look", "executed look", "would refuse look: tool_not_found"},
		{"a tool must be approved", func(b, _ *agentloop.Agent) { tool(b, "look").RequireApproval = agentloop.AlwaysApprove },
			"tool_start", "look", "executed look", "would ask for approval of look"},
		{"a schema is narrower", func(b, _ *agentloop.Agent) {
			tool(b, "look").InputSchema = json.RawMessage(`{"type":"object","properties":{"at":{"maximum":5}}}`)
		}, "tool_start", "look", "executed look", "would refuse look: tool_input_invalid"},
		{"a client executes a tool", func(b, _ *agentloop.Agent) { *tool(b, "look") = agentloop.Tool{Name: "look", Client: true} },
			"tool_start", "look", "executed look", "would wait for a client to execute look"},
		{"a tool finishes the turn", func(b, _ *agentloop.Agent) { tool(b, "look").FinishWith = true },
			"step_start", "turn-1-step-2", "asked the model for step 2", `would complete the run with the structured output {"at":7}`},
		{"fewer steps", func(b, _ *agentloop.Agent) { b.MaxSteps = 3 },
			"step_start", "turn-1-step-4", "asked the model for step 4",
			"would fail the run: agent_max_steps_exceeded (the agent did not finish within 3 steps)"},
		{"approved no more", func(b, _ *agentloop.Agent) { tool(b, "pay").RequireApproval = nil },
			"call_suspended", "pay", "asked for approval of pay", "would execute pay"},
		{"the approval depends on the state", func(b, _ *agentloop.Agent) {
			tool(b, "pay").RequireApproval = func(_ context.Context, c *agentloop.Call, _ json.RawMessage) (bool, error) {
				return string(c.State()) != "{}", nil
			}
		}, "call_suspended", "pay", "asked for approval of pay", "would execute pay"},
		{"a client's tool is executed", func(b, _ *agentloop.Agent) {
			tool(b, "ask").Client, tool(b, "ask").Execute = false, tool(b, "look").Execute
		}, "call_suspended", "ask", "waited for a client to execute ask", "would execute ask"},
		{"a client's result must fit", func(b, _ *agentloop.Agent) { tool(b, "ask").OutputSchema = json.RawMessage(`{"type":"string"}`) },
			"tool_result", "ask", "took the answer to ask", "would end ask with client_tool_validation_failed"},
		{"a sub-agent is removed", func(b, _ *agentloop.Agent) { b.SubAgents = nil },
			"tool_start", "subagent__kid", "handed a task to the sub-agent of subagent__kid", "would refuse subagent__kid: tool_not_found"},
		{"a sub-agent takes other arguments", func(_, k *agentloop.Agent) {
			k.InputSchema = json.RawMessage(`{"type":"object","required":["task"]}`)
		}, "tool_start", "subagent__kid", "handed a task to the sub-agent of subagent__kid", "would refuse subagent__kid: tool_input_invalid"},
		{"a sub-agent's output must fit", func(_, k *agentloop.Agent) {
			k.OutputSchema = json.RawMessage(`{"type":"object","required":["answer"]}`)
		}, "tool_start", "__finish__", "took the structured output by __finish__", "would refuse __finish__: tool_input_invalid"},
		{"it remembers nothing", func(b, _ *agentloop.Agent) { b.Recall = nil },
			"memory_recalled", "They like it short.", "asked what the agent remembers", "would ask the model for step 1"},
		{"a sub-agent remembers", func(_, k *agentloop.Agent) { k.Recall = recalls() },
			"step_start", "s-sub-call-subagent__kid", "asked the model for step 1", "would ask what the agent remembers"},
		{"no structured output", func(b, _ *agentloop.Agent) { b.OutputSchema = nil },
			"user_message", "helix", `sent the model "Give your final answer by calling the tool __finish__."`,
			`would complete the run with the output "Well."`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			boss, kid := verified()
			c.change(&boss, &kid)
			found, err := verify.Session(t.Context(), log.Read(t.Context(), "s", 0, 0), []agentloop.Agent{boss, kid}, nil)
			require.NoError(t, err)
			d := found.Differs
			require.NotNil(t, d)
			require.Equal(t, c.recorded, d.Recorded)
			require.Equal(t, c.today, d.Today)
			for r, err := range log.Read(t.Context(), "s", d.Sequence-1, d.Sequence) {
				require.NoError(t, err)
				require.Equal(t, c.typ, r.Type)
				require.Contains(t, string(r.Payload), c.text)
				require.Equal(t, r.Agent, d.SessionID)
				if r.Call == "" { // else it is labelled with the run that asked for the call
					require.Equal(t, r.Run, d.RunID)
				}
				require.Equal(t, r.Call, d.CallID)
			}
			require.Equal(t, strings.Contains(c.name, "remembers"), d.Step == 0, "a turn remembers before its first step")
			require.NotZero(t, found.Decisions)
		})
	}
}

// What is recorded already is not asked of anybody, and nothing is written.
func TestVerifyAsksNobody(t *testing.T) {
	t.Parallel()
	log := recorded(t)
	boss, kid := verified()
	head, err := log.Head(t.Context(), "s")
	require.NoError(t, err)
	nobody := modelFunc(func(context.Context, model.Request, func(model.Event) error) (model.Answer, error) {
		panic("the model was asked")
	})
	boss.Model, kid.Model = nobody, nobody
	boss.SystemPrompt = "Another one."
	boss.Recall = recallFunc(func(context.Context, agentloop.RecallRequest) ([]fact.RecalledMemory, error) {
		panic("the recaller was asked")
	})
	for i := range boss.Tools {
		if boss.Tools[i].Execute != nil {
			boss.Tools[i].Execute = func(context.Context, *agentloop.Call, json.RawMessage) (any, error) { panic("the tool was called") }
		}
	}
	gate := boss.Tools[1].RequireApproval
	boss.Tools[1].RequireApproval = func(ctx context.Context, c *agentloop.Call, args json.RawMessage) (bool, error) {
		require.Error(t, c.Emit(ctx, "x", 1))
		require.Error(t, agentloop.UpdateState(c, func(*counterState) error { return nil }))
		return gate(ctx, c, args)
	}
	found, err := verify.Session(t.Context(), log.Read(t.Context(), "s", 0, 0), []agentloop.Agent{boss, kid}, nil)
	require.NoError(t, err)
	require.Nil(t, found.Differs)
	require.Equal(t, "s", found.SessionID)
	require.Equal(t, head, found.Head)
	after, err := log.Head(t.Context(), "s")
	require.NoError(t, err)
	require.Equal(t, head, after)
}

func TestVerifyLooksAtOneRun(t *testing.T) {
	t.Parallel()
	log := recorded(t)
	boss, kid := verified()
	tree := stateOf(t, log, "s")
	require.Len(t, tree.Runs, 3)
	boss.Tools = boss.Tools[1:] // of the first run
	total := 0
	for i, run := range tree.Runs {
		found, err := verify.Session(t.Context(), log.Read(t.Context(), "s", 0, 0), []agentloop.Agent{boss, kid},
			&verify.Options{Run: run.RunID})
		require.NoError(t, err)
		require.Equal(t, i == 0, found.Differs != nil, "%+v", found.Differs)
		require.NotZero(t, found.Decisions)
		total += found.Decisions
	}
	require.Greater(t, total, 20)
}

func TestVerifyRefusesWhatIsNoSession(t *testing.T) {
	t.Parallel()
	boss, kid := verified()
	log := recorded(t)
	head, err := log.Head(t.Context(), "s")
	require.NoError(t, err)
	_, err = verify.Session(t.Context(), log.Read(t.Context(), "nobody", 0, 0), []agentloop.Agent{boss, kid}, nil)
	require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
	_, err = verify.Session(t.Context(), log.Read(t.Context(), "s", 0, 0), []agentloop.Agent{boss}, nil)
	require.ErrorIs(t, err, agentloop.ErrUnknownAgent)
	_, err = verify.Session(t.Context(), log.Read(t.Context(), "s", head/2, 0), []agentloop.Agent{boss, kid}, nil)
	require.Error(t, err, "decisions about half a session mean nothing")
}

// Who held the tree is no decision: a session that does not tell verifies, too.
func TestVerifyNeedsNoClaims(t *testing.T) {
	t.Parallel()
	log := recorded(t)
	boss, kid := verified()
	claimless := func(yield func(eventlog.Record, error) bool) {
		for r, err := range log.Read(t.Context(), "s", 0, 0) {
			if r.Type != "run_claimed" && r.Type != "claim_settled" && !yield(r, err) {
				return
			}
		}
	}
	found, err := verify.Session(t.Context(), claimless, []agentloop.Agent{boss, kid}, nil)
	require.NoError(t, err)
	require.Nil(t, found.Differs)
	require.Greater(t, found.Decisions, 20)
	boss.MaxSteps = 3
	found, err = verify.Session(t.Context(), claimless, []agentloop.Agent{boss, kid}, nil)
	require.NoError(t, err)
	require.NotNil(t, found.Differs)
}
