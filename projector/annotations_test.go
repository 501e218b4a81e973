package projector_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
)

// event is a custom event of the root.
func event(name, data, call string) eventlog.Entry {
	return chunk(&eventlog.CustomEvent{EventName: name, Data: json.RawMessage(data), Base: base("s")}, call)
}

// eventsShown returns the data of the custom events that clients see.
func eventsShown(t *testing.T, s *projector.Session) (data []string) {
	t.Helper()
	for _, a := range s.Shown() {
		c, err := eventlog.DecodeChunk(a.Chunk)
		require.NoError(t, err)
		data = append(data, string(c.(*eventlog.CustomEvent).Data))
	}
	return data
}

// A later event with the same name and id replaces an earlier one of the same message, in
// its place.
func TestAnEventReplacesAnEarlierOneOfItsMessage(t *testing.T) {
	run := func(id string, mode fact.RunMode) eventlog.Entry {
		return factOf("s", &fact.RunRequested{RunID: id, Mode: mode, Base: factBase("s")})
	}
	user := func(metadata string) eventlog.Entry {
		return factOf("s", &fact.UserMessage{Content: "x", Metadata: json.RawMessage(metadata), Base: factBase("s")})
	}
	state := projector.Fold(numbered(slices.Concat(opening(), []eventlog.Entry{
		event("e", `{"id":"p","n":1}`, ""), event("f", `{"id":"p","n":2}`, ""), event("e", `{"n":3}`, ""),
		user(`{"hidden":true}`), event("e", `{"id":"p","n":4}`, ""), event("e", `{"n":3}`, ""),
		user(`{}`), event("e", `{"id":"p","n":5}`, ""),
		factOf("s", &fact.RunEnded{RunID: "r", Status: fact.RunCompleted, Base: factBase("s")}),
		run("r2", fact.ModeStart), event("e", `{"id":"p","n":6}`, ""), event("e", `{"id":"p","n":7}`, ""),
	})...)...)
	want := []string{
		`{"id":"p","n":4}`, `{"id":"p","n":2}`, `{"n":3}`, `{"n":3}`,
		`{"id":"p","n":5}`,
		`{"id":"p","n":7}`,
	}
	require.Equal(t, want, eventsShown(t, &state.Session))
	require.Equal(t, want, eventsShown(t, &restored(t, state).Session))
	fork := forkOf(t, state, "f")
	require.Equal(t, want, eventsShown(t, &fork.Session))
	require.Len(t, fork.Asides, len(want), "a fork does not go back to what was replaced")
}

// A truncated event replaces nothing, and one that replaced a truncated event stays.
func TestATruncationTakesAReplacementBack(t *testing.T) {
	records := numbered(append(opening(),
		event("e", `{"id":"p","pct":10}`, ""),
		chunk(&eventlog.StepCommitted{RunID: "r", StepID: "st", CheckpointID: "cp", Base: base("s")}, ""),
		event("e", `{"id":"p","pct":90}`, ""),
	)...)
	first, last := records[3], records[5]
	then := projector.Fold(records[:5]...)

	back := projector.Fold(next(records, rollbackTo(then, last.Sequence))...)
	require.Empty(t, back.Parked)
	require.Equal(t, []string{`{"id":"p","pct":10}`}, eventsShown(t, &back.Session), "a rollback")

	for _, truncated := range []struct {
		record eventlog.Record
		left   string
	}{{last, `{"id":"p","pct":10}`}, {first, `{"id":"p","pct":90}`}} {
		seq := truncated.record.Sequence
		crashed := projector.Fold(next(records, factOf("s", &eventlog.Truncated{
			Reason: eventlog.ResyncCrashRecovery, AtSequence: last.Sequence, Base: factBase("s"),
			Ranges: []eventlog.Range{{AgentID: "s", From: seq, To: seq}},
		}))...)
		require.Equal(t, []string{truncated.left}, eventsShown(t, &crashed.Session), "record %d is truncated", seq)
	}
}

