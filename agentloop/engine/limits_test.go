package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/agentloop/remote"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/integration/testkit"
	"github.com/helixd/helixd/projector"
)

func asks(n int) scripted.Turn {
	var turn scripted.Turn
	for i := range n {
		turn.ToolCalls = append(turn.ToolCalls, scripted.Call{ID: fmt.Sprintf("c%d", i), Name: "ask", Arguments: json.RawMessage(`{}`)})
	}
	return turn
}

func TestAnAnswerWithTooManyCallsIsAFailedModelCall(t *testing.T) {
	g, reg := measured(t, memory.New(), agentloop.Agent{
		Name: "a", Tools: []agentloop.Tool{{Name: "ask", Client: true}}, Model: script(asks(agentloop.MaxCalls + 1)),
	})
	g.start("s", "a", "go")
	state := g.ended("s")
	require.Contains(t, scraped(t, reg), `helixd_model_duration_seconds_count{model="scripted",outcome="`+agentloop.CodeTooManyCalls+`"} 1`)
	require.Equal(t, projector.SessionFailed, state.Status)
	require.Equal(t, agentloop.CodeTooManyCalls, state.Error.Code)
	require.Len(t, state.Messages, 1)
	require.NotContains(t, g.types("s"), "[call_suspended]")
}

// A provider that never ends its answer would otherwise fill the memory and the log.
func TestAnAnswerWithoutEndIsAFailedModelCall(t *testing.T) {
	text := strings.Repeat("x", 1<<20)
	for name, event := range map[string]func(i int) model.Event{
		"text":      func(int) model.Event { return model.TextDelta{Text: text} },
		"reasoning": func(int) model.Event { return model.ReasoningDelta{Text: text} },
		"calls":     func(i int) model.Event { return model.ToolCallStart{Call: i, Name: "ask"} },
	} {
		t.Run(name, func(t *testing.T) {
			const enough = 1000
			events := 0
			g, reg := measured(t, memory.New(), agentloop.Agent{Name: "a", Model: modelFunc(
				func(_ context.Context, _ model.Request, emit func(model.Event) error) (model.Answer, error) {
					for ; events < enough; events++ {
						if err := emit(event(events)); err != nil {
							return model.Answer{}, err
						}
					}
					return model.Answer{}, errors.New("nothing has ended the answer")
				})})
			g.start("s", "a", "go")
			state := g.ended("s")
			require.Equal(t, agentloop.CodeTooManyCalls, state.Error.Code)
			require.Less(t, events, enough)
			require.Contains(t, scraped(t, reg), `helixd_model_duration_seconds_count{model="other",outcome="`+agentloop.CodeTooManyCalls+`"} 1`)
		})
	}
}

// flood is a remote agent that sends many large chunks as fast as they are taken.
type flood struct {
	remote.Transport
	chunks int
	size   int
}

func (f flood) Start(_ context.Context, req remote.StartRequest) (remote.Started, error) {
	return remote.Started{SessionID: req.SessionID, StreamID: req.SessionID, RunID: "r"}, nil
}

func (f flood) Stream(_ context.Context, id string, from uint64) iter.Seq2[remote.Event, error] {
	return func(yield func(remote.Event, error) bool) {
		c := &eventlog.TextDelta{Delta: strings.Repeat("x", f.size), Base: eventlog.Base{AgentID: id, AgentType: "analyst", Timestamp: 1}}
		raw, err := eventlog.EncodeChunk(c)
		for i := range f.chunks {
			if !yield(remote.ChunkEvent{Sequence: from + uint64(i) + 1, Chunk: c, Raw: raw}, err) {
				return
			}
		}
		yield(remote.EndEvent{Output: json.RawMessage(`{"answer":"42"}`)}, nil)
	}
}

// largest is a slow log that knows the bytes of its largest append.
type largest struct {
	slow
	bytes *int
}

