package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/engine/admin"
	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/projector"
)

// counted is a log that counts the heads and the reads asked for.
type counted struct {
	eventlog.Log
	reads atomic.Int64
}

func (l *counted) Read(ctx context.Context, session string, from, to uint64) iter.Seq2[eventlog.Record, error] {
	l.reads.Add(1)
	return l.Log.Read(ctx, session, from, to)
}

// sweptRig has a session that has ended, one that waits for a person, one that
// was interrupted and one whose model still speaks, each an hour from expiring.
func sweptRig(t *testing.T) (g *rig, clock *atomic.Int64, speak chan struct{}) {
	t.Helper()
	clock, speak = new(atomic.Int64), make(chan struct{})
	clock.Store(1_700_000_000_000)
	ask := agentloop.Tool{Name: "ask", Description: "Asks.", Client: true, InputSchema: json.RawMessage(`{"type":"object"}`)}
	asks := modelFunc(func(_ context.Context, _ model.Request, emit func(model.Event) error) (model.Answer, error) {
		return model.Answer{StopReason: fact.StopToolUse}, errors.Join(
			emit(model.ToolCallStart{ID: "c", Name: "ask"}), emit(model.ToolCallDelta{Text: "{}"}), emit(model.ToolCallEnd{}))
	})
	speaks := modelFunc(func(ctx context.Context, req model.Request, emit func(model.Event) error) (model.Answer, error) {
		if req.Messages[0].Content == "slowly" {
			select {
			case <-speak:
			case <-ctx.Done():
				return model.Answer{}, ctx.Err()
			}
		}
		return model.Answer{StopReason: fact.StopEndTurn}, emit(model.TextDelta{Text: "done"})
	})
	log := &counted{Log: memory.New()}
	loop, err := engine.New(log, []agentloop.Agent{{Name: "asker", Tools: []agentloop.Tool{ask}, Model: asks}, {Name: "speaker", Model: speaks}},
		&engine.Options{Now: func() time.Time { return time.UnixMilli(clock.Load()) }, ExpireAfter: time.Hour})
	require.NoError(t, err)
	t.Cleanup(loop.Stop)
	g = &rig{t: t, log: log, loop: loop}
	g.start("ended", "speaker", "go")
	g.ended("ended")
	g.start("waits", "asker", "go")
	g.start("stopped", "speaker", "slowly")
	require.NoError(t, loop.Interrupt(t.Context(), "stopped", ""))
	g.start("runs", "speaker", "slowly")
	for _, session := range []string{"waits", "stopped"} {
		require.Eventually(t, func() bool { return stateOf(t, log, session).Waits() }, time.Minute, time.Millisecond)
	}
	return g, clock, speak
}

func (g *rig) sweep(o admin.SweepOptions) admin.Swept {
	g.t.Helper()
	done, err := g.loop.Admin.Sweep(g.t.Context(), o)
	require.NoError(g.t, err)
	return done
}

func TestSweep(t *testing.T) {
	g, clock, speak := sweptRig(t)
	require.Equal(t, clock.Load()+time.Hour.Milliseconds(), stateOf(t, g.log, "waits").ExpiresAt)
	clock.Add(time.Hour.Milliseconds() - 1)
	require.Equal(t, admin.Swept{}, g.sweep(admin.SweepOptions{}), "none has expired")
	clock.Add(1)
	before, err := g.log.Head(t.Context(), "waits")
	require.NoError(t, err)
	require.Equal(t, admin.Swept{Detected: 4, AlreadyTerminal: 1, Running: 1}, g.sweep(admin.SweepOptions{DryRun: true}))
	head, err := g.log.Head(t.Context(), "waits")
	require.NoError(t, err)
	require.Equal(t, before, head, "a dry run changes nothing")

	require.Equal(t, admin.Swept{Detected: 4, Marked: 2, AlreadyTerminal: 1, Running: 1}, g.sweep(admin.SweepOptions{}))
	for _, session := range []string{"waits", "stopped"} {
		state := g.ended(session)
		require.Equal(t, projector.SessionFailed, state.Status, session)
		require.Equal(t, &projector.Failure{Code: agentloop.CodeSessionExpired, Message: "the session has expired"}, state.Error, session)
		require.Empty(t, state.AwaitedCalls())
	}
	_, err = g.loop.Submit(t.Context(), engine.Submission{SessionID: "waits", ToolCallID: "c", Kind: fact.SubmitClientResult, Result: json.RawMessage("1")})
	require.ErrorIs(t, err, agentloop.ErrAlreadyCompleted)

	close(speak)
	require.Equal(t, projector.SessionCompleted, g.ended("runs").Status, "what runs is left alone")
	require.Equal(t, admin.Swept{Detected: 4, AlreadyTerminal: 4}, g.sweep(admin.SweepOptions{}))
	reads := g.log.(*counted).reads.Load()
	g.sweep(admin.SweepOptions{})
	require.Equal(t, reads, g.log.(*counted).reads.Load(), "what has not changed is not folded again")
}

