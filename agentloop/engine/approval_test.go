package engine_test

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/projector"
)

// answerCall answers the approval of a call, and resumes the session.
func (g *rig) answerCall(session, call string, approved bool) {
	g.t.Helper()
	got, err := g.loop.Submit(g.t.Context(), engine.Submission{
		SessionID: session, ToolCallID: call, Kind: fact.SubmitApproval, Approved: approved,
	})
	require.NoError(g.t, err)
	require.Equal(g.t, engine.SubmitAccepted, got.Status)
	_, err = g.loop.Resume(g.t.Context(), engine.ResumeRequest{SessionID: session})
	require.NoError(g.t, err)
}

// TestApprovalOfARemoteAgent: the other server learns of a call when a person has
// approved it, and never of one that was denied.
func TestApprovalOfARemoteAgent(t *testing.T) {
	for _, approved := range []bool{true, false} {
		there := newServer(t, answering("hi"))
		caller := there.caller(time.Minute)
		caller.Approvals = []agentloop.Approval{{Tools: "subagent__analyst"}}
		here := newRig(t, caller)
		here.start("s", "caller", "go")
		state := here.comes("s", (*projector.Tree).Suspended)
		call := state.Turn.Step.Calls[0]
		require.Equal(t, fact.PendingApproval, call.Pending.Kind)
		_, err := there.log.Head(t.Context(), remoteID)
		require.ErrorIs(t, err, eventlog.ErrSessionNotFound)

		here.answerCall("s", call.ID, approved)
		state = here.ended("s")
		require.Equal(t, projector.SessionCompleted, state.Status)
		require.Equal(t, fact.PendingApproval, state.Messages[2].AnsweredAs)
		require.Empty(t, state.Parked)
		_, err = there.log.Head(t.Context(), remoteID)
		if approved {
			require.NoError(t, err)
			require.JSONEq(t, `{"answer":"42"}`, string(state.Messages[2].Result))
		} else {
			require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
			require.Equal(t, agentloop.CodeApprovalDenied, state.Messages[2].ErrorCode)
		}
		waits := 0
		for use, err := range projector.UsageEntries(here.log.Read(t.Context(), "s", 0, 0)) {
			require.NoError(t, err)
			if use.SourceType == fact.ClientToolWait {
				waits++
			}
		}
		require.Equal(t, 1, waits, "how long the person took is counted once")
	}
}

// TestApprovalsByPattern: a call waits if one of the approvals that name its
// tool, or the tool itself, requires it.
func TestApprovalsByPattern(t *testing.T) {
	tool := func(name string) agentloop.Tool {
		return agentloop.Tool{Name: name, Execute: func(context.Context, *agentloop.Call, json.RawMessage) (any, error) { return "did", nil }}
	}
	moves := func(_ context.Context, _ *agentloop.Call, args json.RawMessage) (bool, error) {
		return string(args) == `{"much":true}`, nil
	}
	g := newRig(t, agentloop.Agent{
		Name: "a", Tools: []agentloop.Tool{tool("files_read"), tool("files_delete"), tool("web_get")},
		Approvals: []agentloop.Approval{{Tools: "files_[d]*"}, {Tools: "*", Require: moves}},
		Model: script(scripted.Turn{ToolCalls: calls(
			"r", "files_read", `{}`, "d", "files_delete", `{}`, "w", "web_get", `{}`, "m", "web_get", `{"much":true}`,
		)}, scripted.Turn{Text: "done"}),
	})
	g.start("s", "a", "go")
	var waiting []string
	for _, c := range g.comes("s", (*projector.Tree).Suspended).AwaitedCalls() {
		waiting = append(waiting, c.Call.ID)
	}
	require.Equal(t, []string{"d", "m"}, waiting)
}

// TestBadApprovals: an approval that would guard nothing is refused, and so is
// one of a tool that can't wait for a person.
func TestBadApprovals(t *testing.T) {
	execute := func(context.Context, *agentloop.Call, json.RawMessage) (any, error) { return nil, nil }
	for tools, problem := range map[string]string{
		"serach":  "it matches none of the agent's tools: ask, search, submit",
		"[":       "not a pattern of names",
		"a*":      "it matches ask, which the client executes: such a tool can't require approval",
		"s*":      "it matches submit, which finishes the turn: such a tool can't require approval",
		"__fin*":  "it matches none of the agent's tools: ask, search, submit",
		"search/": "it matches none of the agent's tools: ask, search, submit",
	} {
		_, err := engine.New(memory.New(), []agentloop.Agent{{
			Name: "a", Model: script(scripted.Turn{Text: "hi"}), OutputSchema: json.RawMessage(`{"type":"object"}`),
			Tools: []agentloop.Tool{
				{Name: "search", Execute: execute}, {Name: "ask", Client: true}, {Name: "submit", Execute: execute, FinishWith: true},
			},
			Approvals: []agentloop.Approval{{Tools: tools}},
		}}, nil)
		refused := new(agentloop.AgentError)
		require.ErrorAs(t, err, &refused)
		require.Equal(t, agentloop.AgentError{Agent: "a", Path: "requireApproval." + tools, Problem: problem}, *refused)
	}
}

// A request that confirms the open approvals and has answers stores both. An answer counts
// before the confirmation.
func TestAConfirmationKeepsTheAnswersOfItsRequest(t *testing.T) {
	var paid atomic.Int32
	g := newRig(t, agentloop.Agent{
		Name: "a", Model: script(scripted.Turn{ToolCalls: []scripted.Call{
			{ID: "pay", Name: "pay", Arguments: json.RawMessage(`{}`)},
			{ID: "more", Name: "pay", Arguments: json.RawMessage(`{}`)},
			{ID: "ask", Name: "ask", Arguments: json.RawMessage(`{}`)},
		}}, done),
		Tools: []agentloop.Tool{
			{Name: "ask", Client: true},
			{Name: "pay", RequireApproval: agentloop.AlwaysApprove, Execute: func(context.Context, *agentloop.Call, json.RawMessage) (any, error) {
				return paid.Add(1), nil
			}},
		},
	})
	g.start("s", "a", "go")
	released(t, g.loop)
	_, err := g.loop.Resume(t.Context(), engine.ResumeRequest{
		SessionID: "s", Mode: fact.ModeWithConfirmation, Approved: true, Answers: []engine.Submission{
			{ToolCallID: "ask", Kind: fact.SubmitClientResult, Result: json.RawMessage(`"fog"`)},
			{ToolCallID: "more", Kind: fact.SubmitApproval, Reason: "once is enough"},
		},
	})
	require.NoError(t, err)
	state := g.ended("s")
	require.Equal(t, projector.SessionCompleted, state.Status)
	told := toldOf(&state.Session)
	require.Equal(t, `"fog"`, told["ask"])
	require.Equal(t, "1", told["pay"])
	require.Contains(t, told["more"], "was not approved")
	require.EqualValues(t, 1, paid.Load())
}
