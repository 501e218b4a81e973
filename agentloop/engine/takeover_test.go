package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/projector"
)

// stuck is a model that says a word, says that it hangs, and hangs.
func stuck(hangs chan<- struct{}) model.Model {
	return modelFunc(func(ctx context.Context, _ model.Request, emit func(model.Event) error) (model.Answer, error) {
		if err := emit(model.TextDelta{Text: "Well"}); err != nil {
			return model.Answer{}, err
		}
		hangs <- struct{}{}
		<-ctx.Done()
		return model.Answer{}, ctx.Err()
	})
}

// saysWhen is a model that says a word when it may.
func saysWhen(text string, may <-chan struct{}) model.Model {
	return modelFunc(func(ctx context.Context, _ model.Request, emit func(model.Event) error) (model.Answer, error) {
		select {
		case <-may:
		case <-ctx.Done():
			return model.Answer{}, ctx.Err()
		}
		return model.Answer{StopReason: fact.StopEndTurn}, emit(model.TextDelta{Text: text})
	})
}

// released waits until a loop does not drive the session any more.
func released(t *testing.T, l *engine.Loop) {
	t.Helper()
	require.Eventually(t, func() bool { return !l.Live("s") }, time.Minute, time.Millisecond)
}

// claims counts the session's claims.
func claims(t *testing.T, log eventlog.Log) (n int) {
	t.Helper()
	for r, err := range log.Read(t.Context(), "s", 0, 0) {
		require.NoError(t, err)
		if r.Type == "run_claimed" {
			n++
		}
	}
	return n
}

func TestTheLoserOfATakeoverSaysSo(t *testing.T) {
	store := memory.New()
	hangs, may := make(chan struct{}, 1), make(chan struct{})
	first := newRigOn(t, store, agentloop.Agent{Name: "a", Model: stuck(hangs)})
	second := newRigOn(t, store, agentloop.Agent{Name: "a", Model: saysWhen("Done.", may)})
	first.start("s", "a", "go")
	<-hangs
	_, err := second.loop.Resume(t.Context(), engine.ResumeRequest{SessionID: "s"})
	require.NoError(t, err)
	released(t, first.loop)
	close(may)

	state := second.ended("s")
	require.Equal(t, projector.SessionCompleted, state.Status)
	require.JSONEq(t, `"Done."`, string(state.Output))
	require.Empty(t, state.Parked)
	said := 0
	for r, err := range eventlog.Effective(t.Context(), store, "s", 0, 0) {
		require.NoError(t, err)
		if r.Type == "executor_superseded" {
			said++
			require.Empty(t, r.Run, "it belongs to no run")
			require.Equal(t, "s", r.Agent)
		}
	}
	require.Equal(t, 1, said)
	require.Equal(t, 2, claims(t, store), "nobody takes it back")
}

// unreachable is a log that takes nothing while it is down.
type unreachable struct {
	eventlog.Log
	down atomic.Bool
}

func (u *unreachable) Append(ctx context.Context, session string, expected uint64, entries []eventlog.Entry) (uint64, error) {
	if u.down.Load() {
		return 0, errors.New("no route to the log")
	}
	return u.Log.Append(ctx, session, expected, entries)
}

func TestANodeThatWasCutOffDoesNotTakeItsRunBack(t *testing.T) {
	log := &unreachable{Log: memory.New()}
	hangs, may := make(chan struct{}), make(chan struct{})
	first := newRigOn(t, log, agentloop.Agent{Name: "a", Model: modelFunc(
		func(ctx context.Context, _ model.Request, emit func(model.Event) error) (model.Answer, error) {
			for range 2 {
				select {
				case hangs <- struct{}{}:
				case <-ctx.Done():
				}
			}
			return model.Answer{StopReason: fact.StopEndTurn}, emit(model.TextDelta{Text: "Too late."})
		})})
	second := newRigOn(t, log.Log, agentloop.Agent{Name: "a", Model: saysWhen("Done.", may)})
	first.start("s", "a", "go")
	<-hangs
	log.down.Store(true)
	<-hangs
	_, err := second.loop.Resume(t.Context(), engine.ResumeRequest{SessionID: "s"})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return claims(t, log.Log) == 2 }, time.Minute, time.Millisecond)
	log.down.Store(false)
	released(t, first.loop)
	close(may)
	require.JSONEq(t, `"Done."`, string(second.ended("s").Output))
	require.Equal(t, 2, claims(t, log.Log))
}

// silent is a log that answers nothing about custom events while it is down.
type silent struct {
	eventlog.Log
	down atomic.Bool
}

func (s *silent) Append(ctx context.Context, session string, expected uint64, entries []eventlog.Entry) (uint64, error) {
	custom := func(e eventlog.Entry) bool { return e.Type == "custom" }
	if s.down.Load() && slices.ContainsFunc(entries, custom) {
		<-ctx.Done()
		return 0, fmt.Errorf("%w: %w", eventlog.ErrOutcomeUnknown, context.Cause(ctx))
	}
	return s.Log.Append(ctx, session, expected, entries)
}

