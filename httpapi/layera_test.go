package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/jetstream"
	logmemory "github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/httpapi"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/auth"
	"github.com/helixd/helixd/snapshot"
	"github.com/helixd/helixd/snapshot/memory"
)

// layerA are the agent routes (POST /start to GET /workspace), each with a request that is valid
// except that its session is unknown.
var layerA = []struct {
	method, target string
	body           string // of POST
	limit          int    // of the body, in bytes
}{
	{"POST", "/start", `{"sessionId":"unknown","agentType":"unknown","message":"hi"}`, api.MaxBody},
	{"POST", "/resume", `{"sessionId":"unknown"}`, api.MaxBody},
	{"POST", "/interrupt", `{"sessionId":"unknown"}`, api.MaxBody},
	{"POST", "/abort", `{"sessionId":"unknown"}`, api.MaxBody},
	{"POST", "/submit-tool-result", `{"sessionId":"unknown","kind":"client-tool-result","toolCallId":"c","result":1}`, api.MaxSubmitBody},
	{"GET", "/sse?sessionId=unknown", "", 0},
	{"GET", "/status?sessionId=unknown", "", 0},
	{"GET", "/workspace?sessionId=unknown", "", 0},
	{"GET", "/workspaces?sessionId=unknown", "", 0},
}

// TestLayerARefuses: the codes that every route answers with alike.
func TestLayerARefuses(t *testing.T) {
	t.Parallel()
	log, nc := newLogAndConn(t)
	a := newAPIOn(t, log, nil)
	guarded := newAPIOn(t, log, nil, func(o *httpapi.Options) {
		o.Auth = func(r *http.Request, op auth.Operation, session string) error {
			switch r.Header.Get("As") {
			case "":
				return auth.ErrUnauthorized
			case "reader":
				return auth.ErrForbidden
			case "stranger": // may do it, but not on this session
				if session == "unknown" {
					return auth.ErrForbidden
				}
				return nil
			}
			return fmt.Errorf("no decision about %s", op)
		}
	})
	for _, route := range layerA {
		path, _, _ := strings.Cut(route.target, "?")
		t.Run(route.method+" "+path, func(t *testing.T) {
			ask := func(a *testAPI, headers ...string) answer {
				return a.request(route.method, route.target, route.body, headers...)
			}
			ask(a).failed(t, 404, api.CodeNotFound)
			refused := ask(guarded)
			refused.failed(t, 401, api.CodeUnauthorized)
			require.Equal(t, "Bearer", refused.header.Get("WWW-Authenticate"))
			ask(guarded, "As", "reader").failed(t, 403, api.CodeUnauthorized)
			ask(guarded, "As", "stranger").failed(t, 403, api.CodeUnauthorized)
			require.Equal(t, "internal error", ask(guarded, "As", "riddle").failed(t, 500, api.CodeInternalError).Error)
			a.request(route.method, path+"/x", route.body).failed(t, 404, api.CodeNotFound)

			wrong := a.request("DELETE", route.target, "")
			wrong.failed(t, 405, api.CodeMethodNotAllowed)
			if route.method == "GET" {
				require.Equal(t, "GET, HEAD", wrong.header.Get("Allow"))
				for _, query := range []string{"", "?sessionId=", "?sessionId=%00", "?sessionId=a&sessionId=b", "?sessionId=%zz"} {
					a.get(path+query).failed(t, 400, api.CodeInvalidRequest)
				}
				return
			}
			require.Equal(t, "POST", wrong.header.Get("Allow"))
			refusesBodies(t, a, path, route.limit) // 400, 411, 413
			raw(t, a, "POST "+path+" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n").
				failed(t, 411, api.CodeLengthRequired)
			body := a.post(path, `{}`).failed(t, 400, api.CodeInvalidRequest)
			if path == submitTarget {
				require.Equal(t, "validation_error", body.Status)
				return
			}
			require.Equal(t, map[string]any{"field": "sessionId"}, body.Detail)
		})
	}

	gone := newAPIOn(t, log, agents(gatedModel{}))
	nc.Close()
	for _, route := range layerA {
		body := strings.Replace(route.body, `"agentType":"unknown"`, `"agentType":"echo"`, 1)
		gone.request(route.method, route.target, body).failed(t, 503, api.CodeUnavailable)
	}
}

