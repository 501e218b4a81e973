package engine_test

import (
	"context"
	"math"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/engine/timetravel"
	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/agentloop/verify"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/logtest"
	"github.com/helixd/helixd/projector"
)

// hangsOnce is a model whose first answer never comes, and what counts its calls.
func hangsOnce(hangs chan<- struct{}) (m model.Model, asked *atomic.Int32) {
	asked = new(atomic.Int32)
	return modelFunc(func(ctx context.Context, _ model.Request, emit func(model.Event) error) (model.Answer, error) {
		if asked.Add(1) == 1 {
			hangs <- struct{}{}
			<-ctx.Done()
			return model.Answer{}, ctx.Err()
		}
		return model.Answer{StopReason: fact.StopEndTurn}, emit(model.TextDelta{Text: "I am back."})
	}), asked
}

// A rollback interrupts the sub-agents that worked at that record, as it does their parent: no
// node continues with them until the session is resumed, or has its next turn.
func TestARollbackInterruptsSubAgents(t *testing.T) {
	const kid = "s-agent-k"
	for name, c := range map[string]struct {
		back   func(*testing.T, *rig) timetravel.Target
		status projector.SessionStatus
		resume func(*rig) error
	}{
		"into their parent's turn": {
			func(t *testing.T, g *rig) timetravel.Target {
				return timetravel.Target{CheckpointID: stateOf(t, g.log, "s").Checkpoints[0].ID}
			},
			projector.SessionInterrupted,
			func(g *rig) error {
				_, err := g.loop.Resume(g.t.Context(), engine.ResumeRequest{SessionID: "s"})
				return err
			},
		},
		"to the end of their parent's turn": {
			func(t *testing.T, g *rig) timetravel.Target {
				records := logtest.Records(t, g.log, "s")
				end := slices.IndexFunc(records, func(r eventlog.Record) bool { return r.Type == "stream_end" })
				return timetravel.Target{Sequence: records[end].Sequence}
			},
			projector.SessionCompleted,
			func(g *rig) error {
				_, err := g.loop.Execute(g.t.Context(), engine.StartRequest{
					SessionID: "s", AgentType: "boss", Messages: []agentloop.Input{{Content: "more"}},
				})
				return err
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			hangs := make(chan struct{}, 1)
			works, asked := hangsOnce(hangs)
			agents := []agentloop.Agent{
				{
					Name: "boss", PersistentAgents: []agentloop.PersistentAgent{{Agent: "kid", Mode: agentloop.NonBlocking}},
					Model: unmoved{script(
						scripted.Turn{ToolCalls: []scripted.Call{companionCall("1", "spawnAgent", `{"agent":"kid","name":"k","initialMessage":"go"}`)}},
						done, done, done)},
				},
				{Name: "kid", Model: works},
			}
			g := newRig(t, agents...)
			g.start("s", "boss", "go")
			<-hangs
			g.comes("s", (*projector.Tree).Over)
			_, err := g.loop.Execute(t.Context(), engine.StartRequest{
				SessionID: "s", AgentType: "boss", Messages: []agentloop.Input{{Content: "go on"}},
			})
			require.NoError(t, err)
			g.comes("s", func(t *projector.Tree) bool { return t.TurnCount == 2 && t.Over() })

			_, err = g.loop.TimeTravel.Rollback(t.Context(), "s", c.back(t, g))
			require.NoError(t, err)
			released(t, g.loop)
			state := stateOf(t, g.log, "s")
			require.Equal(t, c.status, state.Status)
			require.Equal(t, projector.SessionInterrupted, state.Get(kid).Status)
			g.loop.Offer("s", 1, true)
			released(t, g.loop)
			require.EqualValues(t, 1, asked.Load(), "no model is called")
			require.Equal(t, state.Head, stateOf(t, g.log, "s").Head)

			require.NoError(t, c.resume(g))
			g.comes("s", func(t *projector.Tree) bool { return t.Over() && t.Get(kid).Over() })
			require.EqualValues(t, 2, asked.Load())
			require.JSONEq(t, `"I am back."`, string(stateOf(t, g.log, "s").Get(kid).Output))
			pairsOf(t, g.log, "s")
			found, err := verify.Session(t.Context(), g.log.Read(t.Context(), "s", 0, 0), agents, nil)
			require.NoError(t, err)
			require.Nil(t, found.Differs)
		})
	}
}

// A caller that wants all checkpoints asks for as many as there may be.
func TestCheckpointsTakeAnyLimit(t *testing.T) {
	g := newRig(t, agentloop.Agent{Name: "a", Model: script(scripted.Turn{Text: "One."})})
	g.start("s", "a", "hi")
	g.ended("s")
	for offset, left := range []int{1, 0, 0} {
		page, total, err := g.loop.TimeTravel.Checkpoints(t.Context(), "s", math.MaxInt, offset)
		require.NoError(t, err)
		require.Len(t, page, left)
		require.Equal(t, 1, total)
	}
}
