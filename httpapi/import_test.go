package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/jetstream"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/httpapi"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/auth"
	"github.com/helixd/helixd/integration/testkit"
	"github.com/helixd/helixd/projector"
)

func importOf(session string) string { return "/sessions/" + escape(session) + "/import" }

// export returns all records of a session, one a line.
func (a *testAPI) export(session string) string {
	a.t.Helper()
	got := a.get("/sessions/" + escape(session) + "/records?dead=1")
	require.Equal(a.t, 200, got.status, got.body)
	return got.body
}

// imported checks a success.
func (r answer) imported(t *testing.T) api.Imported {
	t.Helper()
	require.Equal(t, 200, r.status, r.body)
	var got api.Imported
	r.decode(t, &got)
	return got
}

// noise makes sequences of a log differ from those of another one.
func (a *testAPI) noise(n int) {
	for range n {
		a.append("noise", created("noise"))
	}
}

// livelySession has a run with tools and state patches, truncated chunks, a
// rollback, appends with keys, and what no version knows.
func livelySession(t *testing.T, id string) *testAPI {
	t.Helper()
	type state struct {
		Cities []string `json:"cities"`
	}
	look := agentloop.NewTool("look", "Looks.", func(_ context.Context, c *agentloop.Call, in struct {
		City string `json:"city"`
	}) (string, error) {
		return "fog", agentloop.UpdateState(c, func(s *state) error {
			s.Cities = append(s.Cities, in.City)
			return nil
		})
	})
	a := newAPIOn(t, newLog(t), []agentloop.Agent{{
		Name: "writer", Tools: []agentloop.Tool{look}, Model: scripted.New([]scripted.Turn{
			{Text: "Let me look.", ToolCalls: []scripted.Call{
				{Name: "look", Arguments: []byte(`{"city":"Oslo"}`)}, {Name: "look", Arguments: []byte(`{"city":"Rome"}`)},
			}},
			{Text: "Fog in both."},
		}, nil),
	}})
	a.noise(3)
	start := fmt.Sprintf(`{"sessionId":%q,"agentType":"writer","message":"Look."}`, id)
	require.Equal(t, 200, a.post("/start", start).status)
	s := a.stream("/sse?sessionId=" + escape(id))
	s.rest()

	middle := a.append(id, requested(id, "r2"), text(id, "dead"), text(id, "dead, too"), text(id, "alive"))
	a.append(id, factOf(id, &eventlog.Truncated{
		Reason: eventlog.ResyncRetry, Ranges: []eventlog.Range{{AgentID: id, From: middle[1], To: middle[2]}},
		AtSequence: middle[3], Base: factBase(id),
	}))
	a.noise(1)
	a.post(chunksOf(id), lines(id, "k", 3), idemKey, "key").appended(t)
	at := a.append(id, chunk(&eventlog.StatePatch{
		Patches: []eventlog.PatchOp{{Op: "add", Path: "/more", Value: json.RawMessage(`1.50`)}}, Base: base(id),
	}))[0]
	a.append(id, text(id, "rolled back"), factOf(id, &fact.UserMessage{Content: "forget this", Base: factBase(id)}))
	restore, err := projector.RestoreAt(a.fold(id, at))
	require.NoError(t, err)
	_, err = eventlog.Rollback(a.ctx(), a.log, id, at, eventlog.RollbackOptions{Restore: restore})
	require.NoError(t, err)
	a.append(id,
		eventlog.Entry{Envelope: eventlog.Envelope{Kind: eventlog.KindFact, Type: "from_the_future", Agent: id}, Payload: []byte(`{"type":"from_the_future", "x":"<>"}`)},
		eventlog.Entry{Envelope: eventlog.Envelope{Kind: eventlog.KindChunk, Type: "odd", Agent: id + "-sub-1"}, Payload: []byte("not\nJSON \xff")},
		text(id, strings.Repeat("large ", 60_000)),
		ended(id, `{"ok":true}`))
	return a
}

func (a *testAPI) fold(session string, at uint64) *projector.Tree {
	a.t.Helper()
	tree := new(projector.Tree)
	for r, err := range a.log.Read(a.ctx(), session, 0, at) {
		require.NoError(a.t, err)
		projector.Apply(tree, r)
	}
	return tree
}

