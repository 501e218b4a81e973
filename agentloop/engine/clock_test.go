package engine_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/memory"
)

// A clock that jumps, or two nodes whose clocks are hours apart, change no order and lose
// nothing: sequences order records, claims fence writers. Deadlines come early or late.
func TestAClockThatJumps(t *testing.T) {
	log, one, other := memory.New(), newClock(), newClock()
	one.add(24 * time.Hour)
	other.add(21 * time.Hour) // three hours behind
	agent := agentloop.Agent{
		Name:  "a",
		Tools: []agentloop.Tool{{Name: "ask", Client: true}, {Name: "hurry", Client: true, Timeout: time.Minute}},
		Model: script(call("ask", `{}`), call("hurry", `{}`), scripted.Turn{Text: "Thanks."}),
	}
	g := clocked(t, log, one, agent)
	g.start("s", "a", "go")
	released(t, g.loop)
	one.add(-6 * time.Hour) // while it waits
	answer := func(l *engine.Loop, call string) {
		t.Helper()
		got, err := l.Submit(t.Context(), engine.Submission{SessionID: "s", ToolCallID: call, Kind: fact.SubmitClientResult, Result: json.RawMessage(`1`)})
		require.NoError(t, err)
		require.Equal(t, engine.SubmitAccepted, got.Status)
		_, err = l.Resume(t.Context(), engine.ResumeRequest{SessionID: "s"})
		require.NoError(t, err)
	}
	h := clocked(t, log, other, agent)
	answer(h.loop, "call-ask")
	released(t, h.loop)
	require.True(t, stateOf(t, log, "s").Suspended())
	one.add(3*time.Hour - time.Second) // as the other's, or nearly
	answer(g.loop, "call-hurry")
	state := g.ended("s")
	require.Equal(t, "completed", string(state.Status))

	last, back := uint64(0), false
	var before time.Time
	for r, err := range log.Read(t.Context(), "s", 0, 0) {
		require.NoError(t, err)
		require.Greater(t, r.Sequence, last)
		back = back || r.Time.Before(before)
		last, before = r.Sequence, r.Time
	}
	require.False(t, back, "the store's clock gives a record its time, and did not jump")
}
