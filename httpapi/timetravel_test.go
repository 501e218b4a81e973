package httpapi_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/engine/timetravel"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/projector"
)

// asked returns a server with a finished run, s, of two steps.
func asked(t *testing.T) (*testAPI, []projector.Checkpoint) {
	t.Helper()
	a := newAPIOn(t, newLog(t), waitingAgents())
	a.begin("s", "asker")
	require.Equal(t, 200, a.post("/resume", `{"sessionId":"s","mode":"with_confirmation","approved":true}`).status)
	a.wait("s")
	var page api.Page[projector.Checkpoint]
	a.get("/sessions/s/checkpoints").decode(t, &page)
	require.Equal(t, 2, page.Total)
	return a, page.Items
}

func TestRollback(t *testing.T) {
	t.Parallel()
	a, checkpoints := asked(t)
	before := a.status("s")
	attached := a.stream(fmt.Sprintf("/sse?sessionId=s&fromSequence=%d", checkpoints[0].StreamSequence))
	attached.rest()

	got := a.post("/sessions/s/rollback", `{"checkpointId":"`+checkpoints[0].ID+`"}`)
	require.Equal(t, 200, got.status, got.body)
	var back api.RolledBack
	got.decode(t, &back)
	require.Equal(t, api.RolledBack{
		SessionID: "s", RolledBack: true, AfterSequence: checkpoints[0].StreamSequence, AtSequence: back.AtSequence,
	}, back)
	require.GreaterOrEqual(t, back.AtSequence, before.LatestSequence)
	status := a.status("s")
	require.Equal(t, "interrupted", status.Status, "the turn was open there")
	require.Equal(t, 1, status.StepCount)
	_, texts, end := a.stream(fmt.Sprintf("/sse?sessionId=s&fromSequence=%d", before.LatestSequence)).rest()
	require.Contains(t, texts, "stream_resync")
	require.Equal(t, `{"type":"end","status":"interrupted"}`, end.data)
	require.Equal(t, 200, a.post("/resume", `{"sessionId":"s"}`).status)
	_, end = a.wait("s")
	require.Contains(t, end.data, `"output":"removed"`)

	got = a.post("/sessions/s/rollback", fmt.Sprintf(`{"sequence":%d}`, a.status("s").LatestSequence))
	require.JSONEq(t, `{"sessionId":"s","rolledBack":false}`, got.body, "nothing is after it")
}

func TestFork(t *testing.T) {
	t.Parallel()
	a, checkpoints := asked(t)
	head := a.status("s").LatestSequence
	for i, tc := range []struct {
		body, status string
		messages     int
		from         uint64
	}{
		{`{"sessionId":"f0"}`, "completed", 4, head},
		{fmt.Sprintf(`{"sessionId":"f1","sequence":%d}`, head), "completed", 4, head},
		{`{"sessionId":"f2","checkpointId":"` + checkpoints[0].ID + `"}`, "interrupted", 3, checkpoints[0].StreamSequence},
		{`{"sessionId":"f3","messageIndex":0}`, "", 1, 0},
	} {
		id := fmt.Sprint("f", i)
		got := a.post("/sessions/s/fork", tc.body)
		require.Equal(t, 200, got.status, got.body)
		var forked timetravel.Forked
		got.decode(t, &forked)
		require.Equal(t, id, forked.SessionID)
		require.Equal(t, "s", forked.FromSessionID)
		if tc.from > 0 {
			require.Equal(t, tc.from, forked.FromSequence)
		}
		if tc.status != "" {
			require.Equal(t, tc.status, a.status(id).Status, tc.body)
		}
		var session api.SessionSummary
		a.get("/sessions/"+id).decode(t, &session)
		require.Equal(t, tc.messages, session.Counts.Messages, tc.body)
		require.Equal(t, got.body, a.post("/sessions/s/fork", tc.body).body, "again")
	}
	a.post("/sessions/s/fork", `{"sessionId":"f0","messageIndex":0}`).failed(t, 409, api.CodeSessionExists)
	a.post("/sessions/s/fork", `{"sessionId":"s"}`).failed(t, 409, api.CodeSessionExists)

	require.Equal(t, 200, a.post("/resume", `{"sessionId":"f2"}`).status)
	_, end := a.wait("f2")
	require.Contains(t, end.data, `"output":"removed"`)
	require.Equal(t, head, a.status("s").LatestSequence, "the source is as it was")

	var named timetravel.Forked
	a.post("/sessions/s/fork", `{}`).decode(t, &named)
	require.Regexp(t, "^fork-", named.SessionID)
	require.Equal(t, "completed", a.status(named.SessionID).Status)
}