func (l largest) Append(ctx context.Context, session string, expected uint64, entries []eventlog.Entry) (uint64, error) {
	bytes := 0
	for _, e := range entries {
		bytes += len(e.Payload)
	}
	*l.bytes = max(*l.bytes, bytes)
	return l.slow.Append(ctx, session, expected, entries)
}

// While an append is under way, what else a remote agent sends would otherwise wait in memory.
func TestChunksOfARemoteAgentThatWaitAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bytes := 0
		log := largest{slow{memory.New(), 100 * time.Millisecond}, &bytes}
		for session, sends := range map[string]flood{"many": {chunks: 40, size: 1 << 20}, "large": {chunks: 3, size: 5 << 20}} {
			g := newRigOn(t, log, via((&server{}).caller(time.Minute), func(remote.Transport) remote.Transport { return sends }))
			g.start(session, "caller", "go")
			state := g.ended(session)
			require.Equal(t, projector.SessionCompleted, state.Status)
			require.JSONEq(t, `{"answer":"42"}`, string(state.Messages[2].Result))
			require.Len(t, g.said(session, session+"-remote-c1"), sends.chunks*sends.size)
			g.loop.Stop()
		}
		require.Less(t, bytes, 6<<20)
	})
}

// An adapter that sends a piece of a call that it has not begun makes a mistake: its call was
// not cut off.
func TestAMistakeOfAnAdapterIsMeasured(t *testing.T) {
	g, reg := measured(t, memory.New(), agentloop.Agent{Name: "a", Model: modelFunc(
		func(_ context.Context, _ model.Request, emit func(model.Event) error) (model.Answer, error) {
			return model.Answer{StopReason: fact.StopToolUse}, emit(model.ToolCallDelta{Text: "{}"})
		})})
	g.start("s", "a", "go")
	require.Equal(t, agentloop.CodeInternal, g.ended("s").Error.Code)
	require.Contains(t, scraped(t, reg), `helixd_model_duration_seconds_count{model="other",outcome="`+agentloop.CodeInternal+`"} 1`)
}

func TestAnAnswerMayHaveMaxCallsCalls(t *testing.T) {
	g := newRig(t, agentloop.Agent{
		Name: "a", Tools: []agentloop.Tool{{Name: "ask", Client: true}}, Model: script(asks(agentloop.MaxCalls)),
	})
	g.start("s", "a", "go")
	released(t, g.loop)
	require.Len(t, stateOf(t, g.log, "s").AwaitedCalls(), agentloop.MaxCalls)
	require.NoError(t, g.loop.Abort(t.Context(), "s", "enough"))
	require.Equal(t, projector.SessionFailed, g.ended("s").Status)
}

// manyCalls is more calls than one append can answer or close.
const manyCalls = eventlog.MaxAppendRecords + 10

