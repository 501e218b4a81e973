package engine_test

import (
	"context"
	"encoding/json"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/engine/timetravel"
	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/projector"
)

// Things that happen at the same time.

// until is a tool that works until it may end. It counts its executions.
type until struct {
	began, done atomic.Int32
	may         chan struct{}
}

func newUntil() *until { return &until{may: make(chan struct{})} }

func (u *until) tool(name string) agentloop.Tool {
	return agentloop.Tool{Name: name, Execute: func(ctx context.Context, _ *agentloop.Call, _ json.RawMessage) (any, error) {
		u.began.Add(1)
		select {
		case <-u.may:
			u.done.Add(1)
			return "ok", nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}}
}

func (u *until) agent() agentloop.Agent {
	return agentloop.Agent{
		Name: "payer", Model: script(call("pay", `{}`), scripted.Turn{Text: "Paid."}), Tools: []agentloop.Tool{u.tool("pay")},
	}
}

func heard(t *projector.Tree) bool { return t.Turn != nil && t.Turn.Stop != nil && t.Turn.Stop.Heard }

func started(typ string) func(eventlog.Record) bool {
	return func(r eventlog.Record) bool { return r.Type == typ }
}

func TestAnInterruptLetsAToolBesideASubAgentComeToItsEnd(t *testing.T) {
	own, kids := newUntil(), newUntil()
	g := newRig(t,
		agentloop.Agent{
			Name: "boss", SubAgents: []agentloop.SubAgent{{Agent: "kid"}}, Tools: []agentloop.Tool{own.tool("pay")},
			Model: script(scripted.Turn{ToolCalls: []scripted.Call{
				{ID: "a", Name: "subagent__kid", Arguments: json.RawMessage(`{"message":"go"}`)}, {ID: "b", Name: "pay"},
			}}, scripted.Turn{Text: "Done."}),
		},
		agentloop.Agent{
			Name: "kid", OutputSchema: json.RawMessage(`{"type":"object"}`), Tools: []agentloop.Tool{kids.tool("work")},
			Model: script(call("work", `{}`), call(agentloop.FinishTool, `{}`)),
		})
	g.start("s", "boss", "go")
	for _, tool := range []string{"pay", "work"} {
		g.until("s", func(r eventlog.Record) bool {
			var start eventlog.ToolStart
			return r.Type == "tool_start" && json.Unmarshal(r.Payload, &start) == nil && start.ToolName == tool
		})
	}
	require.NoError(t, g.loop.Interrupt(t.Context(), "s", "wait"))
	g.comes("s", heard)
	close(own.may)
	close(kids.may)
	require.NoError(t, g.loop.AwaitStop(t.Context(), "s"))
	_, err := g.loop.Resume(t.Context(), engine.ResumeRequest{SessionID: "s"})
	require.NoError(t, err)
	require.Equal(t, projector.SessionCompleted, g.ended("s").Status)
	require.EqualValues(t, 1, own.done.Load())
	require.EqualValues(t, own.done.Load(), own.began.Load(), "nothing was cut off")
	require.EqualValues(t, 1, kids.began.Load())
}

func TestWhoHasHeardAndDiesIsTakenOver(t *testing.T) {
	t.Parallel() // most of it is waiting
	log, u := memory.New(), newUntil()
	first, second := newRigOn(t, log, u.agent()), newRigOn(t, log, u.agent())
	first.start("s", "payer", "go")
	first.until("s", started("tool_start"))
	require.NoError(t, second.loop.Interrupt(t.Context(), "s", "wait"))
	second.comes("s", heard)
	first.loop.Stop() // as a crash
	require.NoError(t, second.loop.Interrupt(t.Context(), "s", "wait"), "asked again")
	require.NoError(t, second.loop.AwaitStop(t.Context(), "s"))
	require.Equal(t, projector.SessionInterrupted, stateOf(t, log, "s").Status)
}

func TestAResumeBehindAnInterruptVoidsIt(t *testing.T) {
	u := newUntil()
	g := newRig(t, u.agent())
	g.start("s", "payer", "go")
	g.until("s", started("tool_start"))
	require.NoError(t, g.loop.Interrupt(t.Context(), "s", "wait"))
	_, err := g.loop.Resume(t.Context(), engine.ResumeRequest{SessionID: "s"})
	require.NoError(t, err)
	close(u.may)
	require.Equal(t, projector.SessionCompleted, g.ended("s").Status)
	require.EqualValues(t, 1, u.began.Load())
}

func TestAResumeBehindAnAbortIsTooLate(t *testing.T) {
	t.Parallel() // most of it is waiting
	log, u := memory.New(), newUntil()
	first, second := newRigOn(t, log, u.agent()), newRigOn(t, log, u.agent())
	first.start("s", "payer", "go")
	first.until("s", started("tool_start"))
	first.loop.Stop() // as a crash
	require.NoError(t, second.loop.Abort(t.Context(), "s", "for good"))
	_, err := second.loop.Resume(t.Context(), engine.ResumeRequest{SessionID: "s"})
	require.ErrorIs(t, err, agentloop.ErrAlreadyCompleted)
	require.Equal(t, projector.SessionFailed, second.ended("s").Status)
}

// slowEnd is a log that takes its time to take a sub-agent's end.
type slowEnd struct {
	eventlog.Log
	takes time.Duration
}

func (l slowEnd) Append(ctx context.Context, session string, expected uint64, entries []eventlog.Entry) (uint64, error) {
	if slices.ContainsFunc(entries, func(e eventlog.Entry) bool { return e.Agent != session && e.Type == "run_ended" }) {
		time.Sleep(l.takes)
	}
	return l.Log.Append(ctx, session, expected, entries)
}

func TestADeadlineThatMeetsTheSubAgentsEndFailsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		may := make(chan struct{})
		log := slowEnd{memory.New(), time.Second}
		g := newRigOn(t, log,
			agentloop.Agent{
				Name: "boss",
				PersistentAgents: []agentloop.PersistentAgent{
					{Agent: "kid", Mode: agentloop.NonBlocking}, {Agent: "other", Mode: agentloop.Blocking},
				},
				Model: unmoved{script(
					scripted.Turn{ToolCalls: []scripted.Call{companionCall("1", "spawnAgent", `{"agent":"kid","name":"m","initialMessage":"go"}`)}},
					scripted.Turn{ToolCalls: []scripted.Call{companionCall("2", "waitForResult", `{"name":"m","timeoutMs":500}`)}},
					scripted.Turn{Text: "Done."})},
			},
			agentloop.Agent{Name: "kid", Model: saysWhen("Worked.", may)},
			agentloop.Agent{Name: "other", Model: saysWhen("Worked.", may)})
		g.start("s", "boss", "go")
		synctest.Wait()
		close(may)
		state := g.ended("s")
		require.Equal(t, projector.SessionCompleted, state.Status)
		require.Empty(t, state.Parked)
	})
}

