package engine_test

import (
	"context"
	"fmt"
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
)

// saidBy returns the text of a run as its handle streams it.
func saidBy(ctx context.Context, h *engine.Handle, from uint64) (text string, err error) {
	for c, err := range h.Stream(ctx, from) {
		if err != nil {
			return text, err
		}
		if delta, ok := c.Chunk.(*eventlog.TextDelta); ok {
			text += delta.Delta
		}
	}
	return text, nil
}

// Each of three turns of a session is streamed from 0 by its own handle, while a
// later one continues and after it: a handle knows its own run only.
func TestAHandleIsOfItsOwnRun(t *testing.T) {
	for name, log := range map[string]eventlog.Log{"memory": memory.New(), "jetstream": openJetStream(t)} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			begun, release := make(chan struct{}, 3), make(chan struct{})
			g := newRigOn(t, log, agentloop.Agent{Name: "teller", Model: modelFunc(
				func(ctx context.Context, req model.Request, emit func(model.Event) error) (model.Answer, error) {
					turn := len(req.Messages)/2 + 1
					if err := emit(model.TextDelta{Text: fmt.Sprintf("answer %d", turn)}); err != nil {
						return model.Answer{}, err
					}
					if turn == 3 {
						begun <- struct{}{}
						select {
						case <-release:
						case <-ctx.Done():
						}
					}
					return model.Answer{StopReason: fact.StopEndTurn}, emit(model.TextDelta{Text: "."})
				})})
			execute := func(message string) *engine.Handle {
				h, err := g.loop.Execute(ctx, engine.StartRequest{
					SessionID: "s", AgentType: "teller", Messages: []agentloop.Input{{Content: message}},
				})
				require.NoError(t, err)
				return h
			}
			var runs []*engine.Handle
			check := func(n int) {
				for i, h := range runs[:n] {
					text, err := saidBy(ctx, h, 0)
					require.NoError(t, err)
					require.Equal(t, fmt.Sprintf("answer %d.", i+1), text)
					result, err := h.Result(ctx)
					require.NoError(t, err)
					require.Equal(t, fact.RunCompleted, result.Status)
					require.JSONEq(t, fmt.Sprintf(`"answer %d."`, i+1), string(result.Output))
					require.Equal(t, 1, result.StepCount)
				}
			}
			for i := range 2 {
				runs = append(runs, execute(fmt.Sprintf("question %d", i+1)))
				text, err := saidBy(ctx, runs[i], 0) // as it comes
				require.NoError(t, err)
				require.Equal(t, fmt.Sprintf("answer %d.", i+1), text)
			}
			check(2)

			runs = append(runs, execute("question 3"))
			<-begun
			live := make(chan string, 1)
			go func() {
				text, err := saidBy(ctx, runs[2], 0)
				live <- fmt.Sprint(text, err)
			}()
			check(2) // the third one continues
			close(release)
			require.Equal(t, "answer 3.<nil>", <-live)
			check(3)

			// A cursor at the run's end leaves nothing, also where later runs follow.
			text, err := saidBy(ctx, runs[0], stateOf(t, log, "s").Head)
			require.NoError(t, err)
			require.Empty(t, text)
		})
	}
}

// A suspended run's handle returns what that run waited for, also when the session
// was resumed: what follows is the next run's.
func TestAHandleOfASuspendedRun(t *testing.T) {
	g := newRig(t, agentloop.Agent{
		Name: "a", Tools: []agentloop.Tool{{Name: "ask", Client: true}},
		Model: script(call("ask", `{}`), scripted.Turn{Text: "Thanks."}),
	})
	ctx := t.Context()
	first, err := g.loop.Execute(ctx, engine.StartRequest{
		SessionID: "s", AgentType: "a", Messages: []agentloop.Input{{Content: "go"}},
	})
	require.NoError(t, err)
	waits, err := first.Result(ctx)
	require.NoError(t, err)
	require.Equal(t, fact.RunClientTool, waits.Status)
	require.Equal(t, []string{"call-ask"}, waits.Suspended.ToolCallIDs)

	_, err = g.loop.Submit(ctx, engine.Submission{
		SessionID: "s", ToolCallID: "call-ask", Kind: fact.SubmitClientResult, Result: []byte(`1`),
	})
	require.NoError(t, err)
	second, err := first.Resume(ctx, engine.ResumeRequest{})
	require.NoError(t, err)
	result, err := second.Result(ctx)
	require.NoError(t, err)
	require.JSONEq(t, `"Thanks."`, string(result.Output))

	again, err := first.Result(ctx)
	require.NoError(t, err)
	require.Equal(t, waits, again)
	text, err := saidBy(ctx, first, 0)
	require.NoError(t, err)
	require.Empty(t, text)
	text, err = saidBy(ctx, second, 0)
	require.NoError(t, err)
	require.Equal(t, "Thanks.", text)
}

// A rollback to before a run that continues ends the stream of its handle, with the
// stream_resync that says so, though the session then waits for a person.
func TestARollbackEndsTheStreamOfARunThatItTakesBack(t *testing.T) {
	g := newRig(t, agentloop.Agent{
		Name: "a", Tools: []agentloop.Tool{{Name: "ask", Client: true}},
		Model: modelFunc(func(ctx context.Context, req model.Request, emit func(model.Event) error) (model.Answer, error) {
			if len(req.Messages) == 1 {
				return script(call("ask", `{}`)).Generate(ctx, req, emit)
			}
			err := emit(model.TextDelta{Text: "Well"})
			<-ctx.Done()
			return model.Answer{}, err
		}),
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	first, err := g.loop.Execute(ctx, engine.StartRequest{
		SessionID: "s", AgentType: "a", Messages: []agentloop.Input{{Content: "go"}},
	})
	require.NoError(t, err)
	waits, err := first.Result(ctx)
	require.NoError(t, err)
	waiting := stateOf(t, g.log, "s").Head
	_, err = g.loop.Submit(ctx, engine.Submission{
		SessionID: "s", ToolCallID: "call-ask", Kind: fact.SubmitClientResult, Result: []byte(`1`),
	})
	require.NoError(t, err)
	second, err := first.Resume(ctx, engine.ResumeRequest{})
	require.NoError(t, err)

	var last eventlog.Chunk
	for c, err := range second.Stream(ctx, 0) {
		require.NoError(t, err)
		if last = c.Chunk; last.Type() == "text_delta" {
			_, err = g.loop.TimeTravel.Rollback(ctx, "s", timetravel.Target{Sequence: waiting})
			require.NoError(t, err)
		}
	}
	require.IsType(t, &eventlog.StreamResync{}, last)
	result, err := second.Result(ctx)
	require.NoError(t, err)
	require.Equal(t, fact.RunStopped, result.Status)
	result, err = first.Result(ctx)
	require.NoError(t, err)
	require.Equal(t, waits, result, "it is the session's last run again")
}
