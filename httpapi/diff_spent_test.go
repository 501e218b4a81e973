package httpapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/httpapi"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/integration/testkit"
	"github.com/helixd/helixd/projector/readmodel"
)

// priced gives the model big a price.
func priced(o *httpapi.Options) {
	o.Prices = map[string]readmodel.Price{"big": {Input: 1e6, Output: 2e6, CachedInput: new(5e5)}}
}

// courseOf returns how a call came further, as diffs from the beginning tell.
func (a *testAPI) courseOf(session, call string) (statuses []api.CallStatus) {
	a.t.Helper()
	for _, r := range parseRecords(a.t, a.get("/sessions/"+session+"/records?dead=1").body) {
		status := api.CallStatus("")
		for _, c := range a.diffs(session, 0, r.Sequence).ToolCalls {
			require.Empty(a.t, c.Before)
			if c.ToolCallID == call {
				status = c.After
			}
		}
		if len(statuses) == 0 || statuses[len(statuses)-1] != status {
			statuses = append(statuses, status)
		}
	}
	return statuses
}

// TestDiffOfCalls: how calls come further, those of sub-agents too, and are
// taken back.
func TestDiffOfCalls(t *testing.T) {
	testkit.OneGoroutine(t)
	t.Parallel()
	failing := agentloop.Tool{Name: "fail", Execute: func(context.Context, *agentloop.Call, json.RawMessage) (any, error) {
		return nil, errors.New("it broke")
	}}
	a := newAPIOn(t, memory.New(), append(waitingAgents(), agentloop.Agent{
		Name: "unlucky", Tools: []agentloop.Tool{failing}, Model: scripted.New(saying("oh", calling("f", "fail", `{}`)), nil),
	}))
	a.begin("p", "parent")
	asked := a.head("p")
	first := a.diffs("p", 0, asked).ToolCalls
	require.Equal(t, []api.CallChange{
		{SessionID: "p", ToolCallID: "task", ToolName: "subagent__child", After: api.CallWaiting},
		{SessionID: "p-sub-task", ToolCallID: "inner", ToolName: "remove", After: api.CallWaiting},
	}, first)
	require.Equal(t, 200, a.post(submitTarget, `{"sessionId":"p","kind":"approval-response","toolCallId":"inner","approved":true}`).status)
	answered := a.head("p")
	require.Equal(t, []api.CallChange{{
		SessionID: "p-sub-task", ToolCallID: "inner", ToolName: "remove", Before: api.CallWaiting, After: api.CallPending,
	}}, a.diffs("p", asked, answered).ToolCalls)
	require.Equal(t, 200, a.post("/resume", `{"sessionId":"p"}`).status)
	a.wait("p")
	head := a.head("p")

	const pending, running, waiting, done = api.CallPending, api.CallRunning, api.CallWaiting, api.CallDone
	require.Equal(t, []api.CallStatus{"", pending, waiting, pending, running, done}, a.courseOf("p", "inner"))
	require.Equal(t, []api.CallStatus{"", pending, running, waiting, running, done}, a.courseOf("p", "task"))
	last := a.diffs("p", answered, head).ToolCalls
	require.Equal(t, api.CallChange{
		SessionID: "p", ToolCallID: "task", ToolName: "subagent__child", Before: waiting, After: done, Result: json.RawMessage(`{"ok":true}`),
	}, last[0])
	i := slices.IndexFunc(last, func(c api.CallChange) bool { return c.ToolCallID == "inner" })
	require.Equal(t, api.CallChange{
		SessionID: "p-sub-task", ToolCallID: "inner", ToolName: "remove", Before: pending, After: done, Result: json.RawMessage(`{"path":"/y"}`),
	}, last[i])
	require.Empty(t, a.diffs("p", head, head).ToolCalls)

	// Back, and taken back.
	for _, c := range a.diffs("p", head, 0).ToolCalls {
		require.Equal(t, []api.CallStatus{done, ""}, []api.CallStatus{c.Before, c.After})
		require.Empty(t, c.Result, "there is none there")
	}
	require.Equal(t, 200, a.post("/sessions/p/rollback", `{"sequence":`+fmt.Sprint(a.tree("p").Messages[0].Sequence)+`}`).status)
	require.Len(t, a.diffs("p", head, a.head("p")).ToolCalls, 3)

	a.begin("u", "unlucky")
	require.Equal(t, []api.CallChange{
		{SessionID: "u", ToolCallID: "f", ToolName: "fail", After: api.CallFailed, Error: "it broke"},
	}, a.diffs("u", 0, a.head("u")).ToolCalls)
	require.Equal(t, []api.CallStatus{"", pending, running, api.CallFailed}, a.courseOf("u", "f"))
}