func TestImportIsTheSameSession(t *testing.T) {
	testkit.OneGoroutine(t)
	t.Parallel()
	const id = "a b/../é.*"
	from := livelySession(t, id)
	exported := from.export(id)
	to := newAPI(t)
	to.noise(50)
	done := to.post(importOf(id), exported).imported(t)
	require.Equal(t, strings.Count(exported, "\n"), done.Records)
	require.Equal(t, done.Records, done.Appended)
	require.Equal(t, eventlog.DurabilityUnknown, done.Durability)
	require.Equal(t, to.head(id), done.LastSequence+1, "who has imported it comes after it")

	// What clients see is the same.
	want, got := from.fold(id, 0), to.fold(id, 0)
	require.JSONEq(t, want.CustomState.String(), got.CustomState.String())
	require.Contains(t, got.CustomState.String(), `"Oslo"`)
	require.Contains(t, got.CustomState.String(), `"more":1.50`)
	require.Equal(t, want.StreamStatus, got.StreamStatus)
	require.Equal(t, want.Usage, got.Usage)
	require.Len(t, got.Parked, len(want.Parked))
	require.Len(t, got.Runs, len(want.Runs))
	require.Len(t, got.Messages, len(want.Messages))
	for i := range got.Messages {
		want.Messages[i].Sequence, got.Messages[i].Sequence = 0, 0
	}
	require.Equal(t, want.Messages, got.Messages)
	effective := func(a *testAPI) (all []string) {
		for _, r := range parseRecords(t, a.get("/sessions/"+escape(id)+"/records").body) {
			if r.Type != "truncated" && r.Type != "stream_resync" && r.Type != "session_imported" {
				all = append(all, string(r.Payload))
			}
		}
		return all
	}
	require.Equal(t, effective(from), effective(to))
	require.NotContains(t, strings.Join(effective(to), ""), "dead")

	// An export of the import is the original but for where it lies: also
	// when it comes out of segments.
	log := to.log.(*jetstream.Log)
	for range 2 {
		original, again := parseRecords(t, exported), parseRecords(t, to.export(id))
		require.Len(t, again, len(original)+1)
		require.Equal(t, "session_imported", again[len(original)].Type)
		again = again[:len(original)]
		for i, r := range again {
			require.Equal(t, eventlog.Origin{Sequence: original[i].Sequence, Time: original[i].Time}, r.Origin)
			r.Origin = eventlog.Origin{}
			require.Equal(t, original[i].Envelope, r.Envelope)
			if r.Type != "truncated" && r.Type != "stream_resync" {
				require.Equal(t, string(original[i].Payload), string(r.Payload))
			}
		}
		require.NoError(t, log.Seal(t.Context(), id))
		_, err := log.Purge(t.Context(), eventlog.PurgeOptions{SealedFor: time.Nanosecond})
		require.NoError(t, err)
	}

	// A producer that repeats its append gets the sequences that it has here.
	repeated := to.post(chunksOf(id), lines(id, "k", 3), idemKey, "key").appended(t)
	kept, known := got.Appends.Get("key")
	require.True(t, known)
	require.Equal(t, kept.FirstSequence, repeated.FirstSequence)
	require.Equal(t, to.head(id), done.LastSequence+1, "nothing was written")

	again := to.post(importOf(id), exported).imported(t)
	require.Zero(t, again.Appended)
	require.Equal(t, done.SHA256, again.SHA256)
	require.Equal(t, to.head(id), done.LastSequence+1, "it is said once")
}

