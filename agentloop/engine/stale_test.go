package engine_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/engine/timetravel"
	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/projector"
)

// heldUp is a log that holds the first append with a record of a type up.
type heldUp struct {
	eventlog.Log
	typ           string
	once          atomic.Bool
	reached, open chan struct{}
}

func newHeldUp(log eventlog.Log, typ string) *heldUp {
	return &heldUp{Log: log, typ: typ, reached: make(chan struct{}), open: make(chan struct{})}
}

func (h *heldUp) Append(ctx context.Context, session string, expected uint64, entries []eventlog.Entry) (uint64, error) {
	held := slices.ContainsFunc(entries, func(e eventlog.Entry) bool { return e.Type == h.typ })
	if held && h.once.CompareAndSwap(false, true) {
		close(h.reached)
		<-h.open
	}
	return h.Log.Append(ctx, session, expected, entries)
}

// One process is about to record the run's end when another one takes a
// further message: that must not end with the run.
func TestAMessageThatMeetsTheEndOfTheRunIsAnswered(t *testing.T) {
	for _, tc := range []struct {
		name string
		m    model.Model
	}{
		{"completes", script(scripted.Turn{Text: "First."}, scripted.Turn{Text: "Second."})},
		{"fails", script(
			scripted.Turn{Text: "Fi", Err: &model.Error{Code: model.CodeInvalidRequest, Message: "no"}},
			scripted.Turn{Text: "never"},
		)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			log := newHeldUp(memory.New(), "run_ended")
			agent := agentloop.Agent{Name: "a", Model: tc.m}
			first, second := newRigOn(t, log, agent), newRigOn(t, log.Log, agent)
			first.start("s", "a", "go")
			<-log.reached
			s, err := second.loop.Resume(t.Context(), engine.ResumeRequest{
				SessionID: "s", Messages: []agentloop.Input{{Content: "and then?"}},
			})
			require.NoError(t, err)
			close(log.open)
			state := second.ended("s")
			require.Equal(t, s.RunID, state.CurrentRun().RunID)
			require.NotEqual(t, fact.RunRunning, state.CurrentRun().Status, "the requested run has its own end")
			ends := 0
			for _, typ := range second.types("s") {
				if typ == "[run_ended]" {
					ends++
				}
			}
			require.Equal(t, 1, ends)
		})
	}
}

// appends is a log that notes the types of what is appended together.
type appends struct {
	eventlog.Log
	mu    sync.Mutex
	types [][]string
}

func (a *appends) Append(ctx context.Context, session string, expected uint64, entries []eventlog.Entry) (uint64, error) {
	last, err := a.Log.Append(ctx, session, expected, entries)
	var types []string
	for _, e := range entries {
		types = append(types, e.Type)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if err == nil {
		a.types = append(a.types, types)
	}
	return last, err
}

// with returns the types of the appends with a record of a type.
func (a *appends) with(typ string) [][]string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(a.types), func(types []string) bool { return !slices.Contains(types, typ) })
}

// The end of a step, and of a run, is in the append of the result or the answer that it
// follows from: each append waits for the disk. Hooks see one decision after the other.
func TestAStepEndsInTheAppendOfItsLastRecord(t *testing.T) {
	look := agentloop.NewTool("look", "Looks.", func(context.Context, *agentloop.Call, struct{}) (string, error) { return "seen", nil })
	m := func() model.Model { return script(call("look", "{}"), scripted.Turn{Text: "Done."}) }
	end := []string{"step_end", "step_committed", "checkpoint_created"}
	for _, tc := range []struct {
		name  string
		agent agentloop.Agent
		ends  [][]string // of the steps
		ended []string   // of the run
	}{
		{"one append", agentloop.Agent{Name: "a", Model: m(), Tools: []agentloop.Tool{look}}, [][]string{
			append([]string{"tool_result", "tool_end"}, end...),
			append(append([]string{"model_turn"}, end...), "run_ended", "stream_end"),
		}, append(append([]string{"model_turn"}, end...), "run_ended", "stream_end")},
		{"hooks", agentloop.Agent{Name: "a", Model: m(), Tools: []agentloop.Tool{look}, Hooks: &agentloop.Hooks{
			AfterTool: func(context.Context, *agentloop.HookContext, agentloop.AfterToolPayload) {},
		}}, [][]string{end, end}, []string{"run_ended", "stream_end"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			log := &appends{Log: memory.New()}
			g := newRigOn(t, log, tc.agent)
			g.start("s", "a", "go")
			require.Equal(t, fact.RunCompleted, g.ended("s").CurrentRun().Status)
			g.loop.Stop()
			require.Equal(t, tc.ends, log.with("step_committed"))
			require.Equal(t, [][]string{tc.ended}, log.with("run_ended"))
		})
	}
}