// A further request puts the end off; the wait for an answer does not.
func TestWhoeverAsksPutsExpiryOff(t *testing.T) {
	g, clock, _ := sweptRig(t)
	clock.Add(time.Hour.Milliseconds() / 2)
	_, err := g.loop.Resume(t.Context(), engine.ResumeRequest{SessionID: "stopped", Mode: fact.ModeContinue})
	require.NoError(t, err)
	require.NoError(t, g.loop.Interrupt(t.Context(), "stopped", ""))
	require.Eventually(t, func() bool { return stateOf(t, g.log, "stopped").Waits() }, time.Minute, time.Millisecond)
	clock.Add(time.Hour.Milliseconds() / 2)
	require.Equal(t, admin.Swept{Detected: 3, Marked: 1, AlreadyTerminal: 1, Running: 1}, g.sweep(admin.SweepOptions{}))
	require.Equal(t, projector.SessionInterrupted, stateOf(t, g.log, "stopped").Status)
}

// Whoever knows which sessions expire is believed, but for what the log says.
func TestSweepOfCandidates(t *testing.T) {
	g, clock, _ := sweptRig(t)
	clock.Add(time.Hour.Milliseconds() / 2)
	g.start("fresh", "speaker", "slowly")
	clock.Add(time.Hour.Milliseconds() / 2)
	candidates := func(_ context.Context, before time.Time) iter.Seq2[string, error] {
		require.Equal(t, clock.Load()+1, before.UnixMilli())
		return func(yield func(string, error) bool) {
			for _, session := range []string{"fresh", "was erased", "waits"} {
				if !yield(session, nil) {
					return
				}
			}
		}
	}
	require.Equal(t, admin.Swept{Detected: 1, Marked: 1}, g.sweep(admin.SweepOptions{Expiring: candidates}))
	lost := errors.New("lost")
	_, err := g.loop.Admin.Sweep(t.Context(), admin.SweepOptions{Expiring: func(context.Context, time.Time) iter.Seq2[string, error] {
		return func(yield func(string, error) bool) { yield("", lost) }
	}})
	require.ErrorIs(t, err, lost)
}

// A sweep of all logs does not take memories for a session, whose state it would
// have to fold again and again.
func TestSweepLeavesMemoriesAlone(t *testing.T) {
	log := &counted{Log: memory.New()}
	loop, err := engine.New(log, nil, nil)
	require.NoError(t, err)
	defer loop.Stop()
	scope := eventlog.MemoryScope{Kind: eventlog.MemoryOfUser, ID: "u"}.LogID()
	e, err := eventlog.NewFact(scope, &fact.MemorySaved{
		MemoryID: "m", Content: "likes tea", Base: fact.Base{SessionID: scope, Timestamp: 1},
	}, eventlog.Labels{})
	require.NoError(t, err)
	_, err = log.Append(t.Context(), scope, 0, []eventlog.Entry{e})
	require.NoError(t, err)
	done, err := loop.Admin.Sweep(t.Context(), admin.SweepOptions{})
	require.NoError(t, err)
	require.Equal(t, admin.Swept{}, done)
	require.Zero(t, log.reads.Load())
}