func TestImportRefusesBadLines(t *testing.T) {
	t.Parallel()
	a := newAPIOn(t, memory.New(), nil)
	from := newAPIOn(t, memory.New(), nil)
	from.append("s", created("s"), text("s", "a"), text("s", "b"))
	good := strings.SplitAfter(strings.TrimSpace(from.export("s")), "\n")
	for name, tc := range map[string]struct {
		body  string
		line  float64
		field string
	}{
		"junk":           {good[0] + "\n" + good[1] + "junk", 4, ""},
		"a cut line":     {good[0] + good[1][:len(good[1])/2], 2, ""},
		"an array":       {"[" + good[0] + "]", 1, ""},
		"twice":          {good[0] + good[1] + good[1], 3, "sequence"},
		"another's":      {strings.Replace(good[0], `"agent":"s"`, `"agent":"t"`, 1), 1, "agent"},
		"unknown member": {good[0] + strings.Replace(good[1], `"kind"`, `"x":1,"kind"`, 1), 2, "x"},
		"unknown kind":   {good[0] + strings.Replace(good[1], `"chunk"`, `"chunks"`, 1), 2, "kind"},
		"wrong payload":  {good[0] + strings.Replace(good[1], `"type":"text_delta","agent"`, `"type":"output","agent"`, 1), 2, "data"},
		"nothing":        {"\n\n", 2, ""},
	} {
		body := a.post(importOf("s"), tc.body).failed(t, 400, api.CodeInvalidRequest)
		require.Contains(t, body.Error, fmt.Sprintf("line %v can't be imported", tc.line), name)
		detail := body.Detail.(map[string]any)
		require.Equal(t, tc.line, detail["line"], name)
		require.EqualValues(t, 0, detail["records"], name)
		if tc.field != "" {
			require.Equal(t, tc.field, detail["field"], name)
		}
		a.get("/sessions/s").failed(t, 404, api.CodeNotFound)
	}
	a.post("/sessions/a%00b/import", good[0]).failed(t, 400, api.CodeInvalidRequest)

	body := a.post(importOf("s"), strings.Repeat(" ", api.MaxImportLine+1)+good[0]).failed(t, 413, api.CodePayloadTooLarge)
	require.Equal(t, map[string]any{"limit": float64(api.MaxImportLine)}, body.Detail)
	require.Equal(t, "line 1 is too long", body.Error)

	a.append("s", created("s"))
	body = a.post(importOf("s"), strings.Join(good, "")).failed(t, 409, api.CodeSessionExists)
	require.Equal(t, map[string]any{"line": 1.0, "records": 0.0}, body.Detail)
	require.EqualValues(t, 1, a.head("s"))
}