// TestDiffOfSpending: tokens, what they cost where that is known, and time.
func TestDiffOfSpending(t *testing.T) {
	t.Parallel()
	tokens := fact.TokenUsage{Prompt: 10, Completion: 3, Cached: 4, Total: 13}
	turns := saying("done", calling("task", "subagent__child", `{"message":"do it"}`))
	for i := range turns {
		turns[i].Usage = tokens
	}
	agents := waitingAgents()
	agents[len(agents)-1].Model = scripted.New(turns, &scripted.Options{Name: "big"})
	a := newAPIOn(t, memory.New(), agents, priced)
	a.begin("p", "parent")
	var turn uint64 // the first one's record
	for _, r := range parseRecords(t, a.get("/sessions/p/records?type=model_turn&agent=p").body) {
		turn = r.Sequence
	}
	asked := a.head("p")

	spent := a.diffs("p", turn-1, turn).Spent
	require.Equal(t, tokens, spent.Usage)
	require.InDelta(t, 6+4*0.5+3*2, *spent.Cost, 1e-9)
	require.Empty(t, spent.Unpriced)
	back := a.diffs("p", turn, turn-1).Spent
	require.Equal(t, fact.TokenUsage{Prompt: -10, Completion: -3, Cached: -4, Total: -13}, back.Usage)
	require.InDelta(t, -14, *back.Cost, 1e-9)
	require.Equal(t, -spent.DurationMs, back.DurationMs)
	require.JSONEq(t, fmt.Sprintf(`{"from":%d,"to":%d,"usage":{"prompt":10,"completion":3,"cached":4,"total":13},"cost":14,"durationMs":%d}`, turn-1, turn, spent.DurationMs),
		a.get(fmt.Sprintf("/sessions/p/diff?from=%d&to=%d&only=spent", turn-1, turn)).body)
	none := a.diffs("p", turn, turn)
	require.Equal(t, api.Spent{Cost: new(0.0)}, none.Spent)

	all := a.diffs("p", 0, asked).Spent
	require.Nil(t, all.Cost, "the sub-agent's model has no price")
	require.Equal(t, []string{"scripted"}, all.Unpriced)
	require.Equal(t, tokens, all.Usage, "the sub-agent's script says nothing of tokens")
	tree := a.tree("p")
	require.Equal(t, max(tree.UpdatedAt, tree.Children["p-sub-task"].UpdatedAt)-tree.CreatedAt, all.DurationMs)

	// A rollback does not bring back what was spent.
	require.Equal(t, 200, a.post("/sessions/p/rollback", `{"sequence":`+fmt.Sprint(tree.Messages[0].Sequence)+`}`).status)
	require.Equal(t, tokens.Total, a.diffs("p", 0, a.head("p")).Usage.Total)
	require.Zero(t, a.diffs("p", asked, a.head("p")).Usage)

	a.srv.SetPrices(map[string]readmodel.Price{"big": {}, "scripted": {}})
	require.Equal(t, 0.0, *a.diffs("p", 0, asked).Cost)
	a.srv.SetPrices(map[string]readmodel.Price{"big": {Input: math.MaxFloat64}})
	require.Nil(t, a.diffs("p", turn-1, turn).Cost, "a price that no sum can hold")
	for _, prices := range []map[string]readmodel.Price{nil, {"other": {Input: 1}}} {
		a.srv.SetPrices(prices)
		without := a.diffs("p", turn-1, turn)
		require.Nil(t, without.Cost)
		require.Equal(t, []string{"big"}, without.Unpriced)
	}
	require.NotNil(t, a.diffs("p", 0, 0).Cost, "what uses nothing costs nothing")
	a.srv.SetPrices(nil)
	require.Nil(t, a.diffs("p", 0, 0).Cost)
}
