package httpapi_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/projector"
)

// TestSuspended: what every route says of a session that waits for a person.
func TestSuspended(t *testing.T) {
	t.Parallel()
	a := newAPIOn(t, newLog(t), waitingAgents())
	body := `{"sessionId":"s","agentType":"asker","message":"go"}`
	require.Equal(t, 200, a.post("/start", body).status)
	_, texts, end := a.stream("/sse?sessionId=s").rest()
	require.Equal(t, sseEvent{name: "end", data: `{"type":"end","status":"paused"}`}, end)
	require.Equal(t, []string{"tool_approval_request", "run_paused"}, texts[len(texts)-2:])

	status := a.status("s")
	require.Equal(t, "paused", status.Status)
	require.False(t, status.IsExecuting)
	_, none, atHead := a.stream(fmt.Sprintf("/sse?sessionId=s&fromSequence=%d", status.LatestSequence)).rest()
	require.Empty(t, none)
	require.Equal(t, end, atHead)

	refused := a.post("/start", body).failed(t, 409, api.CodeAlreadyRunning)
	require.Equal(t, "use /resume", refused.Detail)

	var summary api.SessionSummary
	a.get("/sessions/s").decode(t, &summary)
	require.Len(t, summary.PendingToolCalls, 1)
	call := summary.PendingToolCalls[0]
	require.NotZero(t, call.CreatedAt)
	require.NotEmpty(t, call.StepID)
	require.Equal(t, a.tree("s").Turn.Step.ID, call.StepID)
	require.Equal(t, api.PendingToolCall{
		ToolCallID: "rm", ToolName: "remove", Input: json.RawMessage(`{"path":"/x"}`), Kind: "approval",
		ApprovalID: status.RunID + "::rm", OwnerSessionID: "s", CreatedAt: call.CreatedAt, RunID: status.RunID, StepID: call.StepID,
	}, call)
	require.EqualValues(t, "suspended_client_tool", summary.CurrentRun.Status)
	require.NotContains(t, a.get("/sessions").body, "pendingToolCalls", "a listing stays small")

	// Resumed with nothing submitted it waits again, without a model call.
	require.Equal(t, 200, a.post("/resume", `{"sessionId":"s"}`).status)
	_, end = a.wait("s")
	require.Equal(t, `{"type":"end","status":"paused"}`, end.data)
	require.Len(t, a.pending("s"), 1)

	a.begin("hurry", "hurry")
	late := a.pending("hurry")
	require.Len(t, late, 1)
	require.Equal(t, "client", string(late[0].Kind))
	require.Equal(t, late[0].CreatedAt+60_000, late[0].Deadline)
}

