package sqlite

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector/readmodel"
)

// worked is a run with one model call and one tool call.
func worked(session, run, model string, at time.Time, tokens int64) []eventlog.Entry {
	step, base := "step-"+run, factAt(session, at.UnixMilli())
	return []eventlog.Entry{
		said(session, "go"),
		factOf(session, run, &fact.RunRequested{RunID: run, Mode: fact.ModeStart, Base: base}),
		chunk(session, run, "", &eventlog.StepStart{StepID: &step, Base: eventlog.Base{
			AgentID: session, AgentType: "a", Timestamp: at.UnixMilli(), Step: 1,
		}}),
		factOf(session, run, &fact.ModelTurn{
			RunID: run, StepID: step, Step: 1, Model: model, StopReason: fact.StopToolUse, Base: base,
			Usage: fact.TokenUsage{Prompt: tokens, Completion: tokens, Total: 2 * tokens},
			Parts: []fact.TurnPart{{ToolCall: &fact.ToolCall{ID: "c-" + run, Name: "look", Arguments: json.RawMessage(`{}`)}}},
		}),
		factOf(session, run, &fact.ToolResult{
			RunID: run, StepID: step, ToolCallID: "c-" + run, ToolName: "look", Error: "no", Base: base,
		}),
		factOf(session, run, &fact.RunEnded{RunID: run, Status: fact.RunCompleted, Base: base}),
	}
}

func TestUsage(t *testing.T) {
	w := newWorld(t)
	w.opts.Prices = map[string]readmodel.Price{"small": {Input: 1, Output: 2}}
	day := time.Date(2026, 3, 1, 23, 59, 0, 0, time.UTC)
	w.append("s1", created("s1", "red", "ann"))
	w.append("s1", worked("s1", "r1", "small", day, 1_000_000)...)
	w.append("s1", worked("s1", "r2", "large", day.Add(time.Hour), 10)...)
	w.append("s2", created("s2", "blue", "bob"))
	w.append("s2", worked("s2", "r1", "small", day, 1_000_000)...)
	child := "s2-child"
	w.append("s2", factOf(child, "", &fact.SessionCreated{
		AgentType: "red", Child: &fact.SubSession{ParentSessionID: "s2", CallID: "c", Mode: "ephemeral"}, Base: factAt(child, 1),
	}))
	w.append("s2", worked(child, "r3", "small", day, 500_000)...)
	w.open()
	report := func(q readmodel.UsageQuery) readmodel.UsageReport {
		t.Helper()
		return asked(t, func(ctx context.Context) (readmodel.Answer[readmodel.UsageReport], error) {
			return w.models.Usage(ctx, q)
		})
	}
	type row struct {
		Key                   string
		Sessions, Runs, Calls int
		Tokens                int64
		Tools                 int
		Cost                  float64
		Unpriced              []string
	}
	for _, tc := range []struct {
		name  string
		query readmodel.UsageQuery
		want  []row
	}{
		{"by agent", readmodel.UsageQuery{By: readmodel.ByAgent}, []row{
			{"blue", 1, 1, 1, 2_000_000, 1, 3, nil}, {"red", 2, 3, 3, 3_000_020, 3, 4.5, []string{"large"}},
		}},
		{"by model", readmodel.UsageQuery{By: readmodel.ByModel}, []row{
			{"large", 1, 1, 1, 20, 0, 0, []string{"large"}}, {"small", 3, 3, 3, 5_000_000, 0, 7.5, nil},
		}},
		{"by user", readmodel.UsageQuery{By: readmodel.ByUser}, []row{
			{"ann", 1, 2, 2, 2_000_020, 2, 3, []string{"large"}}, {"bob", 2, 2, 2, 3_000_000, 2, 4.5, nil},
		}},
		{"by day", readmodel.UsageQuery{By: readmodel.ByDay}, []row{
			{"2026-03-01", 3, 3, 3, 5_000_000, 3, 7.5, nil}, {"2026-03-02", 1, 1, 1, 20, 1, 0, []string{"large"}},
		}},
		{"of some days", readmodel.UsageQuery{By: readmodel.ByUser, From: day.Add(time.Minute).UnixMilli()}, []row{
			{"ann", 1, 1, 1, 20, 1, 0, []string{"large"}},
		}},
		{"up to a day", readmodel.UsageQuery{By: readmodel.ByUser, To: day.UnixMilli()}, []row{}},
		{"of a session and its sub-agents", readmodel.UsageQuery{By: readmodel.ByAgent, SessionID: "s2"}, []row{
			{"blue", 1, 1, 1, 2_000_000, 1, 3, nil}, {"red", 1, 1, 1, 1_000_000, 1, 1.5, nil},
		}},
		{"of a user and an agent", readmodel.UsageQuery{By: readmodel.ByDay, UserID: "bob", AgentType: "red"}, []row{
			{"2026-03-01", 1, 1, 1, 1_000_000, 1, 1.5, nil},
		}},
		{"of visible sessions", readmodel.UsageQuery{By: readmodel.ByModel, Visible: func(root string) bool { return root == "s2" }}, []row{
			{"small", 2, 2, 2, 3_000_000, 0, 4.5, nil},
		}},
	} {
		got := report(tc.query)
		rows, sum := []row{}, 0.0
		for _, r := range got.Rows {
			require.Equal(t, r.ToolCalls, r.FailedToolCalls)
			rows = append(rows, row{r.Key, r.Sessions, r.Runs, r.ModelCalls, r.Tokens.Total, r.ToolCalls, r.CostUSD, r.Unpriced})
			sum += r.CostUSD
		}
		require.Equal(t, tc.want, rows, tc.name)
		require.InDelta(t, sum, got.Total.CostUSD, 1e-9, tc.name)
	}
	_, err := w.models.Usage(t.Context(), readmodel.UsageQuery{By: "hour"})
	var bad *readmodel.QueryError
	require.ErrorAs(t, err, &bad)

	w.models.SetPrices(map[string]readmodel.Price{"small": {Input: 2, Output: 4}, "large": {}})
	got := report(readmodel.UsageQuery{By: readmodel.ByModel}).Total
	require.InDelta(t, 15, got.CostUSD, 1e-9, "prices are those of now")
	require.Empty(t, got.Unpriced)
}

