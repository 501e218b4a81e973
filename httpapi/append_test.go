package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/integration/testkit"
	"github.com/helixd/helixd/projector"
)

const (
	expected = "Helix-Expected-Sequence"
	idemKey  = "Idempotency-Key"
)

// line is a text chunk as an outside producer writes it.
func line(session, s string) string { return string(text(session, s).Payload) }

// lines are n text chunks, numbered, as NDJSON.
func lines(session, prefix string, n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(line(session, fmt.Sprint(prefix, i)) + "\n")
	}
	return b.String()
}

func chunksOf(session string) string { return "/sessions/" + escape(session) + "/chunks" }

// appended checks a success.
func (r answer) appended(t *testing.T) api.Appended {
	t.Helper()
	require.Equal(t, 200, r.status, r.body)
	var got api.Appended
	r.decode(t, &got)
	require.EqualValues(t, got.Count, got.LastSequence-got.FirstSequence+1, r.body)
	return got
}

// texts returns the session's text deltas, in order.
func (a *testAPI) texts(session string) []string {
	a.t.Helper()
	var all []string
	for r, err := range a.log.Read(a.ctx(), session, 0, 0) {
		require.NoError(a.t, err)
		if r.Type == "text_delta" {
			c, err := r.Chunk()
			require.NoError(a.t, err)
			all = append(all, c.(*eventlog.TextDelta).Delta)
		}
	}
	return all
}

func (a *testAPI) head(session string) uint64 {
	a.t.Helper()
	head, err := a.log.Head(a.ctx(), session)
	require.NoError(a.t, err)
	return head
}

func TestChunksForms(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	one, two := line("s", "one < &"), line("s", "two")
	for _, body := range []string{
		one + "\n" + two,
		"\r\n \n" + one + "\r\n\n\t\n" + two + "\n\n",
		"[" + one + "," + two + "]",
		"\n [ " + one + " ,\n" + strings.ReplaceAll(two, ",", " , ") + "\n]\n",
	} {
		before := len(a.texts0("s"))
		got := a.post(chunksOf("s"), body).appended(t)
		require.Equal(t, 2, got.Count)
		require.Equal(t, a.head("s"), got.LastSequence)
		require.Equal(t, []string{"one < &", "two"}, a.texts("s")[before:])
	}
	require.Contains(t, a.get("/sessions/s/records").body, one, "stored as it came")
}

// texts0 is texts of a session that may not be there.
func (a *testAPI) texts0(session string) []string {
	a.t.Helper()
	if a.get("/sessions/"+escape(session)).status == 404 {
		return nil
	}
	return a.texts(session)
}