// waiting is a log with a session whose last step has manyCalls calls that
// wait, as an import may bring it, or as the agents of a tree have together.
func waiting(t *testing.T, kind fact.PendingKind) eventlog.Log {
	t.Helper()
	log := memory.New()
	base := fact.Base{SessionID: "s", Timestamp: 1}
	entry := func(f fact.Fact) eventlog.Entry {
		e, err := eventlog.NewFact("s", f, eventlog.Labels{Run: "r"})
		require.NoError(t, err)
		return e
	}
	step, turn := "turn-1-step-1", &fact.ModelTurn{RunID: "r", StepID: "turn-1-step-1", Step: 1, StopReason: fact.StopToolUse, Base: base}
	start, err := eventlog.NewChunk(&eventlog.StepStart{
		StepID: &step, Base: eventlog.Base{AgentID: "s", AgentType: "a", Timestamp: 1, Step: 1},
	}, eventlog.Labels{Run: "r"})
	require.NoError(t, err)
	var waits []eventlog.Entry
	for i := range manyCalls {
		id := fmt.Sprintf("c%d", i)
		turn.Parts = append(turn.Parts, fact.TurnPart{ToolCall: &fact.ToolCall{ID: id, Name: "ask", Arguments: json.RawMessage(`{}`)}})
		suspended := &fact.CallSuspended{RunID: "r", StepID: step, ToolCallID: id, ToolName: "ask", Kind: kind, Base: base}
		if kind == fact.PendingApproval {
			suspended.ApprovalID = "r::" + id
		}
		waits = append(waits, entry(suspended))
	}
	entries := append([]eventlog.Entry{
		entry(&fact.SessionCreated{AgentType: "a", Base: base}),
		entry(&fact.UserMessage{Content: "go", Base: base}),
		entry(&fact.RunRequested{RunID: "r", Mode: fact.ModeStart, Base: base}),
		start, entry(turn),
	}, waits...)
	entries = append(entries,
		entry(&fact.RunEnded{RunID: "r", Status: fact.RunClientTool, Base: base}),
		entry(&fact.StreamPaused{Reason: agentloop.ReasonClientTool, Base: base}))
	head := uint64(0)
	for some := range slices.Chunk(entries, eventlog.MaxAppendRecords) {
		head, err = log.Append(t.Context(), "s", head, some)
		require.NoError(t, err)
	}
	require.Len(t, stateOf(t, log, "s").AwaitedCalls(), manyCalls)
	return log
}

// results counts the calls of a session by how they have failed.
func results(s *projector.Tree) map[string]int {
	codes := map[string]int{}
	for _, m := range s.Messages {
		if m.Role == projector.RoleTool {
			codes[m.ErrorCode]++
		}
	}
	return codes
}

func TestAnAbortClosesMoreCallsThanOneAppendTakes(t *testing.T) {
	log := waiting(t, fact.PendingClient)
	g := newRigOn(t, log, agentloop.Agent{
		Name: "a", Tools: []agentloop.Tool{{Name: "ask", Client: true}}, Model: script(scripted.Turn{Text: "never"}),
	})
	require.NoError(t, g.loop.Abort(t.Context(), "s", "enough"))
	state := g.ended("s")
	require.Equal(t, projector.SessionFailed, state.Status)
	require.Equal(t, map[string]int{agentloop.CodeAborted: manyCalls}, results(state))
}

func TestAMessageAbandonsMoreCallsThanOneAppendTakes(t *testing.T) {
	testkit.Sequential(t)
	log := waiting(t, fact.PendingClient)
	g := newRigOn(t, log, agentloop.Agent{
		Name: "a", Tools: []agentloop.Tool{{Name: "ask", Client: true}}, Model: script(scripted.Turn{Text: "fine"}),
	})
	_, err := g.loop.Resume(t.Context(), engine.ResumeRequest{SessionID: "s", Messages: []agentloop.Input{{Content: "never mind"}}})
	require.NoError(t, err)
	state := g.ended("s")
	require.Equal(t, map[string]int{agentloop.CodeClientToolAbandoned: manyCalls}, results(state))
	require.JSONEq(t, `"fine"`, string(state.Output))
	require.Len(t, state.Runs, 2)
}

func TestAConfirmationDecidesMoreCallsThanOneAppendTakes(t *testing.T) {
	testkit.Sequential(t)
	log := waiting(t, fact.PendingApproval)
	g := newRigOn(t, log, agentloop.Agent{
		Name: "a", Model: script(asks(1), scripted.Turn{Text: "fine"}),
		Tools: []agentloop.Tool{{Name: "ask", RequireApproval: agentloop.AlwaysApprove, Execute: addTool().Execute}},
	})
	_, err := g.loop.Resume(t.Context(), engine.ResumeRequest{SessionID: "s", Mode: fact.ModeWithConfirmation, Approved: false})
	require.NoError(t, err)
	state := g.ended("s")
	require.Equal(t, map[string]int{agentloop.CodeApprovalDenied: manyCalls}, results(state))
	require.Len(t, state.Runs, 2)
}