// A fold looks at no earlier events, and a clone copies none.
func TestAnEventCostsTheSameAfterManyOthers(t *testing.T) {
	const many = 5_000
	entries := opening()
	for i := range many {
		entries = append(entries, event(fmt.Sprintf("e%d", i), `{"id":"p","n":1}`, ""))
	}
	allocs := func(state *projector.Tree) float64 {
		r := eventlog.Record{Sequence: state.Head, Entry: event("e", `{"id":"p","n":2}`, "")}
		return testing.AllocsPerRun(100, func() {
			r.Sequence++
			projector.Apply(state, r)
		})
	}
	few, all := projector.Fold(numbered(opening()...)...), projector.Fold(numbered(entries...)...)
	require.Len(t, all.Asides, many)
	require.InDelta(t, allocs(few), allocs(all), 2)

	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	clone := all.Clone()
	runtime.ReadMemStats(&after)
	require.Len(t, clone.Asides, len(all.Asides))
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(10*many), "bytes")
}

// interruptedCall is a conversation whose call c1 runs again after a further user message,
// which came when a run was interrupted: its result is placed before that message.
func interruptedCall(calls ...string) []eventlog.Entry {
	st := "st1"
	var parts []fact.TurnPart
	for _, c := range calls {
		parts = append(parts, fact.TurnPart{ToolCall: &fact.ToolCall{ID: c, Name: "t", Arguments: json.RawMessage(`{}`)}})
	}
	return append(opening(),
		chunk(&eventlog.StepStart{StepID: &st, Base: base("s")}, ""),
		factOf("s", &fact.ModelTurn{RunID: "r", StepID: st, Step: 1, Parts: parts, StopReason: fact.StopToolUse, Base: factBase("s")}),
		factOf("s", &fact.RunEnded{RunID: "r", Status: fact.RunStopped, Base: factBase("s")}),
		factOf("s", &fact.UserMessage{Content: "go on", Base: factBase("s")}),
		factOf("s", &fact.RunRequested{RunID: "r2", Mode: fact.ModeContinue, Base: factBase("s")}),
	)
}

func resultOf(call string) eventlog.Entry {
	return factOf("s", &fact.ToolResult{
		RunID: "r2", StepID: "st1", ToolCallID: call, ToolName: "t", Result: json.RawMessage(`1`), Base: factBase("s"),
	})
}

// An annotation keeps its message when a result is placed before that, and when a rollback
// removes the result again.
func TestAnAnnotationStaysWithItsMessage(t *testing.T) {
	records := numbered(append(interruptedCall("c1"),
		event("e", `{"id":"p","n":1}`, "c1"), resultOf("c1"), event("e", `{"id":"p","n":2}`, ""))...)
	before := projector.Fold(records[:len(records)-2]...)
	kept := before.Clone()
	require.Equal(t, 2, before.Asides[0].After)

	state := before.Clone()
	for _, r := range records[len(records)-2:] {
		projector.Apply(state, r)
	}
	require.Empty(t, state.Parked)
	require.Equal(t, projector.RoleUser, state.Messages[3].Role)
	require.Equal(t, 3, state.Asides[0].After)
	require.Equal(t, []string{`{"id":"p","n":2}`}, eventsShown(t, &state.Session), "it is replaced")
	require.Equal(t, encoded(t, before), encoded(t, kept), "clones share nothing that changes")

	back := projector.Fold(next(records, rollbackTo(before, records[len(records)-1].Sequence))...)
	require.Empty(t, back.Parked)
	require.Len(t, back.Messages, 3)
	require.Equal(t, 2, back.Asides[0].After)
}

// An edited fork recalls memories again: what followed the message with the recalled ones
// follows the one before.
func TestAnEditKeepsAnnotationsWithTheirMessages(t *testing.T) {
	then := projector.Fold(numbered(append(opening(),
		factOf("s", &fact.MemoryRecalled{RunID: "r", Memories: []fact.RecalledMemory{{MemoryID: "m", Content: "x"}}, Base: factBase("s")}),
		event("e", `1`, ""))...)...)
	require.Len(t, then.Messages, 2)
	require.Equal(t, 1, then.Asides[0].After)
	state, err := projector.ForkState(then, "f", projector.EditMessage(0, "otherwise"))
	require.NoError(t, err)
	fork := new(projector.Tree)
	require.NoError(t, json.Unmarshal(state, fork))
	require.Len(t, fork.Messages, 1)
	require.Equal(t, 0, fork.Asides[0].After)
}
