package engine_test

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/projector"
)

// comes waits until the session's state is as wanted.
func (g *rig) comes(session string, wanted func(*projector.Tree) bool) *projector.Tree {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(g.t.Context(), time.Minute)
	defer cancel()
	t := new(projector.Tree)
	for r, err := range g.log.Follow(ctx, session, 0) {
		require.NoError(g.t, err)
		if projector.Apply(t, r); wanted(t) {
			break
		}
	}
	return t
}

// payer is an agent whose tool works for a while, and what counts its
// executions. It tells of itself every now and then, if that is not 0.
func payer(works, tells time.Duration) (a agentloop.Agent, began *atomic.Int32) {
	began = new(atomic.Int32)
	return agentloop.Agent{
		Name: "payer", Model: script(call("pay", `{}`), scripted.Turn{Text: "Paid."}),
		Tools: []agentloop.Tool{{Name: "pay", Execute: func(ctx context.Context, c *agentloop.Call, _ json.RawMessage) (any, error) {
			began.Add(1)
			end := time.After(works)
			for {
				var tell <-chan time.Time
				if tells > 0 {
					tell = time.After(tells)
				}
				select {
				case <-end:
					return "ok", nil
				case <-tell:
					if err := c.Emit(ctx, "progress", nil); err != nil {
						return nil, err
					}
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			}
		}}},
	}, began
}

// A process that takes a run over cancels its tools; an interrupt lets them finish, also
// if it comes from another process.
func TestAnInterruptFromAnotherProcessLetsAToolComeToItsEnd(t *testing.T) {
	for name, tool := range map[string]struct{ works, tells time.Duration }{
		"a silent one":             {works: 8 * time.Minute},
		"one that tells of itself": {works: time.Minute, tells: 8 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				agent, began := payer(tool.works, tool.tells)
				log := memory.New()
				first, second := newRigOn(t, log, agent), newRigOn(t, log, agent)
				first.start("s", "payer", "go")
				synctest.Wait()
				require.NoError(t, second.loop.Interrupt(t.Context(), "s", "wait"))
				require.NoError(t, second.loop.AwaitStop(t.Context(), "s"))
				require.Equal(t, 1, claims(t, log))

				_, err := second.loop.Resume(t.Context(), engine.ResumeRequest{SessionID: "s"})
				require.NoError(t, err)
				require.Equal(t, projector.SessionCompleted, second.ended("s").Status)
				require.EqualValues(t, 1, began.Load())
			})
		})
	}
}

// A process that has died does not say that it has heard.
func TestAStopTakesASilentRunOver(t *testing.T) {
	for name, c := range map[string]struct {
		stop func(*engine.Loop, context.Context, string, string) error
		want projector.SessionStatus
		in   time.Duration
	}{
		"interrupt": {(*engine.Loop).Interrupt, projector.SessionInterrupted, time.Second},
		"abort":     {(*engine.Loop).Abort, projector.SessionFailed, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				agent, _ := payer(time.Hour, 0)
				log := memory.New()
				first, second := newRigOn(t, log, agent), newRigOn(t, log, agent)
				first.start("s", "payer", "go")
				synctest.Wait()
				first.loop.Stop() // as a crash
				asked := time.Now()
				require.NoError(t, c.stop(second.loop, t.Context(), "s", "wait"))
				require.NoError(t, second.loop.AwaitStop(t.Context(), "s"))
				require.Equal(t, c.in, time.Since(asked))
				require.Equal(t, c.want, stateOf(t, log, "s").Status)
			})
		})
	}
}

// An agent that no node has any more.
func TestASessionWithoutItsAgentCanBeAborted(t *testing.T) {
	for name, c := range map[string]struct {
		agents []agentloop.Agent
		there  func(*projector.Tree) bool
	}{
		"that waits": {
			[]agentloop.Agent{{Name: "old", Model: script(call("ask", `{}`)), Tools: []agentloop.Tool{{Name: "ask", Client: true}}}},
			func(t *projector.Tree) bool { return t.Suspended() },
		},
		"whose sub-agent waits": {
			[]agentloop.Agent{handsOver("old"), asker()},
			func(t *projector.Tree) bool { return t.Suspended() },
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := newRig(t, c.agents...)
			g.start("s", "old", "hi")
			g.comes("s", c.there)
			g.loop.Stop()

			h := newRigOn(t, g.log, agentloop.Agent{Name: "new", Model: script(scripted.Turn{Text: "x"})})
			require.NoError(t, h.loop.Abort(t.Context(), "s", "away with it"))
			state := h.ended("s")
			require.Equal(t, agentloop.CodeAborted, state.Error.Code)
			for _, s := range state.Sessions() {
				require.Equal(t, projector.SessionFailed, s.Status, s.SessionID)
			}
			require.Empty(t, state.Parked)
		})
	}
}

const anyObject = `{"type":"object"}`

// handsOver is an agent that hands its task to the agent kid.
func handsOver(name string) agentloop.Agent {
	return agentloop.Agent{Name: name, SubAgents: []agentloop.SubAgent{{Agent: "kid"}}, Model: script(
		scripted.Turn{ToolCalls: []scripted.Call{{ID: "k", Name: "subagent__kid", Arguments: json.RawMessage(`{"message":"go"}`)}}},
		scripted.Turn{Text: "Done."},
	)}
}

// asker is a sub-agent, kid, that asks its user.
func asker() agentloop.Agent {
	return agentloop.Agent{
		Name: "kid", OutputSchema: json.RawMessage(anyObject), Tools: []agentloop.Tool{{Name: "ask", Client: true}},
		Model: script(call("ask", `{}`), scripted.Turn{ToolCalls: []scripted.Call{
			{ID: "f", Name: agentloop.FinishTool, Arguments: json.RawMessage(`{}`)},
		}}),
	}
}
