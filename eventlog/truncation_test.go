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

func TestScopeRunTruncates(t *testing.T) {
	stays := []string{
		"checkpoint_created", "error", "executor_superseded", "run_interrupted", "run_paused", "run_resumed",
		"step_committed", "step_discarded", "stream_resync", "suspension_marker",
	}
	for _, typ := range append(eventlog.ChunkTypes(), "newer") {
		e := eventlog.Envelope{Kind: eventlog.KindChunk, Type: typ, Run: "r"}
		require.Equal(t, !slices.Contains(stays, typ), eventlog.ScopeRun.Truncates(e), typ)
	}
	for _, typ := range append(eventlog.FactTypes(), "newer") {
		require.False(t, eventlog.ScopeRun.Truncates(eventlog.Envelope{Kind: eventlog.KindFact, Type: typ, Run: "r"}), typ)
		require.False(t, eventlog.ScopeRun.Truncates(eventlog.Envelope{Kind: eventlog.KindChunk, Type: typ}), "an outside producer's %s", typ)
	}
}

// What each scope reaches, of every type of record.
func TestScopes(t *testing.T) {
	lifecycle := []string{
		"checkpoint_created", "error", "executor_superseded", "run_interrupted", "run_paused", "run_resumed",
		"step_committed", "step_discarded", "stream_resync", "suspension_marker",
	}
	immortal := []string{
		"claim_settled", "durable_appended", "durable_changed", "durable_created", "erased", "memory_embedded", "memory_forgotten", "memory_saved", "run_claimed", "session_created", "session_imported",
		"session_forked", "truncated", "usage_recorded", "metadata_replaced", "run_deleted", "workspace_closed", "workspace_failed", "workspace_opened", "newer",
	}
	for _, run := range []string{"", "r"} {
		for _, typ := range append(eventlog.ChunkTypes(), "newer") {
			e := eventlog.Envelope{Kind: eventlog.KindChunk, Type: typ, Run: run}
			content := !slices.Contains(lifecycle, typ)
			require.Equal(t, content && run != "", eventlog.ScopeRun.Truncates(e), "%s of run %q", typ, run)
			require.Equal(t, content, eventlog.ScopeContent.Truncates(e), "%s of run %q", typ, run)
			require.True(t, eventlog.ScopeAll.Truncates(e), "%s of run %q", typ, run)
		}
		for _, typ := range append(eventlog.FactTypes(), "newer", "text_delta") {
			e := eventlog.Envelope{Kind: eventlog.KindFact, Type: typ, Run: run}
			require.False(t, eventlog.ScopeRun.Truncates(e), typ)
			require.False(t, eventlog.ScopeContent.Truncates(e), typ)
			require.Equal(t, !slices.Contains(immortal, typ) && typ != "text_delta", eventlog.ScopeAll.Truncates(e), typ)
		}
	}
	require.False(t, eventlog.Scope("newer").Truncates(eventlog.Envelope{Kind: eventlog.KindChunk, Type: "text_delta", Run: "r"}))

	e := eventlog.Envelope{Kind: eventlog.KindChunk, Type: "text_delta", Agent: "s", Run: "r", Call: "c"}
	all := eventlog.Range{AgentID: "s", From: 3, To: 5, Scope: eventlog.ScopeAll}
	for seq, want := range map[uint64]bool{2: false, 3: true, 5: true, 6: false} {
		require.Equal(t, want, all.Covers(eventlog.Record{Sequence: seq, Entry: eventlog.Entry{Envelope: e}}))
	}
	e.Agent = "child"
	require.False(t, all.Covers(eventlog.Record{Sequence: 4, Entry: eventlog.Entry{Envelope: e}}))
}

