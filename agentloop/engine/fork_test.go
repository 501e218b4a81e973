package engine_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/engine/timetravel"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
)

// answerAsk answers the call of the tool ask and resumes the session.
func (g *rig) answerAsk(session string) {
	g.t.Helper()
	_, err := g.loop.Submit(g.t.Context(), engine.Submission{
		SessionID: session, ToolCallID: "call-ask", Kind: fact.SubmitClientResult, Result: json.RawMessage(`1`),
	})
	require.NoError(g.t, err)
	_, err = g.loop.Resume(g.t.Context(), engine.ResumeRequest{SessionID: session})
	require.NoError(g.t, err)
}

// A sub-agent that nobody waits for works while its tree is forked.
func TestANonBlockingSubAgentGoesOnInAFork(t *testing.T) {
	may := make(chan struct{})
	g := newRig(t,
		agentloop.Agent{
			Name: "boss", Tools: []agentloop.Tool{{Name: "ask", Client: true}},
			PersistentAgents: []agentloop.PersistentAgent{{Agent: "kid", Mode: agentloop.NonBlocking}},
			Model: unmoved{script(scripted.Turn{ToolCalls: []scripted.Call{{
				ID: "1", Name: "companion__spawnAgent", Arguments: json.RawMessage(`{"agent":"kid","name":"m","initialMessage":"go"}`),
			}}}, call("ask", `{}`), scripted.Turn{Text: "Done."})},
		},
		agentloop.Agent{Name: "kid", Model: saysWhen("Worked.", may)})
	g.start("s", "boss", "go")
	g.comes("s", func(t *projector.Tree) bool { return t.Suspended() })
	_, err := g.loop.TimeTravel.Fork(t.Context(), timetravel.ForkRequest{FromSessionID: "s", NewSessionID: "f"})
	require.NoError(t, err)
	g.answerAsk("f")
	close(may)
	state := g.comes("f", func(t *projector.Tree) bool { return t.Get("f-agent-m") != nil && t.Get("f-agent-m").Over() })
	require.Equal(t, projector.SessionCompleted, state.Get("f-agent-m").Status)
	require.Empty(t, state.Parked)
}

// The ids of a fork's sub-agents are as long as ids may be, and nothing gets
// lost of what they wait for.
func TestAForkMayHaveALongID(t *testing.T) {
	long := strings.Repeat("f", eventlog.MaxSessionID)
	for _, c := range []struct{ from, to string }{{"s", long}, {strings.Repeat("s", eventlog.MaxSessionID), "f"}} {
		g := newRig(t, handsOver("boss"), asker())
		g.start(c.from, "boss", "go")
		g.comes(c.from, func(t *projector.Tree) bool { return t.Suspended() })
		_, err := g.loop.TimeTravel.Fork(t.Context(), timetravel.ForkRequest{FromSessionID: c.from, NewSessionID: c.to})
		require.NoError(t, err)
		g.answerAsk(c.to)
		state := g.ended(c.to)
		require.Equal(t, projector.SessionCompleted, state.Status)
		require.Len(t, state.Children, 1)
		require.Contains(t, state.Children, projector.ChildID(c.to, projector.InfixCall, "k"))
	}
}

// A request that is repeated does not need the session again from which the
// fork was made.
func TestAForkOutlivesItsOrigin(t *testing.T) {
	g := newRig(t, agentloop.Agent{Name: "a", Model: script(scripted.Turn{Text: "One."}, scripted.Turn{Text: "Two."}, scripted.Turn{Text: "Three."})})
	g.start("s", "a", "hi")
	head := g.ended("s").Head
	released(t, g.loop)
	at := timetravel.Target{CheckpointID: stateOf(t, g.log, "s").LatestCheckpoint().ID}
	execute := func(branch timetravel.ForkRequest) error {
		h, err := g.loop.Execute(t.Context(), engine.StartRequest{
			SessionID: "f", AgentType: "a", Messages: []agentloop.Input{{Content: "and?"}}, Branch: &branch,
		})
		if err == nil {
			_, err = h.Result(t.Context())
		}
		return err
	}
	origin := timetravel.ForkRequest{FromSessionID: "s", At: at}
	require.NoError(t, execute(origin))
	forkedFrom := stateOf(t, g.log, "f").ForkedFrom
	require.Less(t, forkedFrom.Sequence, head)
	_, err := g.log.Erase(t.Context(), "s")
	require.NoError(t, err)

	require.NoError(t, execute(origin))
	require.Len(t, stateOf(t, g.log, "f").Runs, 2)
	require.NoError(t, execute(timetravel.ForkRequest{FromSessionID: "s", At: timetravel.Target{Sequence: forkedFrom.Sequence}}))
	for _, other := range []timetravel.ForkRequest{
		{FromSessionID: "other"},
		{FromSessionID: "s", At: timetravel.Target{Sequence: head}},
	} {
		require.ErrorIs(t, execute(other), eventlog.ErrSessionNotFound)
	}
	_, err = g.loop.TimeTravel.Fork(t.Context(), timetravel.ForkRequest{FromSessionID: "s", At: at, NewSessionID: "new"})
	require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
}
