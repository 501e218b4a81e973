package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/httpapi/api"
)

// actors returns who asked for the facts of a type, in order; truncated ones too.
func (a *testAPI) actors(session, typ string) (all []*fact.Actor) {
	a.t.Helper()
	for r, err := range a.log.Read(a.ctx(), session, 0, 0) {
		require.NoError(a.t, err)
		if r.Kind == eventlog.KindFact && r.Type == typ {
			f, err := eventlog.DecodeFact(r.Payload)
			require.NoError(a.t, err)
			all = append(all, fact.ActorIn(f))
		}
	}
	return all
}

// The records of what a caller asked for say who it was, and those of the run
// itself nobody.
func TestRecordsNameTheirCaller(t *testing.T) {
	t.Parallel()
	asker := agentloop.Agent{
		Name: "asker", Tools: []agentloop.Tool{
			{Name: "pay", RequireApproval: agentloop.AlwaysApprove, Execute: func(_ context.Context, _ *agentloop.Call, args json.RawMessage) (any, error) { return args, nil }},
			{Name: "locate", Client: true},
		},
		Model: scripted.New(saying("done", calling("c1", "pay", `{}`), calling("c2", "locate", `{}`)), nil),
	}
	a := newAPIOn(t, memory.New(), []agentloop.Agent{asker}, withUsers)
	n := 0
	as := func(token, target, body string) fact.Actor {
		t.Helper()
		n++
		id := fmt.Sprintf("req-%d", n)
		got := a.post(target, body, append(bearer(token), "X-Request-Id", id)...)
		require.Equal(t, 200, got.status, got.body)
		by := fact.Actor{Token: token + "'s token", User: token, Address: "127.0.0.1", Request: id}
		if token == "plain" {
			by.User = ""
		}
		return by
	}
	settle := func() {
		t.Helper()
		a.stream("/sse?sessionId=s", bearer("ann")...).rest()
	}
	started := as("ann", "/start", `{"sessionId":"s","agentType":"asker","message":"go"}`)
	settle()
	approved := as("desk", "/submit-tool-result", `{"sessionId":"s","toolCallId":"c1","kind":"approval-response","approved":true}`)
	resumed := as("ann", "/resume", `{"sessionId":"s"}`)
	settle()
	require.Equal(t, []*fact.Actor{&started}, a.actors("s", "session_created"))
	require.Equal(t, []*fact.Actor{&started}, a.actors("s", "user_message"))
	require.Equal(t, []*fact.Actor{&started, &resumed}, a.actors("s", "run_requested"))
	require.Equal(t, &approved, a.actors("s", "result_submitted")[0])
	for _, typ := range []string{"model_turn", "run_claimed"} {
		for _, by := range a.actors("s", typ) {
			require.Nil(t, by, typ)
		}
	}
	forked := as("ann", "/sessions/s/fork", `{"sessionId":"f"}`)
	require.Equal(t, []*fact.Actor{&forked}, a.actors("f", "session_forked"))
	aborted := as("plain", "/abort", `{"sessionId":"s"}`)
	require.Equal(t, &aborted, a.actors("s", "interrupt_requested")[0])
	first := a.firstSequence("s")
	rolled := as("ann", "/sessions/s/rollback", fmt.Sprintf(`{"sequence":%d}`, first))
	truncated := a.actors("s", "truncated")
	require.Equal(t, &rolled, truncated[len(truncated)-1])
}

// A session says who has imported it, once for the records that came; a session that
// was imported twice on its way says both. Nothing else of it changes.
func TestImportsNameTheirCaller(t *testing.T) {
	from, a := newAPIOn(t, memory.New(), nil), newAPIOn(t, memory.New(), nil, withUsers)
	from.append("s", text("s", "one"))
	imports := func(to *testAPI, exported, request string) api.Imported {
		t.Helper()
		return to.post("/sessions/s/import", exported, append(bearer("plain"), "X-Request-Id", request)...).imported(t)
	}
	by := func(request string) *fact.Actor {
		return &fact.Actor{Token: "plain's token", Address: "127.0.0.1", Request: request}
	}
	first := from.export("s")
	done := imports(a, first, "r1")
	require.Equal(t, 1, done.Records)
	again := imports(a, first, "r2")
	require.Zero(t, again.Appended)
	require.Equal(t, done.SHA256, again.SHA256)
	require.Equal(t, []*fact.Actor{by("r1")}, a.actors("s", "session_imported"))
	require.Equal(t, from.fold("s", 0).UpdatedAt, a.fold("s", 0).UpdatedAt)

	from.append("s", text("s", "two"))
	more := imports(a, from.export("s"), "r3")
	require.Equal(t, 2, more.Records)
	require.Equal(t, 1, more.Appended)
	require.Equal(t, []*fact.Actor{by("r1"), by("r3")}, a.actors("s", "session_imported"))
	require.Equal(t, []string{"one", "two"}, a.texts("s"))

	third := newAPIOn(t, memory.New(), nil, withUsers)
	exported := a.get("/sessions/s/records?dead=1", bearer("plain")...).body
	for range 2 {
		require.Equal(t, 4, imports(third, exported, "r4").Records)
	}
	require.Equal(t, []*fact.Actor{by("r1"), by("r3"), by("r4")}, third.actors("s", "session_imported"))
}

