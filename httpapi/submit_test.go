package httpapi_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/httpapi"
	"github.com/helixd/helixd/httpapi/api"
)

const (
	submitTarget = "/submit-tool-result"
	approveRM    = `{"sessionId":"%s","kind":"approval-response","toolCallId":"rm","approved":true}`
)

// TestSubmitOutcomes: one case for each row of the table in docs/reference/protocol.md#suspension.
func TestSubmitOutcomes(t *testing.T) {
	t.Parallel()
	a := newAPIOn(t, newLog(t), waitingAgents())
	a.begin("ask", "asker")
	a.begin("loc", "locator")
	a.begin("hurry", "hurry")
	a.late.Store(int64(time.Minute))
	a.begin("over", "asker")
	require.Equal(t, 200, a.post("/abort", `{"sessionId":"over"}`).status)
	approvalID := a.pending("ask")[0].ApprovalID
	require.NotEmpty(t, approvalID)

	accepted := func(session, call string, left ...string) string {
		ids, _ := json.Marshal(append([]string{}, left...))
		return fmt.Sprintf(`{"status":"accepted","sessionId":%q,"toolCallId":%q,"pendingToolCallIds":%s}`, session, call, ids)
	}
	before := func(session, call, reason string, left ...string) string {
		want := strings.Replace(accepted(session, call, left...), "accepted", "already_completed", 1)
		if reason != "" {
			want = strings.Replace(want, `{`, `{"reason":"`+reason+`",`, 1)
		}
		return want
	}
	for _, tc := range []struct {
		name, body string
		status     int
		want       string // of 200 the body, else the code
	}{
		{"unknown session", `{"sessionId":"nobody","kind":"client-tool-result","toolCallId":"rm","result":1}`, 404, "NOT_FOUND"},
		{"unknown call", `{"sessionId":"ask","kind":"client-tool-result","toolCallId":"other","result":1}`, 404, "NOT_FOUND"},
		{"wrong kind for an approval", `{"sessionId":"ask","kind":"client-tool-result","toolCallId":"rm","result":1}`, 400, "INVALID_REQUEST"},
		{"wrong kind for a client", `{"sessionId":"loc","kind":"approval-response","toolCallId":"here","approved":true}`, 400, "INVALID_REQUEST"},
		{"wrong approvalId", `{"sessionId":"ask","kind":"approval-response","toolCallId":"rm","approved":true,"approvalId":"x::rm"}`, 400, "INVALID_REQUEST"},
		{"against the output schema", `{"sessionId":"loc","kind":"client-tool-result","toolCallId":"here","result":{"lon":1}}`, 400, "INVALID_REQUEST"},
		{"nothing was stored, approved", `{"sessionId":"ask","kind":"approval-response","toolCallId":"rm","approved":true,"approvalId":"` + approvalID + `"}`, 200, accepted("ask", "rm")},
		{"again", fmt.Sprintf(approveRM, "ask"), 200, before("ask", "rm", "")},
		{"again, otherwise", `{"sessionId":"ask","kind":"approval-response","toolCallId":"rm","approved":false}`, 200, before("ask", "rm", "")},
		{"one of two", `{"sessionId":"loc","kind":"client-tool-result","toolCallId":"here","result":{"lat":1}}`, 200, accepted("loc", "here", "there")},
		{"the other, an error", `{"sessionId":"loc","kind":"client-tool-result","toolCallId":"there","error":"no signal"}`, 200, accepted("loc", "there")},
		{"too late", `{"sessionId":"hurry","kind":"client-tool-result","toolCallId":"now","result":{"lat":1}}`, 200, before("hurry", "now", "client_tool_timeout")},
		{"too late, again", `{"sessionId":"hurry","kind":"client-tool-result","toolCallId":"now","result":{"lat":1}}`, 200, before("hurry", "now", "client_tool_timeout")},
		{"session is over", fmt.Sprintf(approveRM, "over"), 409, "ALREADY_COMPLETED"},
	} {
		got := a.post(submitTarget, tc.body)
		if tc.status == 200 {
			require.Equal(t, 200, got.status, "%s: %s", tc.name, got.body)
			require.JSONEq(t, tc.want, got.body, tc.name)
			continue
		}
		body := got.failed(t, tc.status, api.Code(tc.want))
		require.Nil(t, body.Detail, tc.name)
		if tc.status == 400 {
			require.Equal(t, "validation_error", body.Status, tc.name)
			require.Equal(t, "the submission is not valid", body.Error, tc.name)
		} else {
			require.Empty(t, body.Status, tc.name)
		}
	}

	// It only writes: resuming continues with what was stored.
	require.Equal(t, "paused", a.status("ask").Status)
	for session, said := range map[string]string{"ask": "removed", "loc": "found", "hurry": "too late"} {
		require.Equal(t, 200, a.post("/resume", `{"sessionId":"`+session+`"}`).status)
		texts, end := a.wait(session)
		require.Contains(t, strings.Join(texts, ""), said)
		require.Contains(t, end.data, `"output":"`+said+`"`)
	}
	state := a.get("/sessions/loc/state").body
	require.Contains(t, state, "no signal")
	require.Contains(t, a.get("/sessions/hurry/state").body, agentloop.CodeClientToolTimeout)
	require.JSONEq(t, before("ask", "rm", ""), a.post(submitTarget, fmt.Sprintf(approveRM, "ask")).body, "for as long as the session lives")
	require.NotContains(t, a.logs.String(), "ERROR")
}

