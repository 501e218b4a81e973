package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
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

// readOnly is a log that takes nothing while it is on.
type readOnly struct {
	eventlog.Log
	on *atomic.Bool
}

func (l readOnly) Append(ctx context.Context, session string, expected uint64, entries []eventlog.Entry) (uint64, error) {
	if l.on.Load() {
		return 0, eventlog.ErrRefused
	}
	return l.Log.Append(ctx, session, expected, entries)
}

func (l readOnly) Info() eventlog.Info {
	info := l.Log.Info()
	if l.on.Load() {
		info.Refuses = "the disk is full"
	}
	return info
}

// A run whose log takes nothing for long, while its model speaks and its tool
// answers, waits and continues where it was: nothing is said or done twice.
func TestARunWaitsForALogThatRefuses(t *testing.T) {
	for name, refuseAt := range map[string]string{"while the model speaks": "model", "while the tool works": "tool"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				on := new(atomic.Bool)
				full := func(at string) {
					if at == refuseAt && on.CompareAndSwap(false, true) {
						time.AfterFunc(45*time.Second, func() { on.Store(false) })
					}
				}
				var want strings.Builder
				said, worked := 0, 0
				m := modelFunc(func(_ context.Context, _ model.Request, emit func(model.Event) error) (model.Answer, error) {
					if said++; said == 1 {
						for i := range 50 {
							if i == 20 {
								full("model")
							}
							fmt.Fprint(&want, i, " ")
							if err := emit(model.TextDelta{Text: fmt.Sprint(i, " ")}); err != nil {
								return model.Answer{}, err
							}
							time.Sleep(10 * time.Millisecond)
						}
						for _, e := range []model.Event{model.ToolCallStart{ID: "c", Name: "work"}, model.ToolCallDelta{Text: "{}"}, model.ToolCallEnd{}} {
							if err := emit(e); err != nil {
								return model.Answer{}, err
							}
						}
						return model.Answer{StopReason: fact.StopToolUse}, nil
					}
					return model.Answer{StopReason: fact.StopEndTurn}, emit(model.TextDelta{Text: "done"})
				})
				tool := agentloop.Tool{
					Name: "work", Description: "Works.",
					Execute: func(context.Context, *agentloop.Call, json.RawMessage) (any, error) {
						worked++
						full("tool")
						return "worked", nil
					},
				}
				g := newRigOn(t, readOnly{memory.New(), on}, agentloop.Agent{Name: "a", Model: m, Tools: []agentloop.Tool{tool}})
				g.start("s", "a", "go")
				began := time.Now()
				state := g.ended("s")
				require.GreaterOrEqual(t, time.Since(began), 45*time.Second)
				require.Equal(t, projector.SessionCompleted, state.Status)
				require.Equal(t, want.String(), state.Messages[1].Content)
				require.Equal(t, []int{2, 1}, []int{said, worked})
				require.Equal(t, 1, state.Runs[0].Claims)
				require.NotContains(t, g.types("s"), "truncated")
			})
		})
	}
}

// fills is a log that takes nothing more for a while after its first append.
type fills struct{ readOnly }

func (l fills) Append(ctx context.Context, session string, expected uint64, entries []eventlog.Entry) (uint64, error) {
	last, err := l.readOnly.Append(ctx, session, expected, entries)
	if err == nil && expected == 0 {
		l.on.Store(true)
		time.AfterFunc(time.Minute, func() { l.on.Store(false) })
	}
	return last, err
}

// A run that is in the log is no refused request, and is driven when the log takes appends again.
func TestARequestedRunWaitsForALogThatRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRigOn(t, fills{readOnly{memory.New(), new(atomic.Bool)}}, agentloop.Agent{Name: "a", Model: script(scripted.Turn{Text: "done"})})
		_, err := g.loop.Start(t.Context(), engine.StartRequest{SessionID: "s", AgentType: "a", Messages: []agentloop.Input{{Content: "go"}}})
		require.NoError(t, err)
		time.Sleep(10 * time.Minute)
		require.Equal(t, projector.SessionCompleted, stateOf(t, g.log, "s").Status)
	})
}

// What nobody can write now is refused at once, and a loop that stops waits for
// no log.
func TestRequestsAndStopsDontWaitForALogThatRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		on := new(atomic.Bool)
		m := modelFunc(func(_ context.Context, _ model.Request, emit func(model.Event) error) (model.Answer, error) {
			on.Store(true)
			return model.Answer{StopReason: fact.StopEndTurn}, emit(model.TextDelta{Text: "done"})
		})
		g := newRigOn(t, readOnly{memory.New(), on}, agentloop.Agent{Name: "a", Model: m})
		g.start("s", "a", "go")
		time.Sleep(time.Minute)
		began := time.Now()
		_, err := g.loop.Start(t.Context(), engine.StartRequest{SessionID: "t", AgentType: "a", Messages: []agentloop.Input{{Content: "go"}}})
		require.ErrorIs(t, err, eventlog.ErrRefused)
		require.ErrorIs(t, g.loop.Interrupt(t.Context(), "s", ""), eventlog.ErrRefused)
		require.Zero(t, time.Since(began))
		g.loop.Stop()
		require.Less(t, time.Since(began), 5*time.Second)
		on.Store(false)
		require.Equal(t, projector.SessionActive, stateOf(t, g.log, "s").Status)
	})
}