// TestStateTellsWhatIsAwaited: under the names of the documents, for the root
// and its sub-agents, and a diff of two states has them too.
func TestStateTellsWhatIsAwaited(t *testing.T) {
	t.Parallel()
	type session struct {
		PendingClientToolCalls  map[string]api.PendingToolCall
		ClientToolCallOwnership map[string]string
		SuspensionContext       *projector.SuspensionContext
		RootSessionID           string
		ParentSessionID         string
		Children                map[string]session
	}
	a := newAPIOn(t, newLog(t), waitingAgents())
	state := func(id, query string) session {
		t.Helper()
		var at struct{ State session }
		a.get("/sessions/"+id+"/state"+query).decode(t, &at)
		return at.State
	}

	a.begin("loc", "locator")
	run, tree := a.status("loc").RunID, a.tree("loc")
	pending := a.pending("loc")
	got := state("loc", "")
	require.Len(t, pending, 2)
	require.Equal(t, map[string]api.PendingToolCall{"here": pending[0], "there": pending[1]}, got.PendingClientToolCalls)
	require.Equal(t, map[string]string{"here": "loc", "there": "loc"}, got.ClientToolCallOwnership)
	require.Equal(t, &projector.SuspensionContext{
		RunID: run, RunStatus: "suspended_client_tool", StepID: tree.Turn.Step.ID, ToolCallIDs: []string{"here", "there"},
		SuspendedAt: min(pending[0].CreatedAt, pending[1].CreatedAt),
	}, got.SuspensionContext)
	require.Empty(t, got.RootSessionID, "absent on a root")
	require.Empty(t, got.ParentSessionID)

	before := a.status("loc").LatestSequence
	require.Equal(t, 200, a.post("/submit-tool-result", `{"sessionId":"loc","kind":"client-tool-result","toolCallId":"here","result":{"lat":1}}`).status)
	got = state("loc", "")
	require.Equal(t, map[string]api.PendingToolCall{"there": pending[1]}, got.PendingClientToolCalls)
	require.Equal(t, []string{"here"}, got.SuspensionContext.AnsweredToolCallIDs)
	require.Equal(t, []string{"there"}, got.SuspensionContext.ToolCallIDs)
	a.diffs("loc", before, a.status("loc").LatestSequence)

	a.begin("tree", "parent")
	got = state("tree", "")
	require.Len(t, a.pending("tree"), 1)
	call := a.pending("tree")[0]
	owner := call.OwnerSessionID
	require.NotEqual(t, "tree", owner)
	require.Equal(t, map[string]string{call.ToolCallID: owner}, got.ClientToolCallOwnership)
	require.Empty(t, got.PendingClientToolCalls, "it is the sub-agent's")
	require.Equal(t, []string{owner}, got.SuspensionContext.ChildSessionIDs)
	child := got.Children[owner]
	require.Equal(t, map[string]api.PendingToolCall{call.ToolCallID: call}, child.PendingClientToolCalls)
	require.Equal(t, []string{call.ToolCallID}, child.SuspensionContext.ToolCallIDs)
	require.Equal(t, []string{"tree", "tree"}, []string{child.RootSessionID, child.ParentSessionID})
	require.Empty(t, child.ClientToolCallOwnership, "a root has it")

	require.Equal(t, 200, a.post("/resume", `{"sessionId":"tree","mode":"with_confirmation","approved":true}`).status)
	a.wait("tree")
	got = state("tree", "")
	require.Nil(t, got.SuspensionContext)
	require.Empty(t, got.ClientToolCallOwnership)
	require.Equal(t, "tree", got.Children[owner].RootSessionID)
}

// TestStreamEndsWithTheRoot: a sub-agent that outlives its parent's turn does
// not keep clients; those that come later get its records too.
func TestStreamEndsWithTheRoot(t *testing.T) {
	t.Parallel()
	g := gatedModel{make(chan struct{})}
	a := newAPIOn(t, newLog(t), outlivedBoss(g))
	_, end := a.begin("b", "boss")
	require.Contains(t, end.data, `"output":"bye"`)
	var children api.Page[api.Summary]
	a.get("/sessions?parentSessionId=b").decode(t, &children)
	require.Equal(t, 1, children.Total)
	require.True(t, children.Items[0].IsExecuting)
	close(g.open)
	const child = "b-agent-h"
	for r, err := range a.log.Follow(a.ctx(), "b", 0) {
		require.NoError(t, err)
		if r.Agent == child && r.Type == "run_ended" {
			break
		}
	}
	texts, again := a.wait("b")
	require.Equal(t, end, again)
	require.Equal(t, "end", again.name)
	require.Contains(t, texts, " done", "what the sub-agent has said since")
	require.Equal(t, "completed", a.status("b").Status)
}