// shape checks a success: its body has these members, and no others.
func (r answer) shape(t *testing.T, members ...string) map[string]any {
	t.Helper()
	require.Equal(t, 200, r.status, r.body)
	require.Equal(t, "application/json", r.header.Get("Content-Type"))
	var body map[string]any
	r.decode(t, &body)
	got := []string{}
	for name := range body {
		got = append(got, name)
	}
	require.ElementsMatch(t, members, got, r.body)
	return body
}

// TestLayerAAnswers: what each route says of sessions in every state.
func TestLayerAAnswers(t *testing.T) {
	t.Parallel()
	log, nc := newLogAndConn(t)
	g := gatedModel{make(chan struct{})}
	a := newAPIOn(t, log, append(waitingAgents(), agents(g)...))
	begin := func(session, agent string) string {
		return fmt.Sprintf(`{"sessionId":%q,"agentType":%q,"message":"hi"}`, session, agent)
	}
	of := func(session, members string) string { return fmt.Sprintf(`{"sessionId":%q%s}`, session, members) }
	answerTo := func(session, call string) string {
		return of(session, `,"kind":"client-tool-result","toolCallId":"`+call+`","result":{"lat":1}`)
	}
	a.post("/start", begin("live", "gated")).shape(t, "sessionId", "streamId", "runId")
	a.begin("done", "echo")
	a.begin("broken", "broken")
	a.begin("paused", "locator")
	a.begin("late", "hurry")
	a.late.Store(int64(time.Hour))
	a.begin("stopped", "asker")
	require.JSONEq(t, `{"ok":true}`, a.post("/interrupt", of("stopped", "")).body)
	a.begin("aborted", "locator")
	require.JSONEq(t, `{"ok":true}`, a.post("/abort", of("aborted", `,"reason":"enough"`)).body)
	a.append("produced", text("produced", "a"))
	a.append("crashed", factOf("crashed", &fact.SessionCreated{AgentType: "echo", Base: factBase("crashed")}), requested("crashed", "run-1"))
	a.append("foreign", created("foreign"), requested("foreign", "run-1"))
	a.append("erasing", created("erasing"))
	tombstone := nats.NewMsg("helix.log.0.erasing")
	tombstone.Header["Helix-Kind"], tombstone.Header["Helix-Type"] = []string{"fact"}, []string{"erased"}
	_, err := nc.RequestMsg(tombstone, within)
	require.NoError(t, err)
	live := a.status("live")

	for session, want := range map[string]struct {
		status    string
		executing bool
		members   []string // beside those that are always there
	}{
		"live":     {"running", true, []string{"runId"}},
		"crashed":  {"running", false, []string{"runId"}},
		"produced": {"running", false, nil},
		"done":     {"completed", false, []string{"runId", "output"}},
		"broken":   {"failed", false, []string{"runId", "error"}},
		"aborted":  {"failed", false, []string{"runId", "error"}},
		"paused":   {"paused", false, []string{"runId"}},
		"stopped":  {"interrupted", false, []string{"runId"}},
	} {
		got := a.get("/status?sessionId="+session).shape(t,
			append(want.members, "sessionId", "status", "stepCount", "state", "isExecuting", "streamId", "latestSequence")...)
		require.Equal(t, want.status, got["status"], session)
		require.Equal(t, want.executing, got["isExecuting"], session)
		require.Equal(t, session, got["streamId"])
		require.Equal(t, `{"workspace":null}`, a.get("/workspace?sessionId="+session).body)
		if session == "live" || session == "crashed" || session == "produced" {
			continue // their streams continue
		}
		name := map[string]string{"failed": "error"}[want.status]
		if name == "" {
			name = "end"
		}
		_, _, end := a.stream("/sse?sessionId=" + session).rest()
		require.Equal(t, name, end.name, session)
	}

	for _, tc := range []struct {
		target, body string
		status       int
		code         api.Code
		detail       any
	}{
		{"/start", begin("live", "echo"), 409, "ALREADY_RUNNING", nil},
		{"/start", begin("paused", "locator"), 409, "ALREADY_RUNNING", "use /resume"},
		{"/start", begin("stopped", "asker"), 409, "ALREADY_RUNNING", "use /resume"},
		{"/start", begin("done", "echo"), 409, "ALREADY_COMPLETED", nil},
		{"/start", begin("broken", "broken"), 409, "ALREADY_COMPLETED", nil},
		{"/start", begin("aborted", "locator"), 409, "ALREADY_COMPLETED", nil},
		{"/start", begin("done", "nobody"), 404, "NOT_FOUND", nil},
		{"/start", begin("erasing", "echo"), 409, "ERASURE_PENDING", "delete it again"},

		{"/resume", of("live", `,"message":"more"`), 409, "ALREADY_RUNNING", nil},
		{"/resume", of("live", `,"mode":"retry"`), 409, "ALREADY_RUNNING", nil},
		{"/resume", of("done", ""), 409, "ALREADY_COMPLETED", nil},
		{"/resume", of("done", `,"message":"more"`), 409, "ALREADY_COMPLETED", nil},
		{"/resume", of("broken", ""), 409, "ALREADY_COMPLETED", nil},
		{"/resume", of("aborted", ""), 409, "ALREADY_COMPLETED", nil},
		{"/resume", of("produced", ""), 400, "INVALID_REQUEST", nil},
		{"/resume", of("paused", `,"mode":"with_confirmation","approved":true`), 400, "INVALID_REQUEST", nil},
		{"/resume", of("stopped", `,"mode":"from_checkpoint","checkpointId":"x"`), 404, "NOT_FOUND", nil},
		{"/resume", of("foreign", ""), 404, "NOT_FOUND", nil},
		{"/resume", of("erasing", ""), 404, "NOT_FOUND", nil},

		{"/interrupt", of("erasing", ""), 404, "NOT_FOUND", nil},
		{"/abort", of("erasing", ""), 404, "NOT_FOUND", nil},

		{submitTarget, answerTo("paused", "nobody"), 404, "NOT_FOUND", nil},
		{submitTarget, answerTo("erasing", "c"), 404, "NOT_FOUND", nil},
		{submitTarget, of("stopped", `,"kind":"client-tool-result","toolCallId":"rm","result":1`), 400, "INVALID_REQUEST", nil},
		{submitTarget, answerTo("aborted", "here"), 409, "ALREADY_COMPLETED", nil},
	} {
		body := a.post(tc.target, tc.body).failed(t, tc.status, tc.code)
		require.Equal(t, tc.detail, body.Detail, "%s %s", tc.target, tc.body)
	}
	for _, target := range []string{"/sse", "/status", "/workspace"} {
		a.get(target+"?sessionId=erasing").failed(t, 404, api.CodeNotFound)
	}
	body := a.get(fmt.Sprint("/sse?sessionId=live&fromSequence=", live.LatestSequence+99)).failed(t, 416, api.CodeCursorAhead)
	require.Equal(t, map[string]any{"head": float64(a.status("live").LatestSequence)}, body.Detail)
	a.get("/sse?sessionId=live", "X-Resume-From-Sequence", "x").failed(t, 400, api.CodeInvalidRequest)

	for _, target := range []string{"/interrupt", "/abort"} { // nothing to stop
		for _, session := range []string{"done", "broken", "produced"} {
			before := a.status(session)
			require.JSONEq(t, `{"ok":true}`, a.post(target, of(session, "")).body)
			require.Equal(t, before, a.status(session))
		}
	}
	submitted := []string{"status", "sessionId", "toolCallId", "pendingToolCallIds"}
	for _, tc := range []struct {
		session, call, status string
		also                  []string
	}{
		{"paused", "here", "accepted", nil},
		{"paused", "here", "already_completed", nil},
		{"late", "now", "already_completed", []string{"reason"}},
	} {
		got := a.post(submitTarget, answerTo(tc.session, tc.call)).shape(t, append(tc.also, submitted...)...)
		require.Equal(t, tc.status, got["status"])
	}
	for _, again := range []answer{a.post("/start", begin("live", "gated")), a.post("/resume", of("live", ""))} {
		require.Equal(t, live.RunID, again.shape(t, "sessionId", "streamId", "runId")["runId"], "the same run")
	}
	for _, session := range []string{"stopped", "crashed", "paused"} {
		a.post("/resume", of(session, "")).shape(t, "sessionId", "streamId", "runId")
		a.wait(session)
	}
	close(g.open)
	_, end := a.wait("live")
	require.Equal(t, "end", end.name)
	require.NotContains(t, a.logs.String(), "ERROR")
}