func TestChunksRefusesBadOnes(t *testing.T) {
	testkit.OneGoroutine(t)
	t.Parallel()
	a := newAPI(t)
	good := line("s", "good")
	step, run := "step", "run"
	for _, tc := range []struct {
		name, body string
		status     int
		code       api.Code
		detail     string // JSON; empty: none
	}{
		{"nothing", "\n \r\n", 400, "INVALID_REQUEST", ""},
		{"an empty array", " [ ] ", 400, "INVALID_REQUEST", ""},
		{"not JSON", good + "\njunk", 400, "INVALID_REQUEST", `{"index":1}`},
		{"not an object", good + "\n7", 400, "INVALID_REQUEST", `{"index":1}`},
		{"two in a line", good + " " + good, 400, "INVALID_REQUEST", `{"index":0}`},
		{"invalid UTF-8", good + "\n\n" + strings.Replace(good, "good", "\xff", 1), 400, "INVALID_REQUEST", `{"index":1}`},
		{"an array in an array", "[" + good + ",[" + good + "]]", 400, "INVALID_REQUEST", `{"index":1}`},
		{"an open array", "[" + good, 400, "INVALID_REQUEST", ""},
		{"after the array", "[" + good + "]" + good, 400, "INVALID_REQUEST", ""},
		{"a comma too many", "[" + good + ",]", 400, "INVALID_REQUEST", ""},
		{"unknown type", good + "\n" + strings.Replace(good, "text_delta", "text_omega", 1), 400, "INVALID_REQUEST", `{"index":1,"field":"type"}`},
		{"unknown field", strings.Replace(good, `"delta"`, `"x":1,"delta"`, 1), 400, "INVALID_REQUEST", `{"index":0,"field":"x"}`},
		{"wrong type", good + "\n" + good + "\n" + strings.Replace(good, `"good"`, "7", 1), 400, "INVALID_REQUEST", `{"index":2,"field":"delta"}`},
		{"another session's", good + "\n" + line("t", "x"), 400, "INVALID_REQUEST", `{"index":1,"field":"agentId"}`},
		{"two agents", good + "\n" + strings.Replace(good, "writer", "reader", 1), 400, "INVALID_REQUEST", `{"index":1,"field":"agentType"}`},
		{"1,001 chunks", lines("s", "x", 1001), 413, "PAYLOAD_TOO_LARGE", `{"limit":1000}`},
		{"1,001 in an array", "[" + strings.Repeat(good+",", 1000) + good + "]", 413, "PAYLOAD_TOO_LARGE", `{"limit":1000}`},
		{
			"a large chunk", good + "\n" + line("s", strings.Repeat("x", a.log.Info().MaxRecordBytes)), 413, "PAYLOAD_TOO_LARGE",
			fmt.Sprintf(`{"limit":%d}`, a.log.Info().MaxRecordBytes),
		},
	} {
		body := a.post(chunksOf("s"), tc.body, idemKey, "k").failed(t, tc.status, tc.code)
		detail, err := json.Marshal(body.Detail)
		require.NoError(t, err)
		if tc.detail == "" {
			tc.detail = "null"
		}
		require.JSONEq(t, tc.detail, string(detail), tc.name)
		a.get("/sessions/s").failed(t, 404, api.CodeNotFound)
	}
	for _, c := range []eventlog.Chunk{
		&eventlog.RunInterrupted{RunID: run, Base: base("s")}, &eventlog.RunResumed{RunID: run, Mode: "continue", Base: base("s")},
		&eventlog.RunPaused{RunID: run, Base: base("s")}, &eventlog.StepStart{Base: base("s")}, &eventlog.StepEnd{Base: base("s")},
		&eventlog.StepCommitted{RunID: run, StepID: step, CheckpointID: "c", Base: base("s")},
		&eventlog.StepDiscarded{RunID: run, StepID: step, Base: base("s")},
		&eventlog.CheckpointCreated{RunID: run, CheckpointID: "c", Base: base("s")},
		&eventlog.StreamResync{Reason: eventlog.ResyncRetry, Base: base("s")}, &eventlog.ExecutorSuperseded{Base: base("s")},
		&eventlog.SuspensionMarker{Kind: eventlog.SuspendedClientTool, Payload: json.RawMessage(`{}`), Base: base("s")},
	} {
		body := a.post(chunksOf("s"), good+"\n"+string(chunk(c).Payload)).failed(t, 400, api.CodeInvalidRequest)
		require.Equal(t, map[string]any{"index": 1.0, "field": "type"}, body.Detail)
	}
	a.get("/sessions/s").failed(t, 404, api.CodeNotFound)

	// A session keeps its agent; and the key that was refused is not taken.
	a.post(chunksOf("s"), good, idemKey, "k").appended(t)
	body := a.post(chunksOf("s"), strings.Replace(good, "writer", "reader", 1)).failed(t, 400, api.CodeInvalidRequest)
	require.Equal(t, map[string]any{"index": 0.0, "field": "agentType"}, body.Detail)
	require.Equal(t, []string{"good"}, a.texts("s"))
}

// tooMuchWork asks for a patch of a new session that is more work than it may do.
func (a *testAPI) tooMuchWork(session string) {
	a.t.Helper()
	patch := func(ops ...string) string {
		return `{"type":"state_patch","agentId":"` + session + `","agentType":"writer","step":0,"timestamp":1,"patches":[` + strings.Join(ops, ",") + `]}`
	}
	const insert = `{"op":"add","path":"/a/0","value":1}`
	wide := `{"op":"add","path":"/` + strings.Repeat("k", 2<<20) + `","value":1}`
	first := a.post(chunksOf(session), patch(`{"op":"add","path":"/a","value":[0]}`, wide)).appended(a.t)
	many := patch(slices.Repeat([]string{insert}, 300)...)
	a.post(chunksOf(session), line(session, "x")+"\n"+many).failed(a.t, 422, api.CodeTooMuchWork)
	a.post(chunksOf(session), patch(insert), expected, fmt.Sprint(first.LastSequence)).appended(a.t) // nothing came in between
	require.Empty(a.t, a.texts(session))
}

