package projector_test

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/integration/testkit"
	"github.com/helixd/helixd/projector"
)

func recorded(agent, typ, name string, amount float64) eventlog.Entry {
	return factOf(agent, &fact.UsageRecorded{
		RunID: "r", StepCount: 1, Source: fact.UsageTool, SourceType: typ, SourceName: name, Amount: amount, Base: factBase(agent),
	})
}

func childOf(parent, id string) eventlog.Entry {
	return factOf(id, &fact.SessionCreated{AgentType: "b", Base: factBase(id), Child: &fact.SubSession{
		ParentSessionID: parent, CallID: "c", Mode: fact.SubSessionEphemeral,
	}})
}

// entriesOf returns the usage entries of records.
func entriesOf(t *testing.T, records []eventlog.Record) []projector.UsageEntry {
	t.Helper()
	var out []projector.UsageEntry
	for e, err := range projector.UsageEntries(func(yield func(eventlog.Record, error) bool) {
		for _, r := range records {
			if !yield(r, nil) {
				return
			}
		}
	}) {
		require.NoError(t, err)
		out = append(out, e)
	}
	return out
}

func TestUsageIsSummedByRunModelAndTool(t *testing.T) {
	log := append(opening(), step("one", 1, "hm", "c1", "c2")...)
	log = append(log, step("two", 2, "hm")...)
	state := projector.Fold(numbered(log...)...)
	tokens := fact.TokenUsage{Prompt: 6, Completion: 2, Total: 8}
	want := projector.Totals{
		Tokens: tokens, ModelCalls: 2, ToolStats: projector.ToolStats{TotalCalls: 2},
		Models: map[string]projector.ModelUsage{projector.UnknownModel: {Calls: 2, Tokens: tokens}},
		Tools:  map[string]projector.ToolStats{"note": {TotalCalls: 2}},
	}
	require.Equal(t, want, state.Usage.Totals)
	require.Equal(t, map[string]projector.Totals{"r": want}, state.Usage.Runs)
}

func TestARollupIncludesSubAgents(t *testing.T) {
	state := projector.Fold(numbered(append(opening(),
		childOf("s", "child"), childOf("child", "grandchild"),
		recorded("s", "pages", "search", 1), recorded("child", "pages", "search", 2), recorded("grandchild", "pages", "read", 4),
		recorded("child", fact.ClientToolWait, "ask", 250), recorded("child", fact.ClientToolWait, "ask", 50),
	)...)...)
	require.Empty(t, state.Parked)
	all := state.RollUp("s")
	require.Equal(t, map[string]projector.Amount{"search": {Count: 2, Sum: 3}, "read": {Count: 1, Sum: 4}}, all.Recorded["pages"])
	require.Equal(t, map[string]projector.Wait{"ask": {Calls: 2, TotalMs: 300}}, all.Waits)
	require.Len(t, all.SubAgents, 2)
	require.Equal(t, map[string]projector.Amount{"search": {Count: 1, Sum: 2}}, all.SubAgents[0].Recorded["pages"])
	require.Equal(t, "child", all.SubAgents[1].ParentSessionID)
	require.Len(t, state.RollUp("child").SubAgents, 1)
	require.Equal(t, projector.Rollup{}, state.RollUp("nobody"))

	all.Recorded["pages"]["search"] = projector.Amount{}
	all.SubAgents[0].Recorded["pages"]["search"] = projector.Amount{}
	require.InDelta(t, 3, state.RollUp("s").Recorded["pages"]["search"].Sum, 0, "a rollup is a copy")
}

func TestARollbackKeepsUsage(t *testing.T) {
	records := numbered(append(append(opening(), step("one", 1, "hm", "c1")...), recorded("s", "pages", "search", 1))...)
	now := projector.Fold(records...)
	back := projector.Fold(next(records, rollbackTo(projector.Fold(records[:3]...), records[len(records)-1].Sequence))...)
	require.Empty(t, back.Messages[1:])
	require.Equal(t, now.Usage, restored(t, back).Usage)
	require.NotEmpty(t, back.Usage.Runs["r"].Tools)
	fork, err := projector.ForkState(back, "f")
	require.NoError(t, err)
	var forked projector.Tree
	require.NoError(t, json.Unmarshal(fork, &forked))
	require.Equal(t, projector.Usage{}, forked.Usage)
}

func TestEntriesAreThoseOfTheSums(t *testing.T) {
	rnd := testkit.Random(t)
	for range testkit.Times(100) {
		log := randomLog(rnd, 150)
		state := projector.Fold(log...)
		var total int64
		models, calls := 0, 0
		for _, e := range entriesOf(t, log) {
			switch e.Kind {
			case projector.UsageTokens:
				models++
				total += e.Tokens.Total
			case projector.UsageTool:
				calls++
			}
		}
		var want projector.Totals
		for _, s := range state.Sessions() {
			want.Plus(s.Usage.Totals)
		}
		require.Equal(t, want.ModelCalls, models)
		require.Equal(t, want.ToolStats.TotalCalls, calls)
		require.Equal(t, want.Tokens.Total, total)
	}
}

func TestAnEntryNamesItsRecord(t *testing.T) {
	records := numbered(append(append(opening(), step("one", 3, "hm", "c1")...), recorded("s", "pages", "search", 2.5))...)
	entries := entriesOf(t, records)
	require.Len(t, entries, 3)
	require.Equal(t, "s", entries[0].SessionID)
	require.Equal(t, 3, entries[0].StepCount)
	require.Equal(t, projector.UnknownModel, entries[0].Model)
	require.EqualValues(t, 4, entries[0].Tokens.Total)
	require.Equal(t, "c1", entries[1].CallID)
	require.True(t, *entries[1].Success)
	require.Equal(t, 3, entries[1].StepCount)
	require.Equal(t, "pages", entries[2].SourceType)
	require.InDelta(t, 2.5, *entries[2].Amount, 0)
	last := records[len(records)-1]
	require.Equal(t, last.Sequence, entries[2].Sequence)
	require.Contains(t, entries[2].ID, "usage-")
}

// TestASumNeverGetsTooLarge: a state that can't be saved would stop a session.
func TestASumNeverGetsTooLarge(t *testing.T) {
	state := projector.Fold(numbered(append(opening(),
		recorded("s", "x", "t", math.MaxFloat64), recorded("s", "x", "t", math.MaxFloat64), recorded("s", "x", "t", math.MaxFloat64),
	)...)...)
	require.InDelta(t, math.MaxFloat64, restored(t, state).Usage.Recorded["x"]["t"].Sum, 0)
	require.Equal(t, 3, state.Usage.Recorded["x"]["t"].Count)
}