// TestLayerAStopsWithinADeadline: what does not stop in time is reported.
func TestLayerAStopsWithinADeadline(t *testing.T) {
	t.Parallel()
	for _, target := range []string{"/interrupt", "/abort"} {
		begun, open := make(chan struct{}), make(chan struct{})
		stuck := agentloop.Tool{Name: "stuck", Execute: func(context.Context, *agentloop.Call, json.RawMessage) (any, error) {
			close(begun)
			<-open
			return "late", nil
		}}
		a := newAPIOn(t, logmemory.New(), []agentloop.Agent{{
			Name: "slow", Tools: []agentloop.Tool{stuck}, Model: scripted.New(saying("done", calling("c", "stuck", `{}`)), nil),
		}}, func(o *httpapi.Options) { o.InterruptObservationDeadline = 50 * time.Millisecond })
		require.Equal(t, 200, a.post("/start", `{"sessionId":"s","agentType":"slow","message":"go"}`).status)
		<-begun
		a.post(target, `{"sessionId":"s"}`).failed(t, 504, api.CodeInterruptDeadline)
		close(open)
		a.wait("s") // it is met all the same
		require.Contains(t, []string{"interrupted", "failed"}, a.status("s").Status)
	}
}

// trimmed returns a server with a session, s, whose beginning retention has
// removed, and up to where.
func trimmed(t *testing.T) (a *testAPI, floor uint64) {
	t.Helper()
	log := newLog(t).(*jetstream.Log)
	states := snapshot.New(log, &snapshot.StoreOptions{Folds: new(memory.Folds)})
	a = newAPIOn(t, log, nil, func(o *httpapi.Options) { o.States = states })
	a.append("s", created("s"))
	for i := range 6 {
		a.append("s", text("s", fmt.Sprint(i)))
		require.NoError(t, log.Seal(a.ctx(), "s"))
	}
	_, err := log.Purge(a.ctx(), eventlog.PurgeOptions{SealedFor: time.Nanosecond})
	require.NoError(t, err)
	done, err := states.Retain(a.ctx(), snapshot.Retention{Drop: true})
	require.NoError(t, err)
	require.NotZero(t, done.Dropped["s"])
	return a, done.Dropped["s"]
}