func TestChunksBodyLimits(t *testing.T) {
	t.Parallel()
	a := newAPIOn(t, memory.New(), nil)
	const head = "POST /sessions/s/chunks HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
	raw(t, a, head+"\r\n").failed(t, 411, api.CodeLengthRequired)
	body := raw(t, a, fmt.Sprintf("%sContent-Length: %d\r\n\r\n", head, api.MaxChunksBody+1)).failed(t, 413, api.CodePayloadTooLarge)
	require.Equal(t, map[string]any{"limit": float64(api.MaxChunksBody)}, body.Detail)
	body = a.post("/sessions/s/end", strings.Repeat(" ", api.MaxBody+1)).failed(t, 413, api.CodePayloadTooLarge)
	require.Equal(t, map[string]any{"limit": float64(api.MaxBody)}, body.Detail)
}

// TestChunksLargeBody: JetStream has no limit of an atomic batch's bytes.
func TestChunksLargeBody(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	one := line("s", strings.Repeat("x", api.MaxBody/2)) + "\n"
	got := a.post(chunksOf("s"), strings.Repeat(one, 2), idemKey, "large").appended(t)
	require.Equal(t, 2, got.Count)
	require.Equal(t, got, a.post(chunksOf("s"), strings.Repeat(one, 2), idemKey, "large").appended(t))
	require.Len(t, a.texts("s"), 2)
}

// TestChunksFull: as many as go into one append, with a key and without.
func TestChunksFull(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	body := lines("s", "x", eventlog.MaxAppendRecords)
	first := a.post(chunksOf("s"), body, idemKey, "k", expected, "0").appended(t)
	require.Equal(t, api.Appended{FirstSequence: 1, LastSequence: 1000, Count: 1000}, first)
	require.Equal(t, first, a.post(chunksOf("s"), body, idemKey, "k", expected, "0").appended(t))
	second := a.post(chunksOf("s"), body, expected, "1000").appended(t)
	require.Equal(t, api.Appended{FirstSequence: 1001, LastSequence: 2000, Count: 1000}, second)
	require.Len(t, a.texts("s"), 2000)
}

func TestChunksExpectedSequence(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	conflict := func(session, seq string, head uint64) {
		t.Helper()
		body := a.post(chunksOf(session), line(session, "x"), expected, seq).failed(t, 409, api.CodeSequenceConflict)
		require.Equal(t, map[string]any{"head": float64(head)}, body.Detail)
	}
	conflict("s", "7", 0)
	a.get("/sessions/s").failed(t, 404, api.CodeNotFound)
	first := a.post(chunksOf("s"), lines("s", "a", 2), expected, "0").appended(t)
	a.post(chunksOf("other"), line("other", "x"), expected, "0").appended(t) // gaps
	conflict("s", "0", first.LastSequence)
	conflict("s", fmt.Sprint(first.FirstSequence), first.LastSequence)
	conflict("s", fmt.Sprint(first.LastSequence+1), first.LastSequence)
	conflict("s", "18446744073709551615", first.LastSequence)
	second := a.post(chunksOf("s"), lines("s", "b", 2), expected, fmt.Sprint(first.LastSequence)).appended(t)
	require.Equal(t, first.LastSequence+2, second.FirstSequence)
	conflict("s", fmt.Sprint(first.LastSequence), second.LastSequence)
	a.post(chunksOf("s"), line("s", "c")).appended(t) // after whatever is there
	require.Equal(t, []string{"a0", "a1", "b0", "b1", "c"}, a.texts("s"))

	for _, v := range []string{"", "-1", "x", "1.0", "18446744073709551616"} {
		body := a.post(chunksOf("s"), line("s", "x"), expected, v).failed(t, 400, api.CodeInvalidRequest)
		require.Equal(t, map[string]any{"field": expected}, body.Detail)
	}
}

