package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/httpapi/api"
)

func TestEndAndFail(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	for _, verb := range []string{"end", "fail"} {
		a.post("/sessions/s/"+verb, `{"error":"x"}`).failed(t, 404, api.CodeNotFound)
		a.post("/sessions/s/"+verb, `{"error":"x"}`, expected, "0", idemKey, "k").failed(t, 404, api.CodeNotFound)
	}
	for _, body := range []string{`{}`, `{"error":""}`, `{"error":7}`, `{"error":null}`, `[]`, ``, `{"error":"` + strings.Repeat("x", 8<<10+1) + `"}`} {
		a.post("/sessions/s/fail", body).failed(t, 400, api.CodeInvalidRequest)
	}
	for _, body := range []string{`[]`, `7`, `{`, `{"finalOutput":1,"finalOutput":2}`} {
		a.post("/sessions/s/end", body).failed(t, 400, api.CodeInvalidRequest)
	}
	for _, tc := range []struct{ verb, body, other, status string }{
		{"end", `{"finalOutput":{"answer":42}}`, `{"finalOutput":{"answer":43}}`, "completed"},
		{"end", ``, `{"finalOutput":null}`, "completed"},
		{"fail", `{"error":"it broke"}`, `{"error":"it shook"}`, "failed"},
		{"fail", `{"error":"` + strings.Repeat("x", 8<<10) + `"}`, `{"error":"x"}`, "failed"},
	} {
		session := fmt.Sprint(tc.verb, len(tc.body))
		target := "/sessions/" + session + "/" + tc.verb
		head := a.post(chunksOf(session), lines(session, "x", 2)).appended(t).LastSequence
		body := a.post(target, tc.body, expected, fmt.Sprint(head+1), idemKey, "k").failed(t, 409, api.CodeSequenceConflict)
		require.Equal(t, map[string]any{"head": float64(head)}, body.Detail)
		done := a.post(target, tc.body, expected, fmt.Sprint(head), idemKey, "k").appended(t)
		require.Equal(t, api.Appended{FirstSequence: head + 1, LastSequence: head + 1, Count: 1}, done)

		require.Equal(t, done, a.post(target, tc.body, expected, fmt.Sprint(head), idemKey, "k").appended(t))
		a.post(target, tc.other, idemKey, "k").failed(t, 409, api.CodeIdempotencyMismatch)
		a.post(target, tc.body).failed(t, 409, api.CodeStreamEnded)
		a.post(target, tc.body, idemKey, "k2").failed(t, 409, api.CodeStreamEnded)
		a.post("/sessions/"+session+"/fail", `{"error":"x"}`).failed(t, 409, api.CodeStreamEnded)
		a.post(chunksOf(session), line(session, "late")).failed(t, 409, api.CodeStreamEnded)
		require.Equal(t, done.LastSequence, a.head(session))
		var status api.Status
		a.get("/status?sessionId="+session).decode(t, &status)
		require.Equal(t, tc.status, status.Status)
	}
}

// TestEndOfAnOpenRun: a run of helixd's own is ended by nobody else; its
// stream takes chunks.
func TestEndOfAnOpenRun(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.append("s", created("s"), requested("s", "run-1"))
	a.post("/sessions/s/end", "{}").failed(t, 409, api.CodeAlreadyRunning)
	a.post("/sessions/s/fail", `{"error":"x"}`).failed(t, 409, api.CodeAlreadyRunning)
	a.post(chunksOf("s"), line("s", "from outside")).appended(t)
	a.append("s", factOf("s", &fact.RunEnded{RunID: "run-1", Status: fact.RunCompleted, Base: factBase("s")}))
	a.post("/sessions/s/end", "{}").appended(t)
	require.Equal(t, []string{"from outside"}, a.texts("s"))
}