// TestBelowTheFloor: a cursor that retention has passed is refused before
// anything is sent, on every route that has one; at the floor all is well.
func TestBelowTheFloor(t *testing.T) {
	t.Parallel()
	a, floor := trimmed(t)
	a.append("s", ended("s", `1`))
	head := a.status("s").LatestSequence
	below := fmt.Sprint(floor - 1)
	for _, target := range []string{
		"/sse?sessionId=s", "/sse?sessionId=s&fromSequence=" + below,
		"/sessions/s/stream", "/sessions/s/stream?fromSequence=" + below,
		"/sessions/s/diff?from=1", "/sessions/s/diff?to=1", "/sessions/s/state?at=1",
	} {
		body := a.get(target).failed(t, 410, api.CodeTruncated)
		require.Equal(t, map[string]any{"floor": float64(floor)}, body.Detail, target)
	}
	a.get("/sse?sessionId=s", "Last-Event-ID", "1").failed(t, 410, api.CodeTruncated)

	at := fmt.Sprint("fromSequence=", floor)
	seqs, _, end := a.stream("/sse?sessionId=s&" + at).rest()
	require.Len(t, seqs, int(head-floor)-1)
	require.Equal(t, "end", end.name)
	stored, _, last := a.stream("/sessions/s/stream?" + at).storeRest()
	require.Equal(t, seqs, stored)
	require.Equal(t, "end", last.Type)
	a.diffs("s", head-1, head)
	a.diffs("s", 0, head) // before everything there was nothing

	var used api.UsagePage
	a.get("/sessions/s/usage").decode(t, &used)
	require.Equal(t, floor, used.Floor)
	require.Equal(t, "s", used.Rollup.SessionID)
	require.NotContains(t, a.logs.String(), "broke off")
}