// TestSubmitValidates: a submission that no call accepts is refused before a session is
// looked for, and only a server that is configured so says why.
func TestSubmitValidates(t *testing.T) {
	t.Parallel()
	log := memory.New()
	quiet := newAPIOn(t, log, nil)
	verbose := newAPIOn(t, log, nil, func(o *httpapi.Options) { o.VerboseValidationErrors = true })
	client := func(s string) string {
		return `{"sessionId":"s","kind":"client-tool-result","toolCallId":"c",` + s + `}`
	}
	approval := func(s string) string {
		return `{"sessionId":"s","kind":"approval-response","toolCallId":"c",` + s + `}`
	}
	long := strings.Repeat("x", 8<<10+1)
	for _, tc := range []struct{ body, field string }{
		{`{"kind":"client-tool-result","toolCallId":"c","result":1}`, "sessionId"},
		{`{"sessionId":"","kind":"client-tool-result","toolCallId":"c","result":1}`, "sessionId"},
		{`{"sessionId":"a\u0000b","kind":"client-tool-result","toolCallId":"c","result":1}`, "sessionId"},
		{`{"sessionId":"s","kind":"client-tool-result","result":1}`, "toolCallId"},
		{`{"sessionId":"s","kind":"client-tool-result","toolCallId":7,"result":1}`, "toolCallId"},
		{`{"sessionId":"s","kind":"client-tool-result","toolCallId":"` + strings.Repeat("x", 257) + `","result":1}`, "toolCallId"},
		{`{"sessionId":"s","toolCallId":"c","result":1}`, "kind"},
		{`{"sessionId":"s","kind":"timeout","toolCallId":"c"}`, "kind"},
		{`{"sessionId":"s","kind":"abandoned","toolCallId":"c"}`, "kind"},
		{client(`"x":1`), "result"},
		{client(`"result":1,"error":"x"`), "result"},
		{client(`"result":1,"error":""`), "result"},
		{client(`"error":""`), "error"},
		{client(`"error":{}`), "error"},
		{client(`"error":"` + long + `"`), "error"},
		{client(`"result":"` + strings.Repeat("x", engine.MaxSubmittedResult) + `"`), "result"},
		{approval(`"x":1`), "approved"},
		{approval(`"approved":"yes"`), "approved"},
		{approval(`"approved":null`), "approved"},
		{approval(`"approved":true,"reason":1`), "reason"},
		{approval(`"approved":true,"reason":"` + long + `"`), "reason"},
		{approval(`"approved":true,"approvalId":""`), "approvalId"},
	} {
		body := quiet.post(submitTarget, tc.body).failed(t, 400, api.CodeInvalidRequest)
		require.Equal(t, api.ErrorBody{
			Error: "the submission is not valid", Code: "INVALID_REQUEST", Status: "validation_error",
		}, body)
		body = verbose.post(submitTarget, tc.body).failed(t, 400, api.CodeInvalidRequest)
		require.Equal(t, "validation_error", body.Status)
		require.Equal(t, map[string]any{"field": tc.field}, body.Detail, body.Error)
	}
	for _, body := range []string{client(`"result":null`), approval(`"approved":false`)} {
		quiet.post(submitTarget, body).failed(t, 404, api.CodeNotFound)
	}
	most := client(`"result":"` + strings.Repeat("x", engine.MaxSubmittedResult-2) + `"`)
	quiet.post(submitTarget, most).failed(t, 404, api.CodeNotFound) // the session: it was read whole
	refusesBodies(t, quiet, submitTarget, 1<<20+64<<10)
	require.NotContains(t, quiet.logs.String()+verbose.logs.String(), "ERROR")

	quiet.loop.Stop()
	quiet.post(submitTarget, approval(`"approved":true`)).failed(t, 503, api.CodeUnavailable)
}

// TestSubmitForSubAgent: a sub-agent's call is answered under the root's id.
func TestSubmitForSubAgent(t *testing.T) {
	t.Parallel()
	a := newAPIOn(t, newLog(t), waitingAgents())
	_, end := a.begin("p", "parent")
	require.Equal(t, sseEvent{name: "end", data: `{"type":"end","status":"paused"}`}, end)
	require.Equal(t, "paused", a.status("p").Status)
	pending := a.pending("p")
	require.Len(t, pending, 1)
	require.Equal(t, "p-sub-task", pending[0].OwnerSessionID)
	submit := `{"sessionId":"%s","kind":"approval-response","toolCallId":"` + pending[0].ToolCallID + `","approved":true}`
	a.post(submitTarget, fmt.Sprintf(submit, "p-sub-task")).failed(t, 404, api.CodeNotFound)
	got := a.post(submitTarget, fmt.Sprintf(submit, "p"))
	require.Equal(t, 200, got.status, got.body)
	require.Empty(t, a.pending("p"))
	require.Equal(t, 200, a.post("/resume", `{"sessionId":"p"}`).status)
	_, end = a.wait("p")
	require.Contains(t, end.data, `"output":"all done"`)
	require.Equal(t, "completed", a.status("p").Status)
}

// TestSubmitOnce: of many that answer at once, one is taken.
func TestSubmitOnce(t *testing.T) {
	t.Parallel()
	a := newAPIOn(t, newLog(t), waitingAgents())
	a.begin("s", "asker")
	const clients = 8
	answers := make(chan answer, clients)
	for range clients {
		go func() { answers <- a.post(submitTarget, fmt.Sprintf(approveRM, "s")) }()
	}
	count := map[engine.SubmitStatus]int{}
	for range clients {
		got := <-answers
		var submitted engine.Submitted
		got.decode(t, &submitted)
		count[submitted.Status]++
	}
	require.Equal(t, map[engine.SubmitStatus]int{engine.SubmitAccepted: 1, engine.SubmitAlreadyCompleted: clients - 1}, count)
	stored := 0
	for line := range strings.Lines(a.get("/sessions/s/records").body) {
		if strings.Contains(line, `"result_submitted"`) {
			stored++
		}
	}
	require.Equal(t, 1, stored)
}
