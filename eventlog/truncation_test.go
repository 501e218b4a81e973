package eventlog_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
)

func TestRangeCovers(t *testing.T) {
	record := func(seq uint64, agent, call string) eventlog.Record {
		return eventlog.Record{Sequence: seq, Entry: eventlog.Entry{Envelope: eventlog.Envelope{
			Run: "r", Kind: eventlog.KindChunk, Type: "text_delta", Agent: agent, Call: call,
		}}}
	}
	step := eventlog.Range{AgentID: "s", From: 3, To: 5}
	call := eventlog.Range{AgentID: "s", CallID: "c", From: 4, To: 4}
	for _, tc := range []struct {
		r          eventlog.Record
		step, call bool
	}{
		{record(2, "s", ""), false, false},
		{record(3, "s", ""), true, false},
		{record(5, "s", ""), true, false},
		{record(6, "s", ""), false, false},
		{record(4, "child", ""), false, false},
		{record(4, "s", "c"), false, true},
		{record(4, "s", "other"), false, false},
		{record(4, "child", "c"), false, false},
	} {
		require.Equal(t, tc.step, step.Covers(tc.r), "%+v", tc.r)
		require.Equal(t, tc.call, call.Covers(tc.r), "%+v", tc.r)
	}
	fact := record(4, "s", "")
	fact.Kind = eventlog.KindFact
	require.False(t, step.Covers(fact), "a fact of a chunk's name")
}

func TestStrikable(t *testing.T) {
	stays := []string{
		"checkpoint_created", "error", "executor_superseded", "run_interrupted", "run_paused", "run_resumed",
		"step_committed", "step_discarded", "stream_resync", "suspension_marker",
	}
	for _, typ := range append(eventlog.ChunkTypes(), "newer") {
		e := eventlog.Envelope{Kind: eventlog.KindChunk, Type: typ, Run: "r"}
		require.Equal(t, !slices.Contains(stays, typ), eventlog.Strikable(e), typ)
	}
	for _, typ := range append(eventlog.FactTypes(), "newer") {
		require.False(t, eventlog.Strikable(eventlog.Envelope{Kind: eventlog.KindFact, Type: typ, Run: "r"}), typ)
		require.False(t, eventlog.Strikable(eventlog.Envelope{Kind: eventlog.KindChunk, Type: typ}), "an outside producer's %s", typ)
	}
}

func TestDeadMarks(t *testing.T) {
	marker, err := eventlog.NewFact("s", &eventlog.Truncated{
		Reason: eventlog.ResyncRetry, Ranges: []eventlog.Range{{AgentID: "s", From: 1, To: 2}, {AgentID: "s", From: 4, To: 4}},
	}, eventlog.Labels{})
	require.NoError(t, err)
	text, err := eventlog.NewChunk(&eventlog.TextDelta{Base: eventlog.Base{AgentID: "s", AgentType: "a"}}, eventlog.Labels{Run: "r"})
	require.NoError(t, err)

	var dead eventlog.Dead
	require.NoError(t, dead.Mark(eventlog.Record{Entry: text}))
	require.Empty(t, dead)
	require.NoError(t, dead.Mark(eventlog.Record{Sequence: 5, Entry: marker}))
	var covered []uint64
	for seq := range uint64(6) {
		if dead.Covers(eventlog.Record{Sequence: seq, Entry: text}) {
			covered = append(covered, seq)
		}
	}
	require.Equal(t, []uint64{1, 2, 4}, covered)

	marker.Payload = []byte("{")
	require.Error(t, dead.Mark(eventlog.Record{Entry: marker}), "a marker that cannot be read strikes nothing in silence")
}