func TestASubAgentsEndLeavesItsParentsModelAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kidMay, bossMay := make(chan struct{}), make(chan struct{})
		var asked atomic.Int32
		spawn := script(scripted.Turn{ToolCalls: []scripted.Call{companionCall("1", "spawnAgent", `{"agent":"kid","name":"m","initialMessage":"go"}`)}})
		think := saysWhen("Done.", bossMay)
		boss := modelFunc(func(ctx context.Context, req model.Request, emit func(model.Event) error) (model.Answer, error) {
			if len(req.Messages) == 1 {
				return spawn.Generate(ctx, req, emit)
			}
			asked.Add(1)
			return think.Generate(ctx, req, emit)
		})
		g := newRig(t,
			agentloop.Agent{Name: "boss", PersistentAgents: []agentloop.PersistentAgent{{Agent: "kid", Mode: agentloop.NonBlocking}}, Model: boss},
			agentloop.Agent{Name: "kid", Model: saysWhen("Worked.", kidMay)})
		g.start("s", "boss", "go")
		synctest.Wait()
		close(kidMay)
		g.comes("s", func(t *projector.Tree) bool { return t.Get("s-agent-m") != nil && t.Get("s-agent-m").Over() })
		synctest.Wait()
		close(bossMay)
		require.Equal(t, projector.SessionCompleted, g.ended("s").Status)
		require.EqualValues(t, 1, asked.Load())
	})
}

func TestAForkKeepsASubAgentTerminated(t *testing.T) {
	g := newRig(t,
		agentloop.Agent{
			Name: "boss", PersistentAgents: []agentloop.PersistentAgent{{Agent: "kid", Mode: agentloop.NonBlocking}},
			Model: unmoved{script(
				scripted.Turn{ToolCalls: []scripted.Call{companionCall("1", "spawnAgent", `{"agent":"kid","name":"m","initialMessage":"go"}`)}},
				scripted.Turn{ToolCalls: []scripted.Call{companionCall("2", "terminateChild", `{"name":"m"}`)}},
				scripted.Turn{Text: "Done."})},
		},
		agentloop.Agent{Name: "kid", Model: hanging{}})
	g.start("s", "boss", "go")
	g.ended("s")
	var at uint64
	for r, err := range g.log.Read(t.Context(), "s", 0, 0) {
		require.NoError(t, err)
		if r.Type == "tool_end" && r.Call == "2" {
			at = r.Sequence
		}
	}
	_, err := g.loop.TimeTravel.Fork(t.Context(), timetravel.ForkRequest{FromSessionID: "s", At: timetravel.Target{Sequence: at}, NewSessionID: "f"})
	require.NoError(t, err)
	_, err = g.loop.Resume(t.Context(), engine.ResumeRequest{SessionID: "f"})
	require.NoError(t, err)
	state := g.comes("f", func(t *projector.Tree) bool {
		kid := t.Get("f-agent-m")
		return t.Over() && kid != nil && kid.Over()
	})
	require.Equal(t, projector.SessionFailed, state.Get("f-agent-m").Status)
}