// A fork runs on with another message, another result and another prompt, and
// says what was edited.
func TestForkEdited(t *testing.T) {
	t.Parallel()
	a, _ := asked(t)
	fork := func(id, edit string) (forked timetravel.Forked, end string) {
		t.Helper()
		got := a.post("/sessions/s/fork", fmt.Sprintf(`{"sessionId":%q,"edit":%s,"run":true}`, id, edit))
		require.Equal(t, 200, got.status, got.body)
		got.decode(t, &forked)
		_, last := a.wait(id)
		require.Equal(t, got.body, a.post("/sessions/s/fork", fmt.Sprintf(`{"sessionId":%q,"edit":%s,"run":true}`, id, edit)).body, "again")
		var state api.StateAt
		a.get("/sessions/"+id+"/state").decode(t, &state)
		require.Equal(t, forked.Edits, state.State.ForkedFrom.Edits)
		require.Equal(t, forked.RunID, state.State.Runs[0].RunID)
		return forked, last.data
	}
	forked, end := fork("f1", `{"toolResult":{"toolCallId":"rm","result":{"gone":true}}}`)
	require.Equal(t, "rm", forked.Edits.ToolCallID)
	require.Contains(t, end, `"output":"removed"`)
	forked, end = fork("f2", `{"message":{"content":"Remove another one."},"systemPrompt":""}`)
	require.Zero(t, *forked.Edits.Message)
	require.True(t, forked.Edits.SystemPrompt)
	require.Contains(t, end, `"status":"paused"`, "it must be approved, too")
	a.post("/sessions/s/fork", `{"sessionId":"f2","edit":{"systemPrompt":""}}`).failed(t, 409, api.CodeSessionExists)
}

func TestTimeTravelValidates(t *testing.T) {
	t.Parallel()
	a := newAPIOn(t, memory.New(), nil)
	seqs := a.append("s", created("s"), requested("s", "run-1"), text("s", "a"))
	a.append("t", created("t"))
	for _, tc := range []struct {
		verb, body string
		status     int
		code       api.Code
		field      string
	}{
		{"rollback", `{}`, 400, "INVALID_REQUEST", "checkpointId"},
		{"rollback", `{"checkpointId":""}`, 400, "INVALID_REQUEST", "checkpointId"},
		{"rollback", `{"checkpointId":7}`, 400, "INVALID_REQUEST", "checkpointId"},
		{"rollback", `{"checkpointId":"x","sequence":1}`, 400, "INVALID_REQUEST", "sequence"},
		{"rollback", `{"checkpointId":"x"}`, 404, "NOT_FOUND", ""},
		{"rollback", `{"sequence":0}`, 400, "INVALID_REQUEST", "sequence"},
		{"rollback", `{"sequence":-1}`, 400, "INVALID_REQUEST", "sequence"},
		{"rollback", `{"sequence":"1"}`, 400, "INVALID_REQUEST", "sequence"},
		{"rollback", fmt.Sprintf(`{"sequence":%d}`, seqs[2]+9), 416, "CURSOR_AHEAD", ""},
		{"fork", `{"sessionId":"f","checkpointId":"x"}`, 404, "NOT_FOUND", ""},
		{"fork", `{"sessionId":"f","checkpointId":"x","sequence":1}`, 400, "INVALID_REQUEST", "sequence"},
		{"fork", `{"sessionId":"f","sequence":1,"messageIndex":0}`, 400, "INVALID_REQUEST", "messageIndex"},
		{"fork", `{"sessionId":"f","messageIndex":0}`, 400, "INVALID_REQUEST", "messageIndex"},
		{"fork", `{"sessionId":"f","messageIndex":-1}`, 400, "INVALID_REQUEST", "messageIndex"},
		{"fork", `{"sessionId":"f","messageIndex":"0"}`, 400, "INVALID_REQUEST", "messageIndex"},
		{"fork", `{"sessionId":"","sequence":1}`, 400, "INVALID_REQUEST", "sessionId"},
		{"fork", `{"sessionId":null}`, 400, "INVALID_REQUEST", "sessionId"},
		{"fork", fmt.Sprintf(`{"sessionId":"f","sequence":%d}`, seqs[2]+9), 416, "CURSOR_AHEAD", ""},
		{"fork", `{"sessionId":"t"}`, 409, "SESSION_EXISTS", ""},
		{"fork", `{"sessionId":"f","edit":{}}`, 400, "INVALID_REQUEST", "edit"},
		{"fork", `{"sessionId":"f","edit":null}`, 400, "INVALID_REQUEST", "edit"},
		{"fork", `{"sessionId":"f","edit":{"message":{}}}`, 400, "INVALID_REQUEST", "edit.message.content"},
		{"fork", `{"sessionId":"f","edit":{"message":{"content":"x","index":-1}}}`, 400, "INVALID_REQUEST", "edit.message.index"},
		{"fork", `{"sessionId":"f","edit":{"message":{"content":"x","index":0}}}`, 400, "INVALID_REQUEST", "edit.message.index"},
		{"fork", `{"sessionId":"f","edit":{"message":{"content":"x"}}}`, 400, "INVALID_REQUEST", "edit.message"},
		{"fork", `{"sessionId":"f","edit":{"toolResult":{"result":1}}}`, 400, "INVALID_REQUEST", "edit.toolResult.toolCallId"},
		{"fork", `{"sessionId":"f","edit":{"toolResult":{"toolCallId":"c","result":1}}}`, 400, "INVALID_REQUEST", "edit.toolResult.toolCallId"},
		{"fork", `{"sessionId":"f","edit":{"toolResult":{"toolCallId":"c"}}}`, 400, "INVALID_REQUEST", "edit.toolResult.result"},
		{"fork", `{"sessionId":"f","edit":{"toolResult":{"toolCallId":"c","result":1,"error":"x"}}}`, 400, "INVALID_REQUEST", "edit.toolResult.result"},
		{"fork", `{"sessionId":"f","edit":{"systemPrompt":7}}`, 400, "INVALID_REQUEST", "edit.systemPrompt"},
		{"fork", `{"sessionId":"f","run":"yes"}`, 400, "INVALID_REQUEST", "run"},
		{"fork", `{"sessionId":"f","message":"x"}`, 400, "INVALID_REQUEST", "message"},
		{"fork", `{"sessionId":"f","run":true,"message":""}`, 400, "INVALID_REQUEST", "message"},
		{"fork", `{"sessionId":"f","run":true}`, 404, "NOT_FOUND", ""}, // its agent is not here
	} {
		body := a.post("/sessions/s/"+tc.verb, tc.body).failed(t, tc.status, tc.code)
		if tc.field != "" {
			require.Equal(t, map[string]any{"field": tc.field}, body.Detail, "%s %s", tc.verb, tc.body)
		}
	}
	for _, verb := range []string{"rollback", "fork"} {
		a.post("/sessions/nobody/"+verb, `{"sequence":1}`).failed(t, 404, api.CodeNotFound)
		a.post("/sessions/%00/"+verb, `{"sequence":1}`).failed(t, 400, api.CodeInvalidRequest)
		refusesBodies(t, a, "/sessions/s/"+verb, api.MaxBody)
	}
	head, err := a.log.Head(a.ctx(), "s")
	require.NoError(t, err)
	require.Equal(t, seqs[2], head, "nothing was written")
	a.get("/sessions/f").failed(t, 404, api.CodeNotFound)
	require.NotContains(t, a.logs.String(), "ERROR")
}