// firstSequence is the sequence of a session's first record.
func (a *testAPI) firstSequence(session string) uint64 {
	a.t.Helper()
	for r, err := range a.log.Read(a.ctx(), session, 0, 0) {
		require.NoError(a.t, err)
		return r.Sequence
	}
	return 0
}

// What no record can say is in the log: refusals, erasures, exports, imports.
func TestCallersAreLogged(t *testing.T) {
	t.Parallel()
	a := newAPIOn(t, newLog(t), nil, withUsers)
	for _, id := range []string{"kept", "gone"} {
		a.finishedOf("ann", id)
	}
	records := a.get("/sessions/kept/records?dead=1", bearer("ann")...).body
	a.request("DELETE", "/sessions/gone", "", bearer("ann")...)
	a.post("/sessions/gone/import", strings.ReplaceAll(records, `"kept"`, `"gone"`), bearer("plain")...)
	a.get("/backup", bearer("plain")...)
	a.get("/backup", bearer("bob")...).failed(t, 403, api.CodeUnauthorized)
	a.get("/backup?rate=fast", bearer("plain")...).failed(t, 400, api.CodeInvalidRequest)
	a.get("/sessions?userId=ann", bearer("bob")...).failed(t, 403, api.CodeUserMismatch)
	a.get("/sessions", bearer("no-such-token")...).failed(t, 401, api.CodeUnauthorized)
	logged := a.logs.String()
	for _, want := range []string{
		`level=INFO msg="session exported" route=/sessions/{id}/records session=kept address=127.0.0.1 caller="ann's token" user=ann requestId=`,
		`level=INFO msg="session erased" route=/sessions/{id} session=gone address=127.0.0.1 caller="ann's token" user=ann`,
		`level=INFO msg="session imported" route=/sessions/{id}/import session=gone address=127.0.0.1 caller="plain's token" requestId=`,
		`level=INFO msg="backup begun" route=/backup address=127.0.0.1 caller="plain's token"`,
		`level=INFO msg="request refused" route=/backup status=403 address=127.0.0.1 caller="bob's token" user=bob`,
		`level=INFO msg="request refused" route=/sessions status=403 address=127.0.0.1 caller="bob's token" user=bob`,
		`level=INFO msg="request refused" route=/sessions status=401 address=127.0.0.1 error=`,
	} {
		require.Contains(t, logged, want)
	}
	require.Equal(t, 1, strings.Count(logged, "backup begun"), "none begins with a wrong rate")
	require.NotContains(t, logged, "no-such-token")
	require.NotContains(t, logged, "classified")
}

// Records can be exported in parts, or as they come: each request is logged.
func TestEveryExportIsLogged(t *testing.T) {
	t.Parallel()
	a := newAPIOn(t, newLog(t), nil, withUsers)
	a.finishedOf("ann", "s")
	n := 0
	for _, query := range []string{"dead=1", "", "dead=1&from=1", "dead=1&to=2", "dead=1&limit=1000000", "kind=fact", "follow=1&limit=1"} {
		a.get("/sessions/s/records?"+query, bearer("ann")...).done(t)
		n++
		require.Equal(t, n, strings.Count(a.logs.String(), `msg="session exported" route=/sessions/{id}/records session=s address=127.0.0.1 caller="ann's token"`), query)
	}
	a.request("HEAD", "/sessions/s/records", "", bearer("ann")...)
	a.get("/sessions/s/records?from=99", bearer("ann")...).failed(t, 416, api.CodeCursorAhead)
	a.get("/sessions/s/records", bearer("bob")...).failed(t, 404, api.CodeNotFound)
	require.Equal(t, n, strings.Count(a.logs.String(), "session exported"), "nothing was exported")
}

// A client that is refused again and again does not fill the log.
func TestRefusalsAreBounded(t *testing.T) {
	t.Parallel()
	a := newAPIOn(t, memory.New(), nil, withUsers)
	for range 100 {
		a.get("/sessions").failed(t, 401, api.CodeUnauthorized)
	}
	require.LessOrEqual(t, strings.Count(a.logs.String(), "request refused"), 60)
}

// An actor survives the wire, and one of nobody leaves none on it.
func TestActorOnTheWire(t *testing.T) {
	f := &fact.RunRequested{RunID: "r", Mode: fact.ModeStart, Base: factBase("s")}
	raw, err := json.Marshal(f)
	require.NoError(t, err)
	require.NotContains(t, string(raw), `"by"`)
	fact.SetActor(fact.WithActor(t.Context(), fact.Actor{Token: "t"}), f)
	e, err := eventlog.NewFact("s", f, eventlog.Labels{})
	require.NoError(t, err)
	require.Contains(t, string(e.Payload), `"by":{"token":"t"}`)
	back, err := eventlog.DecodeFact(e.Payload)
	require.NoError(t, err)
	require.Equal(t, &fact.Actor{Token: "t"}, fact.ActorIn(back))
}