// TestResumeModes: helixd's own members of /resume.
func TestResumeModes(t *testing.T) {
	t.Parallel()
	a := newAPIOn(t, newLog(t), append(waitingAgents(), agents(gatedModel{})...))
	resume := func(session, members string) answer {
		return a.post("/resume", `{"sessionId":"`+session+`"`+members+`}`)
	}
	ended := func(session, output string) {
		t.Helper()
		_, end := a.wait(session)
		require.Contains(t, end.data, `"output":"`+output+`"`)
	}

	a.begin("yes", "asker")
	require.Equal(t, 200, resume("yes", `,"mode":"with_confirmation","approved":true`).status)
	ended("yes", "removed")
	require.Contains(t, a.get("/sessions/yes/state").body, `"result":{"path":"/x"}`)
	a.begin("no", "asker")
	require.Equal(t, 200, resume("no", `,"mode":"with_confirmation","approved":false`).status)
	ended("no", "removed")
	require.Contains(t, a.get("/sessions/no/state").body, agentloop.CodeApprovalDenied)
	a.begin("msg", "asker")
	require.Equal(t, 200, resume("msg", `,"mode":"with_message","message":"never mind"`).status)
	_, end := a.wait("msg")
	require.Equal(t, `{"type":"end","status":"paused"}`, end.data, "the script asks again")
	a.begin("loc", "locator")
	resume("loc", `,"mode":"with_confirmation","approved":true`).failed(t, 400, api.CodeInvalidRequest)

	// Finished sessions can go back.
	var page api.Page[struct{ ID string }]
	a.get("/sessions/yes/checkpoints").decode(t, &page)
	require.Equal(t, 2, page.Total)
	got := resume("yes", `,"mode":"from_checkpoint","checkpointId":"`+page.Items[0].ID+`"`)
	require.Equal(t, 200, got.status, got.body)
	ended("yes", "removed")
	require.Equal(t, 200, resume("yes", `,"mode":"retry"`).status)
	_, end = a.wait("yes")
	require.Equal(t, `{"type":"end","status":"paused"}`, end.data)
	require.Equal(t, 200, resume("yes", `,"mode":"with_confirmation","approved":true`).status)
	ended("yes", "removed")
	require.Equal(t, 200, resume("yes", `,"mode":"retry","turn":1`).status)
	a.wait("yes")
	resume("yes", `,"mode":"retry","turn":9`).failed(t, 400, api.CodeInvalidRequest)
	resume("yes", `,"mode":"from_checkpoint","checkpointId":"cpv1-x"`).failed(t, 404, api.CodeNotFound)
}

// TestResumeValidates: members that would be ignored are refused.
func TestResumeValidates(t *testing.T) {
	t.Parallel()
	a := newAPIOn(t, memory.New(), nil)
	for members, field := range map[string]string{
		`"mode":""`:                               "mode",
		`"mode":1`:                                "mode",
		`"mode":"start"`:                          "mode",
		`"mode":"with_message"`:                   "message",
		`"mode":"continue","message":"x"`:         "message",
		`"mode":"with_confirmation"`:              "approved",
		`"mode":"with_confirmation","approved":1`: "approved",
		`"mode":"with_confirmation","approved":true,"turn":1`: "turn",
		`"approved":true`:                                       "approved",
		`"mode":"from_checkpoint"`:                              "checkpointId",
		`"mode":"from_checkpoint","checkpointId":""`:            "checkpointId",
		`"mode":"retry","checkpointId":"x"`:                     "checkpointId",
		`"mode":"retry","turn":0`:                               "turn",
		`"mode":"retry","turn":-1`:                              "turn",
		`"mode":"retry","turn":1.5`:                             "turn",
		`"mode":"retry","turn":"1"`:                             "turn",
		`"mode":"retry","turn":null`:                            "turn",
		`"turn":1`:                                              "turn",
		`"mode":"with_message","message":"x","approved":false`:  "approved",
		`"mode":"with_message","message":"x","checkpointId":""`: "checkpointId",
	} {
		body := a.post("/resume", `{"sessionId":"s",`+members+`}`).failed(t, 400, api.CodeInvalidRequest)
		require.Equal(t, map[string]any{"field": field}, body.Detail, members)
	}
	for _, members := range []string{
		``, `,"mode":"continue"`, `,"mode":"retry"`, `,"mode":"from_checkpoint","checkpointId":"x"`,
		`,"mode":"with_confirmation","approved":false`,
	} {
		a.post("/resume", `{"sessionId":"s"`+members+`}`).failed(t, 404, api.CodeNotFound)
	}
	refusesBodies(t, a, "/resume", api.MaxBody)
}