// A tool whose event the log does not take within the call's time has not
// failed: the call is made again when the log is back.
func TestALogOutageIsNoToolsFailure(t *testing.T) { synctest.Test(t, logOutageIsNoToolsFailure) }

func logOutageIsNoToolsFailure(t *testing.T) {
	log := &silent{Log: memory.New()}
	log.down.Store(true)
	var made atomic.Int32
	look := agentloop.NewTool("look", "", func(ctx context.Context, c *agentloop.Call, _ struct{}) (string, error) {
		if made.Add(1) > 1 {
			log.down.Store(false)
		}
		return "rain", c.Emit(ctx, "progress", map[string]int{"percent": 50})
	})
	look.Timeout = 50 * time.Millisecond
	g := newRigOn(t, log, agentloop.Agent{Name: "a", Tools: []agentloop.Tool{look}, Model: scripted.New([]scripted.Turn{
		{ToolCalls: []scripted.Call{{ID: "c", Name: "look"}}}, {Text: "It rains."},
	}, nil)})
	g.start("s", "a", "go")
	state := g.ended("s")
	require.JSONEq(t, `"It rains."`, string(state.Output))
	require.GreaterOrEqual(t, made.Load(), int32(2))
	for _, m := range state.Messages {
		require.Empty(t, m.ErrorCode)
	}
}

// suspensionGate is a log that holds the append of a suspension up.
type suspensionGate struct {
	eventlog.Log
	reached, open chan struct{}
	once          atomic.Bool
}

func (g *suspensionGate) Append(ctx context.Context, session string, expected uint64, entries []eventlog.Entry) (uint64, error) {
	suspends := slices.ContainsFunc(entries, func(e eventlog.Entry) bool { return e.Type == "run_paused" })
	if suspends && g.once.CompareAndSwap(false, true) {
		close(g.reached)
		<-g.open
	}
	return g.Log.Append(ctx, session, expected, entries)
}

// The client answers while the run is about to be suspended, and the response says that
// the run continues: then it does.
func TestAResumeThatMeetsTheSuspensionIsNotLost(t *testing.T) {
	log := &suspensionGate{Log: memory.New(), reached: make(chan struct{}), open: make(chan struct{})}
	g := newRigOn(t, log, agentloop.Agent{
		Name: "a", Tools: []agentloop.Tool{{Name: "ask", Client: true}}, Model: script(call("ask", `{}`), scripted.Turn{Text: "ok"}),
	})
	g.start("s", "a", "go")
	<-log.reached
	_, err := g.loop.Submit(t.Context(), engine.Submission{
		SessionID: "s", ToolCallID: "call-ask", Kind: fact.SubmitClientResult, Result: json.RawMessage(`1`),
	})
	require.NoError(t, err)
	_, err = g.loop.Resume(t.Context(), engine.ResumeRequest{SessionID: "s"})
	require.NoError(t, err)
	close(log.open)
	require.Equal(t, projector.SessionCompleted, g.ended("s").Status)
}

// An answer that comes before the run has stopped is taken up, though the stop
// was decided without it.
func TestAnAnswerThatMeetsTheSuspensionIsTakenUp(t *testing.T) {
	log := &suspensionGate{Log: memory.New(), reached: make(chan struct{}), open: make(chan struct{})}
	g := newRigOn(t, log, agentloop.Agent{
		Name: "a", Tools: []agentloop.Tool{{Name: "ask", Client: true}}, Model: script(call("ask", `{}`), scripted.Turn{Text: "ok"}),
	})
	g.start("s", "a", "go")
	<-log.reached
	_, err := g.loop.Submit(t.Context(), engine.Submission{
		SessionID: "s", ToolCallID: "call-ask", Kind: fact.SubmitClientResult, Result: json.RawMessage(`1`),
	})
	require.NoError(t, err)
	close(log.open)
	state := g.ended("s")
	require.Equal(t, projector.SessionCompleted, state.Status)
	require.Len(t, state.Runs, 1)
}

// Nobody resumes: the answer waits with the session.
func TestAnAnswerAloneDoesNotResume(t *testing.T) {
	g := newRig(t, agentloop.Agent{
		Name: "a", Tools: []agentloop.Tool{{Name: "ask", Client: true}}, Model: script(call("ask", `{}`), scripted.Turn{Text: "ok"}),
	})
	g.start("s", "a", "go")
	released(t, g.loop)
	_, err := g.loop.Submit(t.Context(), engine.Submission{
		SessionID: "s", ToolCallID: "call-ask", Kind: fact.SubmitClientResult, Result: json.RawMessage(`1`),
	})
	require.NoError(t, err)
	require.False(t, g.loop.Live("s"))
	state := stateOf(t, g.log, "s")
	require.True(t, state.Suspended())
	require.Len(t, state.Runs, 1)
}
