package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/modeltest"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/projector"
)

func TestArgumentsNestedWithoutEndAreToldToTheModel(t *testing.T) {
	deep := `{"by":` + strings.Repeat("[", 9000) + strings.Repeat("]", 9000) + `}`
	g := newRig(t, agentloop.Agent{Name: "a", Tools: []agentloop.Tool{addTool()}, Model: &talker{first: deep}})
	g.start("s", "a", "go")
	state := g.ended("s")
	require.Equal(t, projector.SessionCompleted, state.Status)
	require.Equal(t, agentloop.CodeToolInput, state.Messages[2].ErrorCode)
	require.Empty(t, state.Parked)
}

func TestArgumentsThatAreNotUTF8AreReplaced(t *testing.T) {
	g := newRig(t, agentloop.Agent{Name: "a", Tools: []agentloop.Tool{addTool()}, Model: &talker{first: "{\"by\":\"caf\xe9\"}"}})
	g.start("s", "a", "go")
	state := g.ended("s")
	require.Equal(t, projector.SessionCompleted, state.Status)
	require.Equal(t, "{\"by\":\"caf\uFFFD\"}", string(state.Messages[1].Parts[0].ToolCall.Arguments))
}

// A call that the output limit cuts off before its arguments does not run with empty ones, though the
// tool would take them. The model reads why.
func TestACallCutOffBeforeItsArgumentsIsRefused(t *testing.T) {
	for _, stop := range []fact.StopReason{fact.StopMaxTokens, fact.StopContentFilter} {
		cut := func(name string) scripted.Turn {
			return scripted.Turn{StopReason: stop, ToolCalls: []scripted.Call{
				{ID: "whole", Name: "clear", Arguments: json.RawMessage{}}, {ID: "cut", Name: name, Arguments: json.RawMessage{}},
			}}
		}
		for _, name := range []string{"clear", agentloop.FinishTool} {
			t.Run(fmt.Sprint(stop, " ", name), func(t *testing.T) {
				var ran []string
				clear := agentloop.Tool{Name: "clear", Execute: func(_ context.Context, c *agentloop.Call, args json.RawMessage) (any, error) {
					ran = append(ran, c.ID+string(args))
					return "cleared", nil
				}}
				g := newRig(t, agentloop.Agent{Name: "a", OutputSchema: json.RawMessage(`{"type":"object"}`), Tools: []agentloop.Tool{clear}, Model: script(
					cut(name), scripted.Turn{ToolCalls: []scripted.Call{{ID: "f", Name: agentloop.FinishTool, Arguments: json.RawMessage(`{"n":1}`)}}},
				)})
				g.start("s", "a", "go")
				state := g.ended("s")
				require.Equal(t, []string{"whole{}"}, ran, "another call follows it: it was complete")
				require.JSONEq(t, `{"n":1}`, string(state.Output))
				refused := state.Messages[3]
				require.Equal(t, "cut", refused.ToolCallID)
				require.Equal(t, agentloop.CodeToolInput, refused.ErrorCode)
				require.Contains(t, refused.Error, "the answer may have been cut off")
			})
		}
	}
}

// talker calls the tool add with given arguments, then says ok.
type talker struct {
	first string
	calls int
}

func (m *talker) Generate(_ context.Context, _ model.Request, emit func(model.Event) error) (model.Answer, error) {
	if m.calls++; m.calls > 1 {
		return model.Answer{StopReason: fact.StopEndTurn}, emit(model.TextDelta{Text: "ok"})
	}
	return model.Answer{StopReason: fact.StopToolUse}, errors.Join(
		emit(model.ToolCallStart{ID: "c", Name: "add"}), emit(model.ToolCallDelta{Text: m.first}), emit(model.ToolCallEnd{}))
}

// modelFunc is a model made of a function.
type modelFunc = modeltest.Func

