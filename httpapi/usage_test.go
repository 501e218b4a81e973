package httpapi_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/projector"
)

// TestUsage: what a tree has used, entry by entry and in all.
func TestUsage(t *testing.T) {
	t.Parallel()
	agents := waitingAgents()
	tokens := fact.TokenUsage{Prompt: 10, Completion: 3, Reasoning: 2, Cached: 4, Total: 13}
	turns := saying("all done", calling("task", "subagent__child", `{"message":"do it"}`))
	for i := range turns {
		turns[i].Usage = tokens
	}
	for i := range agents {
		if agents[i].Name == "parent" {
			agents[i].Model = scripted.New(turns, &scripted.Options{Name: "big"})
		}
	}
	a := newAPIOn(t, newLog(t), agents)
	a.begin("p", "parent")
	require.Equal(t, 200, a.post(submitTarget, `{"sessionId":"p","kind":"approval-response","toolCallId":"inner","approved":true}`).status)
	require.Equal(t, 200, a.post("/resume", `{"sessionId":"p"}`).status)
	a.wait("p")

	var got api.UsagePage
	a.get("/sessions/p/usage").decode(t, &got)
	require.Equal(t, len(got.Items), got.Total)
	require.Equal(t, []int{0, 50}, []int{got.Offset, got.Limit})
	require.False(t, got.HasMore)
	kinds := map[string]int{}
	calls := map[string]int{} // by run
	for _, e := range got.Items {
		kinds[e.SessionID+" "+string(e.Kind)]++
		switch {
		case e.Kind == projector.UsageTool, e.Kind == projector.UsageSubAgent:
			calls[e.RunID]++
		case e.Kind == projector.UsageTokens && e.SessionID == "p":
			require.Equal(t, &tokens, e.Tokens)
			require.Equal(t, "big", e.Model)
		}
	}
	require.Equal(t, map[string]int{
		"p tokens": 2, "p subagent": 1, "p-sub-task tokens": 2, "p-sub-task tool": 2, "p-sub-task custom": 1,
	}, kinds)

	all := got.Rollup
	require.Equal(t, "p", all.SessionID)
	require.EqualValues(t, 26, all.Tokens.Total)
	require.EqualValues(t, 8, all.Tokens.Cached)
	require.Equal(t, 4, all.ModelCalls)
	require.Equal(t, 2, all.Models["big"].Calls)
	require.Equal(t, projector.ToolStats{TotalCalls: 3}, all.ToolStats)
	require.Equal(t, 1, all.Waits["remove"].Calls)
	require.Len(t, all.SubAgents, 1)
	require.Equal(t, "p-sub-task", all.SubAgents[0].SessionID)
	require.Equal(t, 2, all.SubAgents[0].ModelCalls)
	require.NotEmpty(t, all.Runs)
	for _, run := range all.Runs {
		require.Equal(t, calls[run.RunID], run.ToolStats.TotalCalls, run.RunID)
	}
	require.Contains(t, a.get("/sessions/p/usage").body, `"tokens":{"prompt":`)

	// Pages hold the same entries, and each the sums of all.
	var paged []projector.UsageEntry
	for offset, more := 0, true; more; offset += 3 {
		var page api.UsagePage
		a.get(fmt.Sprint("/sessions/p/usage?limit=3&offset=", offset)).decode(t, &page)
		paged, more = append(paged, page.Items...), page.HasMore
		require.Equal(t, got.Total, page.Total)
		require.Equal(t, all, page.Rollup)
	}
	require.Equal(t, got.Items, paged)
}

func TestUsageOfNothing(t *testing.T) {
	t.Parallel()
	a := newAPIOn(t, memory.New(), nil)
	a.append("s", created("s"))
	require.JSONEq(t, `{"items":[],"total":0,"offset":7,"limit":50,"hasMore":false,"rollup":{"sessionId":"s",
		"tokens":{"prompt":0,"completion":0,"total":0},"modelCalls":0,"toolStats":{"totalCalls":0,"failedCalls":0}}}`,
		a.get("/sessions/s/usage?offset=7").body)
	a.get("/sessions/s/usage?limit=0").failed(t, 400, api.CodeInvalidRequest)
	a.get("/sessions/%00/usage").failed(t, 400, api.CodeInvalidRequest)
	a.get("/sessions/nobody/usage").failed(t, 404, api.CodeNotFound)
	require.Equal(t, "GET, HEAD", a.post("/sessions/s/usage", "{}").header.Get("Allow"))
}
