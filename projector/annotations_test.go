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