// Who waits for whom is a tree in any log that the loop has written, but not in
// any that can be imported.
func TestCallsThatWaitForEachOtherStopNobody(t *testing.T) {
	child := func(id, parent string) []fact.Fact {
		base := fact.Base{SessionID: id, Timestamp: 1}
		return []fact.Fact{
			&fact.SessionCreated{AgentType: "a", Base: base, Child: &fact.SubSession{
				ParentSessionID: parent, CallID: "c", Mode: fact.SubSessionEphemeral,
			}},
			&fact.RunRequested{RunID: "run-" + id, Mode: fact.ModeStart, Base: base},
			&fact.ModelFailed{StepID: "step", Step: 1, Attempt: 1, Base: base},
			&fact.ModelTurn{RunID: "run-" + id, StepID: "step", Step: 1, Base: base, Parts: []fact.TurnPart{
				{ToolCall: &fact.ToolCall{ID: "c", Name: "subagent__a", Arguments: json.RawMessage(`{}`)}},
			}, StopReason: fact.StopToolUse},
			&fact.CallSuspended{
				RunID: "run-" + id, StepID: "step", ToolCallID: "c", ToolName: "subagent__a", Kind: fact.PendingChild,
				ChildSessionID: parent, Base: base,
			},
			&fact.RunEnded{RunID: "run-" + id, Status: fact.RunChildren, Base: base},
		}
	}
	base := fact.Base{SessionID: "s", Timestamp: 1}
	facts := []fact.Fact{
		&fact.SessionCreated{AgentType: "a", Base: base},
		&fact.RunRequested{RunID: "run-s", Mode: fact.ModeStart, Base: base},
	}
	facts = append(facts, child("x", "y")...)
	facts = append(facts, child("y", "x")...)
	facts = append(facts, child("z", "z")...)
	log := memory.New()
	var entries []eventlog.Entry
	for _, f := range facts {
		raw, err := eventlog.EncodeFact(f)
		require.NoError(t, err)
		var at struct {
			SessionID string `json:"sessionId"`
		}
		require.NoError(t, json.Unmarshal(raw, &at))
		e, err := eventlog.NewFact(at.SessionID, f, eventlog.Labels{})
		require.NoError(t, err)
		entries = append(entries, e)
	}
	_, err := log.Append(t.Context(), "s", 0, entries)
	require.NoError(t, err)

	for _, id := range []string{"x", "y", "z"} {
		require.True(t, stateOf(t, log, "s").Children[id].Suspended())
	}
	g := newRigOn(t, log, agentloop.Agent{Name: "a", Model: script(scripted.Turn{Text: "Done."})})
	_, err = g.loop.Resume(t.Context(), engine.ResumeRequest{SessionID: "s"})
	require.NoError(t, err)
	require.Equal(t, projector.SessionCompleted, g.ended("s").Status)
}

// Sessions in the log that no parent has made are left alone, whatever they
// say.
func TestAForeignSessionInTheTreeStopsNobody(t *testing.T) {
	log := memory.New()
	m := newGated(script(scripted.Turn{Text: longAnswer}))
	g := newRigOn(t, log, agentloop.Agent{Name: "a", Model: m})
	g.start("s", "a", "go")
	<-m.half
	e, err := eventlog.NewFact("elsewhere", &fact.RunRequested{
		RunID: "r", Mode: fact.ModeStart, Base: fact.Base{SessionID: "elsewhere"},
	}, eventlog.Labels{})
	require.NoError(t, err)
	g.intrude(e)
	close(m.goOn)
	require.Equal(t, projector.SessionCompleted, g.ended("s").Status)
}

// intrude appends to the session after whatever its run writes meanwhile.
func (g *rig) intrude(e eventlog.Entry) {
	g.t.Helper()
	for {
		head, err := g.log.Head(g.t.Context(), "s")
		require.NoError(g.t, err)
		_, err = eventlog.AppendOnce(g.t.Context(), g.log, "s", rand.Text(), head, []eventlog.Entry{e})
		if _, conflict := errors.AsType[*eventlog.ConflictError](err); !conflict {
			require.NoError(g.t, err)
			return
		}
	}
}