func TestRunsByFilter(t *testing.T) {
	w := newWorld(t)
	day := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	w.append("s1", created("s1", "red", "ann"))
	w.append("s1", worked("s1", "r1", "small", day, 7)...)
	w.append("s1", worked("s1", "r2", "small", day.Add(2*time.Hour), 7)...)
	w.append("s2", created("s2", "blue", "bob"))
	w.append("s2", worked("s2", "r3", "small", day.Add(time.Hour), 7)[:3]...)
	w.open()
	for _, tc := range []struct {
		name   string
		filter readmodel.RunFilter
		want   []string
	}{
		{"all, the last first", readmodel.RunFilter{}, []string{"r2", "r3", "r1"}},
		{"session", readmodel.RunFilter{SessionID: "s1"}, []string{"r2", "r1"}},
		{"agent", readmodel.RunFilter{AgentType: "blue"}, []string{"r3"}},
		{"user", readmodel.RunFilter{UserID: "ann"}, []string{"r2", "r1"}},
		{"status", readmodel.RunFilter{Status: fact.RunRunning}, []string{"r3"}},
		{"time", readmodel.RunFilter{From: day.UnixMilli(), To: day.Add(2 * time.Hour).UnixMilli()}, []string{"r3", "r1"}},
		{"page", readmodel.RunFilter{Paging: readmodel.Paging{Offset: 1, Limit: 1}}, []string{"r3"}},
		{"visible sessions", readmodel.RunFilter{Visible: func(root string) bool { return root == "s1" }, Paging: readmodel.Paging{Offset: 1}}, []string{"r1"}},
	} {
		page := asked(t, func(ctx context.Context) (readmodel.Answer[readmodel.Page[readmodel.Run]], error) {
			return w.models.Runs(ctx, tc.filter)
		})
		got := []string{}
		for _, run := range page.Items {
			got = append(got, run.RunID)
		}
		require.Equal(t, tc.want, got, tc.name)
	}
}
