package engine_test

import (
	"context"
	"iter"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/projector"
)

// adder is an agent that calls a tool, and then what its second model call does.
func adder(second func(context.Context) error) agentloop.Agent {
	answers := script(call("add", `{"by":1}`), done)
	return agentloop.Agent{Name: "a", Tools: []agentloop.Tool{addTool()}, Model: modelFunc(
		func(ctx context.Context, req model.Request, emit func(model.Event) error) (model.Answer, error) {
			if len(req.Messages) > 1 {
				if err := second(ctx); err != nil {
					return model.Answer{}, err
				}
			}
			return answers.Generate(ctx, req, emit)
		})}
}

// crashedBehindItsCheckpoint leaves a session in the log whose last record is a checkpoint.
func crashedBehindItsCheckpoint(t *testing.T, log eventlog.Log) projector.Checkpoint {
	t.Helper()
	hangs := make(chan struct{})
	g := newRigOn(t, log, adder(func(ctx context.Context) error {
		close(hangs)
		<-ctx.Done()
		return ctx.Err()
	}))
	g.start("s", "a", "go")
	<-hangs
	g.loop.Stop()
	state := stateOf(t, log, "s")
	require.True(t, state.Running())
	require.Equal(t, state.Head, state.Checkpoints[0].StreamSequence)
	return state.Checkpoints[0]
}

// Of two clients that go back at once, one begins a run. The other one gets an error, and does
// not take that run back, whether or not there was something to take back before.
func TestClientsThatGoBackAtOnce(t *testing.T) {
	for name, crashed := range map[string]bool{"to the last record": true, "to before the last record": false} {
		t.Run(name, func(t *testing.T) {
			log := &racing{Log: memory.New(), both: make(chan struct{}), may: make(chan struct{})}
			var hangs atomic.Bool
			if crashed {
				crashedBehindItsCheckpoint(t, log)
			}
			g := newRigOn(t, log, adder(func(ctx context.Context) error {
				if hangs.Load() {
					<-ctx.Done()
				}
				return ctx.Err()
			}))
			if !crashed {
				g.start("s", "a", "go")
				g.ended("s")
				released(t, g.loop)
			}
			before := stateOf(t, log, "s")
			hangs.Store(true)
			log.armed.Store(true)
			resume := func(text string) (engine.Started, error) {
				return g.loop.Resume(t.Context(), engine.ResumeRequest{
					SessionID: "s", Mode: fact.ModeFromCheckpoint, CheckpointID: before.Checkpoints[0].ID, Messages: []agentloop.Input{{Content: text}},
				})
			}
			won := make(chan engine.Started, 1)
			go func() {
				defer close(log.may)
				s, err := resume("first")
				if err == nil {
					won <- s
				}
				close(won)
			}()
			require.Eventually(t, func() bool { return log.requests.Load() == 1 }, time.Minute, time.Millisecond)
			_, err := resume("second")
			require.ErrorIs(t, err, agentloop.ErrAlreadyRunning)
			state := stateOf(t, log, "s")
			require.True(t, state.Running())
			require.Equal(t, (<-won).RunID, state.Turn.RunID)
			require.Len(t, state.Runs, len(before.Runs)+1)
			require.Equal(t, "first", state.Messages[len(state.Messages)-1].Content)
		})
	}
}

// erasing is a log that erases a session when a rollback has looked at the record to go back to,
// its last one, and found nothing after it.
type erasing struct {
	*memory.Log
	head atomic.Uint64
	seen atomic.Bool
}

func (l *erasing) Read(ctx context.Context, session string, from, to uint64) iter.Seq2[eventlog.Record, error] {
	return func(yield func(eventlog.Record, error) bool) {
		for r, err := range l.Log.Read(ctx, session, from, to) {
			if !yield(r, err) {
				break
			}
		}
		switch head := l.head.Load(); {
		case head == 0:
		case l.seen.Load() && to == 0:
			_, _ = l.Log.Erase(ctx, session)
		case to == head && from == head-1:
			l.seen.Store(true)
		}
	}
}

// A session that is erased while a client goes back in it is not found.
func TestASessionThatIsErasedWhileAClientGoesBack(t *testing.T) {
	log := &erasing{Log: memory.New()}
	checkpoint := crashedBehindItsCheckpoint(t, log)
	g := newRigOn(t, log, adder(func(context.Context) error { return nil }))
	log.head.Store(checkpoint.StreamSequence)
	_, err := g.loop.Resume(t.Context(), engine.ResumeRequest{SessionID: "s", Mode: fact.ModeFromCheckpoint, CheckpointID: checkpoint.ID})
	require.True(t, log.seen.Load())
	require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
}