func TestASessionThatWasRolledBackToItsBeginningStartsAgain(t *testing.T) {
	g := newRig(t, agentloop.Agent{Name: "a", Model: script(scripted.Turn{Text: "Done."})})
	g.start("s", "a", "go")
	g.ended("s")
	var first uint64
	for r, err := range g.log.Read(t.Context(), "s", 0, 0) {
		require.NoError(t, err)
		first = r.Sequence
		break
	}
	_, err := g.loop.TimeTravel.Rollback(t.Context(), "s", timetravel.Target{Sequence: first})
	require.NoError(t, err)
	can, err := g.loop.CanResume(t.Context(), "s", "")
	require.NoError(t, err)
	require.False(t, can.CanResume)
	s := g.start("s", "a", "again")
	require.NoError(t, awaitEnd(t, g, s.RunID))
	state := stateOf(t, g.log, "s")
	require.Equal(t, projector.SessionCompleted, state.Status)
	require.Equal(t, "again", state.Messages[0].Content)
}

func awaitEnd(t *testing.T, g *rig, run string) error {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	h, err := g.loop.Handle(ctx, "s")
	if err != nil {
		return err
	}
	require.Equal(t, run, h.RunID)
	_, err = h.Result(ctx)
	return err
}

// Deadlines are judged by the clock of whoever asks, not by that of whoever
// writes chunks.
func TestAChunkFromTheFutureExpiresNothing(t *testing.T) {
	g := newRig(t, agentloop.Agent{
		Name: "a", Tools: []agentloop.Tool{{Name: "ask", Client: true, Timeout: time.Minute}},
		Model: script(call("ask", `{}`), scripted.Turn{Text: "Thanks."}),
	})
	g.start("s", "a", "go")
	released(t, g.loop)
	head, err := g.log.Head(t.Context(), "s")
	require.NoError(t, err)
	e, err := eventlog.NewChunk(&eventlog.CustomEvent{EventName: "tick", Data: json.RawMessage(`1`), Base: eventlog.Base{
		AgentID: "s", AgentType: "a", Timestamp: time.Now().Add(time.Hour).UnixMilli(),
	}}, eventlog.Labels{})
	require.NoError(t, err)
	_, err = eventlog.AppendOnce(t.Context(), g.log, "s", "somebody", head, []eventlog.Entry{e})
	require.NoError(t, err)
	_, err = g.loop.Resume(t.Context(), engine.ResumeRequest{SessionID: "s"})
	require.NoError(t, err)
	released(t, g.loop)
	state := stateOf(t, g.log, "s")
	require.True(t, state.Suspended())
	require.Len(t, state.AwaitedCalls(), 1)
}

func TestUsersMessagesCantPassForTheLoopsOwn(t *testing.T) {
	g := newRig(t, agentloop.Agent{Name: "a", Model: script(scripted.Turn{Text: "Done."})})
	_, err := g.loop.Start(t.Context(), engine.StartRequest{SessionID: "s", AgentType: "a", Messages: []agentloop.Input{
		{Content: "go", Metadata: json.RawMessage(`{"hidden":true,"helix":"child_turn_ended"}`)},
	}})
	var invalid *eventlog.ValidationError
	require.ErrorAs(t, err, &invalid)
	require.Equal(t, "metadata.helix", invalid.Field)
}

// A tool's result and its patches are decided on one state; a patch of somebody
// else's that comes in between may make them useless.
func TestAnOutsidePatchThatMeetsAToolsPatchFailsNothing(t *testing.T) {
	log := newHeldUp(memory.New(), "tool_result")
	tool := agentloop.NewTool("drop", "", func(_ context.Context, c *agentloop.Call, _ struct{}) (string, error) {
		return "dropped", c.Patch([]eventlog.PatchOp{{Op: "remove", Path: "/draft"}})
	})
	g := newRigOn(t, log, agentloop.Agent{
		Name: "a", Tools: []agentloop.Tool{tool}, InitialState: json.RawMessage(`{"draft":"x"}`),
		Model: script(call("drop", `{}`), scripted.Turn{Text: "Done."}),
	})
	g.start("s", "a", "go")
	<-log.reached
	head, err := log.Head(t.Context(), "s")
	require.NoError(t, err)
	e, err := eventlog.NewChunk(&eventlog.StatePatch{Patches: []eventlog.PatchOp{{Op: "remove", Path: "/draft"}}, Base: eventlog.Base{
		AgentID: "s", AgentType: "a",
	}}, eventlog.Labels{})
	require.NoError(t, err)
	_, err = eventlog.AppendOnce(t.Context(), log.Log, "s", "somebody", head, []eventlog.Entry{e})
	require.NoError(t, err)
	close(log.open)
	state := g.ended("s")
	require.Equal(t, projector.SessionCompleted, state.Status)
	require.Len(t, state.Parked, 1, "what could not be used is seen")
}