// TestOutsideSession: what only an outside producer wrote is a session like
// any, whatever its id.
func TestOutsideSession(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	for _, id := range oddIDs {
		p, q := escape(id), url.QueryEscape(id)
		patch := chunk(&eventlog.StatePatch{Base: base(id), Patches: []eventlog.PatchOp{{Op: "add", Path: "/n", Value: json.RawMessage("1")}}})
		first := a.post(chunksOf(id), line(id, "hello")+"\n"+string(patch.Payload), expected, "0", idemKey, id).appended(t)
		live := a.stream("/sse?sessionId=" + q)
		_, got := live.chunk()
		require.Equal(t, "hello", got)
		a.post(chunksOf(id), line(id, "again"), expected, fmt.Sprint(first.LastSequence)).appended(t)
		end := a.post("/sessions/"+p+"/end", `{"finalOutput":{"a":"<b>"}}`).appended(t)
		_, texts, over := live.rest()
		require.Equal(t, []string{"state_patch", "again"}, texts)
		require.Equal(t, sseEvent{name: "end", data: `{"type":"end","output":{"a":"<b>"},"state":{"n":1}}`}, over)
		_, texts, fresh := a.stream("/sse?sessionId=" + q).rest()
		require.Equal(t, []string{"hello", "state_patch", "again"}, texts)
		require.Equal(t, over, fresh)

		var status api.Status
		a.get("/status?sessionId="+q).decode(t, &status)
		require.Equal(t, "completed", status.Status)
		require.JSONEq(t, `{"a":"<b>"}`, string(status.Output))
		require.Equal(t, end.LastSequence, status.LatestSequence)
		var summary api.Summary
		a.get("/sessions/"+p).decode(t, &summary)
		require.Equal(t, id, summary.SessionID)
		require.Equal(t, "writer", summary.AgentType)
		require.Equal(t, eventlog.StreamCompleted, summary.StreamStatus)
		var snap struct {
			State          json.RawMessage
			StreamSequence uint64
			Status         string
		}
		a.get("/chat/"+p+"/snapshot").decode(t, &snap)
		require.JSONEq(t, `{"n":1}`, string(snap.State))
		require.Equal(t, end.LastSequence, snap.StreamSequence)
		require.Equal(t, "ended", snap.Status)
		var state struct {
			State struct {
				Appends map[string]api.Appended
				Parked  []any
			}
		}
		a.get("/sessions/"+p+"/state").decode(t, &state)
		require.Equal(t, map[string]api.Appended{id: first}, state.State.Appends)
		require.Empty(t, state.State.Parked)
	}
	a.post("/sessions/%00/chunks", "[]").failed(t, 400, api.CodeInvalidRequest)
	a.post("/sessions/"+strings.Repeat("x", 257)+"/end", "{}").failed(t, 400, api.CodeInvalidRequest)
}

// TestOutsideSessionFails: a failure is an error event, for every caller.
func TestOutsideSessionFails(t *testing.T) {
	a := newAPI(t)
	a.post(chunksOf("s"), line("s", "x")).appended(t)
	live := a.stream("/sse?sessionId=s")
	live.chunk()
	a.post("/sessions/s/fail", `{"error":"it broke"}`).appended(t)
	_, _, over := live.rest()
	require.Equal(t, sseEvent{name: "error", data: `{"type":"error","error":"it broke","recoverable":false}`}, over)
	_, _, fresh := a.stream("/sse?sessionId=s").rest()
	require.Equal(t, over, fresh)
}

// TestChunksThenStart: a run may begin after an outside producer's records.
func TestChunksThenStart(t *testing.T) {
	t.Parallel()
	a := newAPIOn(t, newLog(t), []agentloop.Agent{{Name: "writer", Model: scripted.New([]scripted.Turn{{Text: "done"}}, nil)}})
	a.post(chunksOf("s"), line("s", "before"), expected, "0").appended(t)
	got := a.post("/start", `{"sessionId":"s","agentType":"writer","message":"go"}`)
	require.Equal(t, http.StatusOK, got.status, got.body)
	_, texts, end := a.stream("/sse?sessionId=s").rest()
	require.Equal(t, "end", end.name)
	require.Equal(t, "before", texts[0])
	require.Contains(t, texts, "done")
}
