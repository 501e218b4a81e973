package sqlite

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/integration/testkit"
	"github.com/helixd/helixd/projector"
	"github.com/helixd/helixd/projector/readmodel"
)

func TestSearch(t *testing.T) {
	w := newWorld(t)
	day := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	w.append("s1", created("s1", "red", "ann"), said("s1", "Wo ist der Flughafen Zürich? A \"quoted\" NEAR thing*"))
	turn := worked("s1", "r1", "small", day, 7)
	turn[3] = factOf("s1", "r1", &fact.ModelTurn{
		RunID: "r1", StepID: "step-r1", Step: 1, StopReason: fact.StopToolUse, Base: factAt("s1", 9),
		Parts: []fact.TurnPart{
			{Reasoning: "a hidden thought"}, {Text: "I look for the airport."},
			{ToolCall: &fact.ToolCall{ID: "c-r1", Name: "look", Arguments: json.RawMessage(`{"city":"Z\u00fcrich\nNord"}`)}},
		},
	})
	turn[4] = factOf("s1", "r1", &fact.ToolResult{
		RunID: "r1", StepID: "step-r1", ToolCallID: "c-r1", ToolName: "look", Result: json.RawMessage(`{"found":["Kloten",42]}`), Base: factAt("s1", 9),
	})
	w.append("s1", turn...)
	w.append("s2", created("s2", "blue", "bob"), said("s2", "the airport of Basel, far from any other airport"))
	w.append("s2", factOf("s2", "", &fact.UserMessage{
		Content: "Answer in JSON about the airport", Metadata: json.RawMessage(projector.ReminderMetadata), Base: factAt("s2", 3),
	}))
	w.open()
	for _, tc := range []struct {
		query readmodel.SearchQuery
		want  []string // session and kind
	}{
		{readmodel.SearchQuery{Text: "zurich"}, []string{"s1 message", "s1 tool_call"}},
		{readmodel.SearchQuery{Text: "ZÜRICH nord"}, []string{"s1 tool_call"}},
		{readmodel.SearchQuery{Text: "airport"}, []string{"s2 message", "s1 message"}},
		{readmodel.SearchQuery{Text: "airport", UserID: "ann"}, []string{"s1 message"}},
		{readmodel.SearchQuery{Text: "airport", AgentType: "blue"}, []string{"s2 message"}},
		{readmodel.SearchQuery{Text: "airport", SessionID: "s1"}, []string{"s1 message"}},
		{readmodel.SearchQuery{Text: "airport", Visible: func(root string) bool { return root == "s1" }}, []string{"s1 message"}},
		{readmodel.SearchQuery{Text: "kloten 42"}, []string{"s1 tool_result"}},
		{readmodel.SearchQuery{Text: "look"}, []string{"s1 tool_call", "s1 tool_result", "s1 message"}},
		{readmodel.SearchQuery{Text: `"airport of"`}, []string{"s2 message"}},
		{readmodel.SearchQuery{Text: `"of airport"`}, []string{}},
		{readmodel.SearchQuery{Text: `quoted near thing`}, []string{"s1 message"}},
		{readmodel.SearchQuery{Text: "thought"}, []string{}},
	} {
		page := asked(t, func(ctx context.Context) (readmodel.Answer[readmodel.Page[readmodel.Hit]], error) {
			return w.models.Search(ctx, tc.query)
		})
		got := []string{}
		for _, h := range page.Items {
			require.NotEmpty(t, h.Snippet)
			require.NotZero(t, h.Sequence)
			got = append(got, h.SessionID+" "+string(h.Kind))
		}
		require.ElementsMatch(t, tc.want, got, tc.query.Text)
		require.Equal(t, len(tc.want), page.Total)
	}
}

// Every text of a user is searched for its words, or refused with an error that names the
// field.
func TestSearchTakesAnyText(t *testing.T) {
	w := newWorld(t)
	w.append("s", created("s", "a", ""), said("s", "needle AND OR NOT NEAR(x y, 3) text:needle ^needle {a b}"))
	w.open()
	for _, text := range []string{
		"AND", "OR needle", "NOT needle", "NEAR(x y, 3)", "text:needle", "^needle", "{a b}", `needle"`, `"needle`, `""needle""`,
		"needle*", "(needle", "needle)", "-needle", "+needle", "needle + x", "needle;", "'needle'", "needle -- x", "a\x00needle", "needle\\",
	} {
		w.search(text)
	}
	require.Equal(t, 1, w.search("AND needle").Total)
	for name, text := range map[string]string{
		"nothing": "", "blanks": " \t", "no word": `*** "" ()`, "long": strings.Repeat("x", readmodel.MaxQueryBytes+1),
		"many words": strings.Repeat("x ", readmodel.MaxQueryTerms+1), "no text": "\xff",
	} {
		_, err := w.models.Search(t.Context(), readmodel.SearchQuery{Text: text})
		var bad *readmodel.QueryError
		require.ErrorAs(t, err, &bad, name)
		require.Equal(t, "q", bad.Field, name)
	}
}