// A key whose answer is forgotten appends nothing, until many more have been used.
func TestAnExpiredKeyAppendsNothing(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	first := a.post(chunksOf("s"), line("s", "a"), idemKey, "k").appended(t)
	useKeys(t, a.log, "s", projector.LeastKnownAppends-1)
	require.Equal(t, first, a.post(chunksOf("s"), line("s", "a"), idemKey, "k").appended(t), "it is remembered")
	useKeys(t, a.log, "s", projector.LeastKnownAppends+200)
	head := a.head("s")
	a.post(chunksOf("s"), line("s", "a"), idemKey, "k").failed(t, 409, api.CodeIdempotencyExpired)
	a.post(chunksOf("s"), line("s", "b"), idemKey, "k").failed(t, 409, api.CodeIdempotencyExpired)
	require.Equal(t, head, a.head("s"))
	a.post(chunksOf("s"), line("s", "a"), idemKey, "new").appended(t)
}

// A producer's request meets a session that was erased and created again since it
// was folded: nothing of the old one counts. Here the old one's run of the same
// id would hide the new one's.
func TestARequestIsJudgedByTheSessionThatIsThere(t *testing.T) {
	log := &renewed{Log: memory.New()}
	a := newAPIOn(t, log, nil)
	begin := factOf("s", &fact.RunRequested{RunID: "run-1", Mode: fact.ModeStart, Base: factBase("s")})
	over := factOf("s", &fact.RunEnded{RunID: "run-1", Status: fact.RunCompleted, Base: factBase("s")})
	a.append("s", begin, over)
	log.before = func() {
		_, err := log.Erase(a.ctx(), "s")
		require.NoError(t, err)
		a.append("s", begin)
	}
	a.post("/sessions/s/end", "").failed(t, 409, api.CodeAlreadyRunning)
	require.Nil(t, log.before)

	erase := func() {
		_, err := log.Erase(a.ctx(), "s")
		require.NoError(t, err)
	}
	log.before = erase
	other := newAPIOn(t, log, nil) // reads the session, which is erased after that
	other.post(chunksOf("s"), line("s", "x")).failed(t, 404, api.CodeNotFound)
	a.post(chunksOf("s"), line("s", "x")).appended(t)

	// One that remembers the session can't tell when it was erased, and takes the
	// request for one that came after that.
	log.before = erase
	a.post(chunksOf("s"), line("s", "y")).appended(t)
	require.Equal(t, []string{"y"}, a.texts("s"))
}

// renewed calls before once, before an append.
type renewed struct {
	eventlog.Log
	before func()
}

func (l *renewed) Append(ctx context.Context, session string, expected uint64, entries []eventlog.Entry) (uint64, error) {
	if f := l.before; f != nil {
		l.before = nil
		f()
	}
	return l.Log.Append(ctx, session, expected, entries)
}

// full refuses the appends of chunks.
type full struct {
	eventlog.Log
	is bool
}

func (l *full) Append(ctx context.Context, session string, expected uint64, entries []eventlog.Entry) (uint64, error) {
	if l.is && entries[0].Kind == eventlog.KindChunk {
		return 0, eventlog.ErrRefused
	}
	return l.Log.Append(ctx, session, expected, entries)
}