// TestRollbackBetweenRecords: a sequence of another session's is none of this
// one's.
func TestRollbackBetweenRecords(t *testing.T) {
	t.Parallel()
	a := newAPIOn(t, newLog(t), nil)
	a.append("s", created("s"))
	other := a.append("other", created("other"))
	a.append("s", requested("s", "run-1"), text("s", "a"))
	body := a.post("/sessions/s/rollback", fmt.Sprintf(`{"sequence":%d}`, other[0])).failed(t, 400, api.CodeInvalidRequest)
	require.Equal(t, map[string]any{"field": "sequence"}, body.Detail)
}

// TestHistoryPages: checkpoints and runs, oldest first.
func TestHistoryPages(t *testing.T) {
	t.Parallel()
	a := newAPIOn(t, memory.New(), nil)
	entries := []eventlog.Entry{created("s")}
	const n = 120
	for i := range n {
		run := fmt.Sprint("run-", i)
		entries = append(entries, requested("s", run), chunk(&eventlog.CheckpointCreated{
			RunID: run, CheckpointID: fmt.Sprint("cp-", i), StepCount: 1, Base: base("s"),
		}))
	}
	a.append("s", entries...)
	a.append("new", created("new"))
	for _, tc := range []struct {
		query         string
		offset, limit int
		items         int
		more          bool
	}{
		{"", 0, 50, 50, true},
		{"?offset=100", 100, 50, 20, false},
		{"?limit=200", 0, 200, n, false},
		{"?offset=119&limit=1", 119, 1, 1, false},
		{"?offset=118&limit=1", 118, 1, 1, true},
		{"?offset=500", 500, 50, 0, false},
	} {
		var runs api.Page[projector.Run]
		a.get("/sessions/s/runs"+tc.query).decode(t, &runs)
		var checkpoints api.Page[projector.Checkpoint]
		a.get("/sessions/s/checkpoints"+tc.query).decode(t, &checkpoints)
		require.Equal(t, api.Page[projector.Run]{Items: runs.Items, Total: n, Offset: tc.offset, Limit: tc.limit, HasMore: tc.more}, runs)
		require.Len(t, runs.Items, tc.items)
		require.Len(t, checkpoints.Items, tc.items)
		require.Equal(t, tc.more, checkpoints.HasMore)
		if tc.items > 0 {
			require.Equal(t, fmt.Sprint("run-", tc.offset), runs.Items[0].RunID)
			require.Equal(t, fmt.Sprint("cp-", tc.offset), checkpoints.Items[0].ID)
		}
	}
	for _, what := range []string{"runs", "checkpoints"} {
		require.JSONEq(t, `{"items":[],"total":0,"offset":0,"limit":50,"hasMore":false}`, a.get("/sessions/new/"+what).body)
		a.get("/sessions/nobody/"+what).failed(t, 404, api.CodeNotFound)
		a.get("/sessions/%00/"+what).failed(t, 400, api.CodeInvalidRequest)
		for _, query := range []string{"limit=0", "limit=201", "limit=x", "offset=-1", "offset=1&offset=2"} {
			a.get("/sessions/s/"+what+"?"+query).failed(t, 400, api.CodeInvalidRequest)
		}
	}
}