func TestAModelThatMisbehavesFailsTheRunAlone(t *testing.T) {
	for name, m := range map[string]modelFunc{
		"panics": func(context.Context, model.Request, func(model.Event) error) (model.Answer, error) { panic("x") },
		"an unclassified error": func(context.Context, model.Request, func(model.Event) error) (model.Answer, error) {
			return model.Answer{}, errors.New("oops")
		},
		"a piece of no call": func(_ context.Context, _ model.Request, emit func(model.Event) error) (model.Answer, error) {
			return model.Answer{}, emit(model.ToolCallDelta{Call: 7, Text: "x"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := newRig(t, agentloop.Agent{Name: "a", Model: m})
			g.start("s", "a", "go")
			state := g.ended("s")
			require.Equal(t, projector.SessionFailed, state.Status)
		})
	}
}

func TestACallThatFailsBeforeItStreamsTruncatesNothing(t *testing.T) {
	calls := 0
	g := newRig(t, agentloop.Agent{Name: "a", Model: modelFunc(func(_ context.Context, _ model.Request, emit func(model.Event) error) (model.Answer, error) {
		if calls++; calls < 3 {
			return model.Answer{}, &model.Error{Code: model.CodeRateLimited, Message: "slow down", Retryable: true}
		}
		return model.Answer{StopReason: fact.StopEndTurn}, emit(model.TextDelta{Text: "ok"})
	})})
	g.start("s", "a", "go")
	require.Equal(t, projector.SessionCompleted, g.ended("s").Status)
	require.NotContains(t, g.types("s"), "stream_resync")
	require.Contains(t, g.types("s"), "[model_failed]")
}

// runCalls runs an agent that makes all calls of tool x at once.
func runCalls(t *testing.T, calls int, x func(context.Context, *agentloop.Call) (any, error)) *projector.Tree {
	t.Helper()
	var wanted []scripted.Call
	for i := range calls {
		wanted = append(wanted, scripted.Call{ID: fmt.Sprint("c", i), Name: "x", Arguments: json.RawMessage(`{}`)})
	}
	tool := agentloop.Tool{Name: "x", Execute: func(ctx context.Context, c *agentloop.Call, _ json.RawMessage) (any, error) { return x(ctx, c) }}
	g := newRig(t, agentloop.Agent{Name: "a", Tools: []agentloop.Tool{tool}, Model: script(scripted.Turn{ToolCalls: wanted}, scripted.Turn{Text: "ok"})})
	g.start("s", "a", "go")
	state := g.ended("s")
	require.Equal(t, projector.SessionCompleted, state.Status, "a tool's failure is not the run's: %v", state.Error)
	return state
}

func TestWhatCantBeRecordedIsTheCallsFailure(t *testing.T) {
	for name, x := range map[string]func(context.Context, *agentloop.Call) (any, error){
		"a result that is not UTF-8": func(context.Context, *agentloop.Call) (any, error) { return json.RawMessage("\"\xff\""), nil },
		"a result nested too deeply": func(context.Context, *agentloop.Call) (any, error) {
			return json.RawMessage(strings.Repeat("[", 2000) + strings.Repeat("]", 2000)), nil
		},
		"a result that is too large": func(context.Context, *agentloop.Call) (any, error) {
			return strings.Repeat("x", memory.MaxRecordBytes), nil
		},
		"a patch without a value": func(_ context.Context, c *agentloop.Call) (any, error) {
			return nil, c.Patch([]eventlog.PatchOp{{Op: "add", Path: "/a", Value: json.RawMessage(`1`)}, {Op: "test", Path: "/a"}})
		},
		"a state that is no object": func(_ context.Context, c *agentloop.Call) (any, error) {
			return nil, c.Patch([]eventlog.PatchOp{{Op: "replace", Path: "", Value: json.RawMessage(`[]`)}})
		},
		"too many updates": func(_ context.Context, c *agentloop.Call) (any, error) {
			for range 501 {
				if err := agentloop.UpdateState(c, func(s *counterState) error { s.Count++; return nil }); err != nil {
					return nil, err
				}
			}
			return "too many", nil
		},
		"updates within updates": func(_ context.Context, c *agentloop.Call) (any, error) {
			return nil, agentloop.UpdateState(c, func(*counterState) error {
				return agentloop.UpdateState(c, func(s *counterState) error { s.Count++; return nil })
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			state := runCalls(t, 1, x)
			require.Equal(t, agentloop.CodeToolFailed, state.Messages[2].ErrorCode)
			require.NotEmpty(t, state.Messages[2].Error)
			require.JSONEq(t, `{}`, state.CustomState.String())
			require.Empty(t, state.Parked)
		})
	}
	t.Run("an update that reads the state is fine", func(t *testing.T) {
		state := runCalls(t, 1, func(_ context.Context, c *agentloop.Call) (any, error) {
			return nil, agentloop.UpdateState(c, func(s *counterState) error {
				var now counterState
				s.Count = 7
				return c.GetState(&now)
			})
		})
		require.JSONEq(t, `{"count":7}`, state.CustomState.String())
	})
	t.Run("an update that panics when it runs again", func(t *testing.T) {
		var both sync.WaitGroup
		both.Add(2)
		state := runCalls(t, 2, func(_ context.Context, c *agentloop.Call) (any, error) {
			runs := 0
			err := agentloop.UpdateState(c, func(s *counterState) error {
				if runs++; runs > 1 {
					panic("again")
				}
				s.Count++
				return nil
			})
			both.Done()
			both.Wait()
			return nil, err
		})
		require.Equal(t, 2, state.Usage.ToolStats.FailedCalls, "the commit runs updates again")
	})
}

func TestAMessageBehindTheFinalAnswerIsHeard(t *testing.T) {
	agent := agentloop.Agent{Name: "a", OutputSchema: json.RawMessage(`{"type":"object"}`), Model: script(
		scripted.Turn{ToolCalls: []scripted.Call{{Name: "__finish__", Arguments: json.RawMessage(`{"n":1}`)}}})}
	for after := 1; ; after++ {
		store := memory.New()
		dying := &mortal{Log: store, dead: make(chan struct{})}
		dying.left.Store(int64(after))
		first := newRigOn(t, dying, agent)
		first.start("s", "a", "go")
		waitFor(t, store, dying.dead)
		first.loop.Stop()
		before := stateOf(t, store, "s")
		if before.StreamStatus.Terminal() {
			return
		}
		second := newRigOn(t, store, agent)
		_, err := second.loop.Resume(t.Context(), engine.ResumeRequest{SessionID: "s", Messages: []agentloop.Input{
			{Content: "Do it differently.", Metadata: json.RawMessage(`{"hidden":true}`)},
		}})
		require.NoError(t, err)
		state := second.ended("s")
		require.Equal(t, projector.SessionCompleted, state.Status, "after %d", after)
		last := 0
		for i, m := range state.Messages {
			if m.Role == projector.RoleAssistant {
				last = i
			}
		}
		heard := 0
		for i, m := range state.Messages {
			if m.Content == "Do it differently." {
				heard = i
			}
		}
		require.Less(t, heard, last, "after %d: the answer comes after the message", after)
	}
}

// waitFor waits until the process is dead or the stream has ended.
func waitFor(t *testing.T, log eventlog.Log, dead <-chan struct{}) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	go func() {
		select {
		case <-dead:
			cancel()
		case <-ctx.Done():
		}
	}()
	for r, err := range log.Follow(ctx, "s", 0) {
		if err != nil || r.Type == "stream_end" {
			return
		}
	}
}

func TestAFinishedCallIsRecordedThoughTheLoopStops(t *testing.T) {
	synctest.Test(t, finishedCallIsRecorded) // calls are not waited for for long
}

func finishedCallIsRecorded(t *testing.T) {
	store := memory.New()
	started, release := make(chan struct{}), make(chan struct{})
	var paid atomic.Int32
	pay := agentloop.NewTool("pay", "", func(context.Context, *agentloop.Call, struct{}) (string, error) {
		if paid.Add(1) == 1 {
			close(started)
			<-release
		}
		return "paid", nil
	})
	agent := agentloop.Agent{Name: "a", Tools: []agentloop.Tool{pay}, Model: script(call("pay", `{}`), scripted.Turn{Text: "ok"})}
	first := newRigOn(t, store, agent)
	first.start("s", "a", "go")
	<-started
	stopped := make(chan struct{})
	go func() {
		first.loop.Stop()
		close(stopped)
	}()
	synctest.Wait()
	_, err := first.loop.Resume(t.Context(), engine.ResumeRequest{SessionID: "s"})
	require.ErrorIs(t, err, agentloop.ErrStopping)
	close(release)
	<-stopped
	second := newRigOn(t, store, agent)
	_, err = second.loop.Resume(t.Context(), engine.ResumeRequest{SessionID: "s"})
	require.NoError(t, err)
	require.Equal(t, projector.SessionCompleted, second.ended("s").Status)
	require.EqualValues(t, 1, paid.Load())
}

// flickering is a log that is out of reach for a number of appends.
type flickering struct {
	eventlog.Log
	healthy, down atomic.Int64
}

func (f *flickering) Append(ctx context.Context, session string, expected uint64, entries []eventlog.Entry) (uint64, error) {
	if f.healthy.Add(-1) < 0 && f.down.Add(-1) >= 0 {
		return 0, errors.New("no route to the log")
	}
	return f.Log.Append(ctx, session, expected, entries)
}

func TestARunOutlivesALogThatIsOutOfReach(t *testing.T) {
	t.Parallel() // most of it is waiting
	for after := 1; after < 12; after++ {
		log := &flickering{Log: memory.New()}
		log.healthy.Store(int64(after))
		log.down.Store(2)
		g := newRigOn(t, log, agentloop.Agent{
			Name: "a", Tools: []agentloop.Tool{addTool()}, Model: script(call("add", `{"by":2}`), scripted.Turn{Text: "ok"}),
		})
		g.start("s", "a", "go")
		state := g.ended("s")
		require.Equal(t, projector.SessionCompleted, state.Status)
		require.JSONEq(t, `{"count":2}`, state.CustomState.String())
	}
}