// TestTheBeginningOfASessionCanBeRepeated: a session of a tenant or a user is created before its
// first chunks are appended. If these fail, and be it by kill -9, a producer that expects
// no session can send them again, and is the only one that can.
func TestTheBeginningOfASessionCanBeRepeated(t *testing.T) {
	t.Parallel()
	log := &full{Log: memory.New()}
	a := newAPIOn(t, log, nil, withUsers)
	for _, headers := range [][]string{{expected, "0"}, {expected, "0", idemKey, "k"}} {
		session, headers := "s"+fmt.Sprint(len(headers)), append(headers, bearer("ann")...)
		log.is = true
		a.post(chunksOf(session), line(session, "a"), headers...).failed(t, 503, api.CodeReadOnly)
		log.is = false
		a.post(chunksOf(session), line(session, "x"), append([]string{expected, "0"}, bearer("bob")...)...).failed(t, 403, api.CodeUnauthorized)
		a.post(chunksOf(session), line(session, "a"), headers...).appended(t)
		require.Equal(t, []string{"a"}, a.texts(session))
		a.post(chunksOf(session), line(session, "b"), append([]string{expected, "0"}, bearer("ann")...)...).failed(t, 409, api.CodeSequenceConflict)
	}
	a.append("created", factOf("created", &fact.SessionCreated{State: json.RawMessage("{}"), UserID: "ann", Tenant: "red", Base: factBase("created")}))
	a.post(chunksOf("created"), line("created", "a"), append([]string{expected, "0"}, bearer("ann")...)...).failed(t, 409, api.CodeSequenceConflict)
}

// cutOff is a log whose node knows less than others have acknowledged.
type cutOff struct{ eventlog.Log }

func (l cutOff) Read(ctx context.Context, session string, from, to uint64) iter.Seq2[eventlog.Record, error] {
	if head, err := l.Head(ctx, session); err == nil && max(from, to) > head {
		return func(yield func(eventlog.Record, error) bool) { yield(eventlog.Record{}, eventlog.ErrUnavailable) }
	}
	return l.Log.Read(ctx, session, from, to)
}

// TestANodeThatIsCutOffRefusesNobodyForGood: what others have acknowledged to a producer or a
// client is no error of its, whatever this node knows.
func TestANodeThatIsCutOffRefusesNobodyForGood(t *testing.T) {
	t.Parallel()
	a := newAPIOn(t, cutOff{memory.New()}, nil)
	head := a.post(chunksOf("s"), line("s", "a")).appended(t).LastSequence
	a.post(chunksOf("s"), line("s", "b"), expected, fmt.Sprint(head+1)).failed(t, 503, api.CodeUnavailable)
	a.post(chunksOf("s"), line("s", "b"), expected, "0").failed(t, 409, api.CodeSequenceConflict)
	from := "from=" + fmt.Sprint(head+1)
	for _, path := range []string{"/records?" + from, "/records?follow=true&" + from, "/replay?" + from} {
		a.get("/sessions/s"+path).failed(t, 503, api.CodeUnavailable)
	}
	a.get("/sessions/s/stream", "Last-Event-ID", fmt.Sprint(head+1)).failed(t, 503, api.CodeUnavailable)
	require.Equal(t, []string{"a"}, a.texts("s"))
}

// questions counts what a node asks of its log, but for appends.
type questions struct {
	eventlog.Log
	reads, heads int
}

func (l *questions) Read(ctx context.Context, session string, from, to uint64) iter.Seq2[eventlog.Record, error] {
	l.reads++
	return l.Log.Read(ctx, session, from, to)
}

func (l *questions) Head(ctx context.Context, session string) (uint64, error) {
	l.heads++
	return l.Log.Head(ctx, session)
}

// TestAnAppendReadsWhatThisNodeDoesNotKnow, and nothing else: nothing if the node was the
// last one to append, and what others wrote once.
func TestAnAppendReadsWhatThisNodeDoesNotKnow(t *testing.T) {
	log := &questions{Log: memory.New()}
	a := newAPIOn(t, log, nil)
	post := func(text string, headers ...string) [2]int {
		log.reads, log.heads = 0, 0
		a.post(chunksOf("s"), line("s", text), headers...).appended(t)
		return [2]int{log.reads, log.heads}
	}
	require.Equal(t, [2]int{1, 0}, post("a"), "there is no session")
	require.Equal(t, [2]int{0, 0}, post("b"))
	require.Equal(t, [2]int{0, 0}, post("c", idemKey, "key"))
	require.Equal(t, [2]int{1, 0}, post("c", idemKey, "key"), "an answer without an append is decided on what was read")
	other := newAPIOn(t, log.Log, nil)
	other.post(chunksOf("s"), line("s", "d")).appended(t)
	require.Equal(t, [2]int{2, 0}, post("e"), "what was there first, and what has followed")
	require.Equal(t, []string{"a", "b", "c", "d", "e"}, a.texts("s"))
}