func TestSearchIsBounded(t *testing.T) {
	testkit.OneGoroutine(t)
	w := newWorld(t)
	entries := []eventlog.Entry{created("s", "a", "")}
	for i := range eventlog.MaxAppendRecords - 1 {
		entries = append(entries, said("s", fmt.Sprint("needle ", i)))
	}
	w.append("s", entries...)
	w.append("s", said("s", "needle"), said("s", "needle "+strings.Repeat("long ", readmodel.MaxTextBytes)+" farbehind"))
	w.open()
	require.Equal(t, readmodel.MaxHits, w.search("needle").Total)
	require.Zero(t, w.search("farbehind").Total)
	seen := map[string]bool{}
	for offset := 0; offset < readmodel.MaxHits; offset += readmodel.MaxPage {
		a, err := w.models.Search(t.Context(), readmodel.SearchQuery{
			Text: "needle", Paging: readmodel.Paging{Offset: offset, Limit: readmodel.MaxPage},
		})
		require.NoError(t, err)
		for _, h := range a.Value.Items {
			require.Less(t, len(h.Snippet), 1000)
			require.False(t, seen[fmt.Sprint(h.Sequence)], "no hit is on two pages")
			seen[fmt.Sprint(h.Sequence)] = true
		}
	}
	require.Len(t, seen, readmodel.MaxHits)
	_, err := w.models.Search(t.Context(), readmodel.SearchQuery{Text: "needle", Paging: readmodel.Paging{Offset: readmodel.MaxHits}})
	var bad *readmodel.QueryError
	require.ErrorAs(t, err, &bad)
}

// A search in some sessions finds and ranks as if there were no others.
func TestASearchInSomeSessionsIsIndependentOfOthers(t *testing.T) {
	mine := func(root string) bool { return strings.HasPrefix(root, "mine-") }
	ask := func(w *world) (sessions []string) {
		a := asked(t, func(ctx context.Context) (readmodel.Answer[readmodel.Page[readmodel.Hit]], error) {
			return w.models.Search(ctx, readmodel.SearchQuery{Text: "apple pear", Visible: mine})
		})
		for _, h := range a.Items {
			sessions = append(sessions, h.SessionID)
			require.Contains(t, h.Snippet, "apple")
		}
		return sessions
	}
	w := newWorld(t)
	w.append("mine-1", created("mine-1", "a", ""), said("mine-1", "apple apple pear"))
	w.append("mine-2", created("mine-2", "a", ""), said("mine-2", "apple pear pear"))
	for i := range 20 { // so that the other word is the rarer one
		id := fmt.Sprint("mine-more-", i)
		w.append(id, created(id, "a", ""), said(id, "pear"))
	}
	w.open()
	require.Equal(t, []string{"mine-1", "mine-2"}, ask(w))
	for i := range 60 {
		id := fmt.Sprint("theirs-", i)
		w.append(id, created(id, "a", ""), said(id, "apple"))
	}
	require.Equal(t, []string{"mine-1", "mine-2"}, ask(w))
}

// Slow searches do not delay listings.
func TestSearchesHaveTheirOwnReaders(t *testing.T) {
	w := newWorld(t)
	w.append("s", created("s", "a", ""), said("s", "needle"))
	w.open()
	w.search("needle")
	w.models.use.RLock()
	find := w.models.file.find
	w.models.use.RUnlock()
	for range searchers {
		conn, err := find.Conn(t.Context())
		require.NoError(t, err)
		defer conn.Close()
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := w.models.Search(ctx, readmodel.SearchQuery{Text: "needle"})
	require.ErrorIs(t, err, context.DeadlineExceeded, "all of them are busy")
	listed, err := w.models.Sessions(t.Context(), readmodel.SessionFilter{})
	require.NoError(t, err)
	require.Equal(t, 1, listed.Value.Total)
}

// Slow listings do not delay the queries that admit requests of tenants.
func TestTenantUseHasItsOwnReader(t *testing.T) {
	w := newWorld(t)
	w.append("s", created("s", "a", ""), said("s", "needle"))
	w.open()
	w.search("needle")
	w.models.use.RLock()
	read := w.models.file.read
	w.models.use.RUnlock()
	for range readers {
		conn, err := read.Conn(t.Context())
		require.NoError(t, err)
		defer conn.Close()
	}
	ctx, cancel := context.WithTimeout(t.Context(), answerTimeout)
	defer cancel()
	use, err := w.models.TenantUse(ctx, "red", []string{"s"})
	require.NoError(t, err)
	require.Contains(t, use.Trees, "s")
	require.True(t, w.models.Fresh(ctx).Current)
	require.NoError(t, ctx.Err(), "neither has waited for a listing")
}