// Only whole batches are written; a request that is made again continues.
func TestImportGoesOn(t *testing.T) {
	t.Parallel()
	from := newAPIOn(t, memory.New(), nil)
	for i := range 25 {
		from.post(chunksOf("s"), lines("s", fmt.Sprint(i, "-"), 100)).appended(t)
	}
	exported := from.export("s")
	rows := strings.SplitAfter(exported, "\n")
	a := newAPI(t)
	body := a.post(importOf("s"), strings.Join(rows[:1500], "")+"junk").failed(t, 400, api.CodeInvalidRequest)
	require.Equal(t, map[string]any{"line": 1501.0, "records": 1000.0}, body.Detail)
	require.Len(t, a.texts("s"), 1000)

	// The connection breaks after line 2200, in the middle of one.
	conn := dial(t, a)
	_, err := io.WriteString(conn, "POST /sessions/s/import HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
	require.NoError(t, err)
	part := strings.Join(rows[:2200], "") + rows[2200][:20]
	_, err = fmt.Fprintf(conn, "%x\r\n%s\r\n", len(part), part)
	require.NoError(t, err)
	conn.Close()
	require.Eventually(t, func() bool { return a.head("s") == 2000 }, within, time.Millisecond)

	done := a.post(importOf("s"), exported).imported(t)
	require.Equal(t, 2500, done.Records)
	require.LessOrEqual(t, done.Appended, 500)
	require.Equal(t, from.texts("s"), a.texts("s"))
	require.NotContains(t, a.logs.String(), "ERROR")
}

// A server that stops does not wait for the end of a long import.
func TestImportEndsWithTheServer(t *testing.T) {
	t.Parallel()
	a := newAPIOn(t, memory.New(), nil)
	in, out := io.Pipe()
	req, err := http.NewRequestWithContext(a.ctx(), "POST", a.http.URL+importOf("s"), in)
	require.NoError(t, err)
	answered := make(chan answer)
	go func() {
		defer close(answered)
		resp, err := a.http.Client().Do(req)
		if err != nil {
			return
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		answered <- answer{resp.StatusCode, resp.Header, string(body)}
	}()
	var b strings.Builder
	for i := range 1001 {
		line, err := eventlog.Record{Sequence: uint64(i) + 1, Time: time.Unix(1, 0), Entry: text("s", "x")}.MarshalJSON()
		require.NoError(t, err)
		b.Write(append(line, '\n'))
	}
	_, err = io.WriteString(out, b.String())
	require.NoError(t, err)
	require.Eventually(t, func() bool { return a.get("/sessions/s").status == 200 }, within, time.Millisecond)
	a.srv.Close()
	got := <-answered
	got.failed(t, 503, api.CodeUnavailable)
	out.Close()
	require.Len(t, a.texts("s"), 1000)
}

// Who may append may not import: an import writes facts as they are.
func TestImportIsAnOperationOfItsOwn(t *testing.T) {
	token := func(name string, ops ...string) auth.Token {
		return auth.Token{Token: name, Operations: ops, Sessions: []string{"mine*"}}
	}
	a := newAPIOn(t, memory.New(), nil, func(o *httpapi.Options) {
		o.Auth = auth.BearerTokens([]auth.Token{token("producer", "append", "records", "start", "resume", "stream"), token("operator", "import")})
	})
	as := func(token string) []string { return []string{"Authorization", "Bearer " + token} }
	line, err := eventlog.Record{Sequence: 1, Time: time.Unix(1, 0), Entry: created("mine")}.MarshalJSON()
	require.NoError(t, err)
	a.post(importOf("mine"), string(line), as("producer")...).failed(t, 403, api.CodeUnauthorized)
	a.post(importOf("yours"), string(line), as("operator")...).failed(t, 403, api.CodeUnauthorized)
	a.post(importOf("mine"), string(line)).failed(t, 401, api.CodeUnauthorized)
	a.post(importOf("mine"), string(line), as("operator")...).imported(t)
}

// A message that another NATS client wrote goes along with its session, from
// JetStream to JetStream.
func TestImportTakesForeignMessages(t *testing.T) {
	t.Parallel()
	log, nc := newLogAndConn(t)
	from, to := newAPIOn(t, log, nil), newAPI(t)
	from.append("s", text("s", "a"))
	_, err := nc.Request("helix.log.0.s", []byte("hello"), within)
	require.NoError(t, err)
	head := from.head("s")
	from.append("s", text("s", "b"), text("s", "c"))
	to.post(importOf("s"), from.export("s")).imported(t)
	require.Equal(t, []string{"a", "b", "c"}, to.texts("s"))
	found := false
	for r, err := range to.log.Read(to.ctx(), "s", 0, 0) {
		require.NoError(t, err)
		if r.Origin.Sequence == head {
			found = true
			require.Equal(t, eventlog.Entry{Envelope: eventlog.Envelope{Origin: r.Origin}, Payload: []byte("hello")}, r.Entry)
		}
	}
	require.True(t, found)
}

// A line that is large counts among its caller's bodies, and the import among its
// streams: it may take any time.
func TestImportsAreBounded(t *testing.T) {
	t.Parallel()
	from := newAPI(t)
	from.append("s", created("s"))
	for range 5 {
		from.append("s", text("s", strings.Repeat("x", 100_000)))
	}
	lines := from.export("s")
	a := newAPIOn(t, memory.New(), nil, func(o *httpapi.Options) { o.MaxStreams = 1 })
	httpapi.SetBodies(a.srv, 150_000, 500_000)
	a.post(importOf("s"), lines).imported(t) // the lines together are longer
	require.Eventually(t, func() bool { return httpapi.HeldBodies(a.srv) == 0 }, 20*time.Second, time.Millisecond)
	httpapi.SetBodies(a.srv, 90_000, 500_000)
	a.post(importOf("s"), lines).failed(t, 429, api.CodeBusy)
	httpapi.SetBodies(a.srv, 500_000, 90_000)
	a.post(importOf("s"), lines).failed(t, 503, api.CodeBusy)

	open := a.stream("/sse?sessionId=s")
	open.next()
	a.post(importOf("s"), lines).failed(t, 429, api.CodeQuotaExceeded)
}