// The rules of markers, written by hand.
func TestMarkerWireForm(t *testing.T) {
	for _, tc := range []struct {
		marker *eventlog.Truncated
		want   string
	}{
		{
			&eventlog.Truncated{
				Reason: eventlog.ResyncCrashRecovery, AtSequence: 9, TruncatedAtStep: new(0), MinSequence: 4, Base: factBase,
				Ranges: []eventlog.Range{{AgentID: "s", From: 5, To: 9, Scope: eventlog.ScopeContent}},
			},
			`{"type":"truncated","reason":"crash_recovery","ranges":[{"agentId":"s","from":5,"to":9,"scope":"content"}],"atSequence":9,` +
				`"truncatedAtStep":0,"minSequence":4,"sessionId":"session-1","timestamp":1700000000123}`,
		},
		{
			&eventlog.Truncated{
				Reason: eventlog.ResyncRollback, AtSequence: 9, AfterSequence: 4, Restore: raw(`{"a":"<"}`), Base: factBase,
				Ranges: []eventlog.Range{{AgentID: "s", From: 5, To: 9, Scope: eventlog.ScopeAll}},
			},
			`{"type":"truncated","reason":"rollback","ranges":[{"agentId":"s","from":5,"to":9,"scope":"all"}],"atSequence":9,` +
				`"afterSequence":4,"restore":{"a":"<"},"sessionId":"session-1","timestamp":1700000000123}`,
		},
	} {
		wire, err := eventlog.EncodeFact(tc.marker)
		require.NoError(t, err)
		require.Equal(t, tc.want, string(wire))
		got, err := eventlog.DecodeFact(wire)
		require.NoError(t, err)
		require.Equal(t, tc.marker, got)
	}
	for field, m := range map[string]eventlog.Truncated{
		"ranges[0]":        {Ranges: []eventlog.Range{{From: 2, To: 1}}},
		"ranges[0].scope":  {Ranges: []eventlog.Range{{From: 1, To: 1, Scope: "newer"}}},
		"ranges[0].callId": {Ranges: []eventlog.Range{{From: 1, To: 1, CallID: "c", Scope: eventlog.ScopeAll}}},
		"truncatedAtStep":  {TruncatedAtStep: new(-1)},
		"afterSequence":    {AfterSequence: 2, AtSequence: 1},
		"restore":          {Restore: raw(`[]`)},
	} {
		var invalid *eventlog.ValidationError
		_, err := eventlog.EncodeFact(&m)
		require.ErrorAs(t, err, &invalid)
		require.Equal(t, field, invalid.Field)
	}
}

func TestDeadMarks(t *testing.T) {
	marker, err := eventlog.NewFact("s", &eventlog.Truncated{
		Reason: eventlog.ResyncRetry, Ranges: []eventlog.Range{{AgentID: "s", From: 1, To: 2}, {AgentID: "s", From: 4, To: 4}},
	}, eventlog.Labels{})
	require.NoError(t, err)
	text, err := eventlog.NewChunk(&eventlog.TextDelta{Base: eventlog.Base{AgentID: "s", AgentType: "a"}}, eventlog.Labels{Run: "r"})
	require.NoError(t, err)

	var dead eventlog.Truncations
	require.NoError(t, dead.Add(eventlog.Record{Entry: text}))
	require.Empty(t, dead)
	require.NoError(t, dead.Add(eventlog.Record{Sequence: 5, Entry: marker}))
	var covered []uint64
	for seq := range uint64(6) {
		if dead.Covers(eventlog.Record{Sequence: seq, Entry: text}) {
			covered = append(covered, seq)
		}
	}
	require.Equal(t, []uint64{1, 2, 4}, covered)

	// A marker truncates only what precedes it.
	dead = nil
	require.NoError(t, dead.Add(eventlog.Record{Sequence: 2, Entry: marker}))
	require.Equal(t, eventlog.Truncations{{AgentID: "s", From: 1, To: 1}}, dead)

	dead = nil
	newer := marker
	newer.Payload = []byte(`{"type":"truncated","ranges":[{"agentId":"s","from":1,"to":2},{"agentId":"s","from":1,"to":2,"scope":"newer"}]}`)
	require.Error(t, dead.Add(eventlog.Record{Sequence: 5, Entry: newer}), "nor one that is understood in part")
	require.Empty(t, dead)

	marker.Payload = []byte("{")
	require.Error(t, dead.Add(eventlog.Record{Entry: marker}), "a marker that cannot be read is an error")
}
