package httpapi_test

import (
	"encoding/json"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/httpapi"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/integration/testkit"
	"github.com/helixd/helixd/projector"
	"github.com/helixd/helixd/snapshot"
)

func TestStreamHeaders(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.append("s", created("s"), text("s", "a"), ended("s", `{"x":1}`))
	s := a.stream("/sse?sessionId=s")
	require.Equal(t, "no-cache", s.resp.Header.Get("Cache-Control"))
	require.Equal(t, "keep-alive", s.resp.Header.Get("Connection"))
	require.Equal(t, "no", s.resp.Header.Get("X-Accel-Buffering"))
	e := s.next()
	require.Equal(t, sseEvent{
		id: "2", name: "chunk",
		data: `{"type":"chunk","chunk":{"type":"text_delta","delta":"a","agentId":"s","agentType":"writer","timestamp":1,"step":1},"sequence":2}`,
	}, e)
	require.Equal(t, sseEvent{name: "end", data: `{"type":"end","output":{"x":1},"state":{"n":1}}`}, s.next())

	head := a.request("HEAD", "/sse?sessionId=s", "")
	require.Equal(t, 200, head.status)
	require.Empty(t, head.body)
}

// TestStreamCursors resumes at every sequence of a log with dead records and
// several turns, by every way to give a cursor.
func TestStreamCursors(t *testing.T) {
	testkit.OneGoroutine(t)
	t.Parallel()
	a := newAPI(t)
	a.append("other", created("other"), text("other", "not ours")) // gaps
	seqs := a.append("s", created("s"), requested("s", "run-1"), text("s", "a"), text("s", "b"), text("s", "c"))
	a.append("other", text("other", "not ours"))
	a.append("s",
		factOf("s", &eventlog.Truncated{
			Reason: eventlog.ResyncRetry,
			Ranges: []eventlog.Range{{AgentID: "s", From: seqs[3], To: seqs[4]}},
			Base:   factBase("s"),
		}),
		chunk(&eventlog.StreamResync{Reason: eventlog.ResyncRetry, FromSequence: seqs[2], Base: base("s")}),
		text("s", "B"), ended("s", `"one"`))
	a.append("other", text("other", "not ours"))
	a.append("s", requested("s", "run-2"), text("s", "second turn"),
		chunk(&eventlog.SuspensionMarker{Kind: eventlog.SuspendedClientTool, Payload: json.RawMessage(`{}`), Base: base("s")}),
		ended("s", `"two"`))

	head, err := a.log.Head(a.ctx(), "s")
	require.NoError(t, err)
	_, all, _ := a.stream("/sse?sessionId=s").rest()
	require.Equal(t, []string{"a", "stream_resync", "B", "second turn", "suspension_marker"}, all)

	for from := range head + 1 {
		var want []uint64
		for r, err := range eventlog.Effective(a.ctx(), a.log, "s", from, head) {
			require.NoError(t, err)
			if r.Kind == eventlog.KindChunk {
				want = append(want, r.Sequence)
			}
		}
		n := fmt.Sprint(from)
		for _, s := range []*stream{
			a.stream("/sse?sessionId=s&fromSequence=" + n),
			a.stream("/sse?sessionId=s", "Last-Event-ID", n),
			a.stream("/sse?sessionId=s", "X-Resume-From-Sequence", n, "Last-Event-ID", "0"),
			a.stream("/sse?sessionId=s&fromSequence="+n, "X-Resume-From-Sequence", "junk", "Last-Event-ID", "0"),
			a.stream("/sse?sessionId=s&fromSequence=0", "Last-Event-ID", n), // as a browser reconnects
		} {
			got, _, end := s.rest()
			require.Equal(t, want, got, "from %d", from)
			require.JSONEq(t, `{"type":"end","output":"two","state":{"n":1}}`, end.data)
		}
	}
}

func TestStreamRefusals(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	head := a.append("s", created("s"), text("s", "a"))[1]
	body := a.get(fmt.Sprintf("/sse?sessionId=s&fromSequence=%d", head+1)).failed(t, 416, api.CodeCursorAhead)
	require.Equal(t, map[string]any{"head": float64(head)}, body.Detail)
	a.get("/sse?sessionId=s", "Last-Event-ID", "99").failed(t, 416, api.CodeCursorAhead)
	a.get("/sse?sessionId=nobody").failed(t, 404, api.CodeNotFound)
	a.get("/sse?sessionId=nobody&fromSequence=7").failed(t, 404, api.CodeNotFound)
	for _, q := range []string{"-1", "+1", "1.0", "x", "", "0x1", "18446744073709551616", "1_0", "%201"} {
		body := a.get("/sse?sessionId=s&fromSequence="+q).failed(t, 400, api.CodeInvalidRequest)
		require.Equal(t, map[string]any{"field": "fromSequence"}, body.Detail)
	}
	a.get("/sse?sessionId=s", "Last-Event-ID", "msg-1").failed(t, 400, api.CodeInvalidRequest)
	a.get("/sse?sessionId=s", "X-Resume-From-Sequence", "x").failed(t, 400, api.CodeInvalidRequest)
	a.get("/sse?sessionId=s&sessionId=t").failed(t, 400, api.CodeInvalidRequest)
	a.get("/sse?sessionId=s;x=1").failed(t, 400, api.CodeInvalidRequest)
	a.get("/sse").failed(t, 400, api.CodeInvalidRequest)
}

func TestStreamFollowsAndReconnects(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.append("s", created("s"), requested("s", "run-1"), text("s", "a"))
	s := a.stream("/sse?sessionId=s")
	_, got := s.chunk()
	require.Equal(t, "a", got)
	for i := range 20 { // across the seam, and live
		want := fmt.Sprint(i)
		a.append("s", text("s", want), factOf("s", &fact.UserMessage{Content: "facts are not shown", Base: factBase("s")}))
		_, got := s.chunk()
		require.Equal(t, want, got)
	}
	seq := a.append("s", text("s", "last seen"))[0]
	got1, got := s.chunk()
	require.Equal(t, "last seen", got)
	require.Equal(t, seq, got1)
	s.cancel() // a client that leaves

	a.append("s", text("s", "missed"))
	s = a.stream("/sse?sessionId=s", "Last-Event-ID", fmt.Sprint(seq))
	_, got = s.chunk()
	require.Equal(t, "missed", got)
	a.append("s", text("s", "live"), ended("s", `1`))
	_, texts, end := s.rest()
	require.Equal(t, []string{"live"}, texts)
	require.JSONEq(t, `{"type":"end","output":1,"state":{"n":1}}`, end.data)
	require.NotContains(t, a.logs.String(), "level=ERROR", "a client that leaves is no error")
}

func TestStreamTruncatedUnderReader(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	seqs := a.append("s", created("s"), requested("s", "run-1"), text("s", "keep"), text("s", "die"))
	live := a.stream("/sse?sessionId=s")
	for _, want := range []string{"keep", "die"} {
		_, got := live.chunk()
		require.Equal(t, want, got)
	}
	a.append("s",
		factOf("s", &eventlog.Truncated{
			Reason: eventlog.ResyncCrashRecovery, AtSequence: seqs[3],
			Ranges: []eventlog.Range{{AgentID: "s", From: seqs[3], To: seqs[3]}}, Base: factBase("s"),
		}),
		chunk(&eventlog.StreamResync{Reason: eventlog.ResyncCrashRecovery, FromSequence: seqs[2], Base: base("s")}),
		text("s", "survivor"))
	for _, want := range []string{"stream_resync", "survivor"} {
		_, got := live.chunk()
		require.Equal(t, want, got)
	}
	fresh := a.stream("/sse?sessionId=s")
	for _, want := range []string{"keep", "stream_resync", "survivor"} {
		_, got := fresh.chunk()
		require.Equal(t, want, got)
	}
	a.append("s", ended("s", `1`))
	for _, s := range []*stream{live, fresh} {
		_, texts, end := s.rest()
		require.Empty(t, texts)
		require.Equal(t, "end", end.name)
	}
}

// TestStreamRolledBackIntoAnEndedTurn: a client that is attached to a turn that is rolled
// back is notified that the turn before had ended.
func TestStreamRolledBackIntoAnEndedTurn(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	seqs := a.append("s", created("s"), requested("s", "run-1"), text("s", "first"), ended("s", `1`))
	before, err := snapshot.New(a.log, nil).At(a.ctx(), "s", seqs[3])
	require.NoError(t, err)
	restore, err := projector.RestoreAt(before)
	require.NoError(t, err)
	a.append("s", requested("s", "run-2"), text("s", "second"))
	live := a.stream(fmt.Sprint("/sse?sessionId=s&fromSequence=", seqs[3]))
	_, got := live.chunk()
	require.Equal(t, "second", got)
	_, err = eventlog.Rollback(a.ctx(), a.log, "s", seqs[3], eventlog.RollbackOptions{Restore: restore})
	require.NoError(t, err)
	_, texts, end := live.rest()
	require.Empty(t, texts)
	require.Equal(t, "end", end.name)
	require.Contains(t, end.data, `"output":1`)
}

// TestStreamEndings: attached clients and later ones receive the same.
func TestStreamEndings(t *testing.T) {
	t.Parallel()
	interrupted := func(s string) []eventlog.Entry {
		return []eventlog.Entry{
			chunk(&eventlog.RunInterrupted{RunID: "run-1", Base: base(s)}),
			factOf(s, &fact.RunEnded{RunID: "run-1", Status: fact.RunStopped, Base: factBase(s)}),
		}
	}
	a := newAPI(t)
	for i, tc := range []struct {
		name    string
		entries func(s string) []eventlog.Entry
		event   string
		data    string
		status  string // of /status
	}{
		{"completed run", func(s string) []eventlog.Entry {
			return []eventlog.Entry{
				factOf(s, &fact.RunEnded{RunID: "run-1", Status: fact.RunCompleted, Output: json.RawMessage(`{"a":"<b>"}`), Base: factBase(s)}),
				factOf(s, &fact.StreamEnd{StreamID: s, Timestamp: 1}),
			}
		}, "end", `{"type":"end","output":{"a":"<b>"},"state":{"n":1}}`, "completed"},
		{"ended by a producer", func(s string) []eventlog.Entry {
			return []eventlog.Entry{ended(s, `null`)}
		}, "end", `{"type":"end","output":null,"state":{"n":1}}`, "completed"},
		{"failed run", func(s string) []eventlog.Entry {
			return []eventlog.Entry{
				factOf(s, &fact.RunEnded{RunID: "run-1", Status: fact.RunFailed, Error: "it broke", ErrorCode: "x", Base: factBase(s)}),
				factOf(s, &fact.StreamFailed{Error: "it broke", Base: factBase(s)}),
			}
		}, "error", `{"type":"error","error":"it broke","recoverable":false}`, "failed"},
		{"failed by a producer", func(s string) []eventlog.Entry {
			return []eventlog.Entry{factOf(s, &fact.StreamFailed{Error: "gave up", Base: factBase(s)})}
		}, "error", `{"type":"error","error":"gave up","recoverable":false}`, "failed"},
		{"paused", func(s string) []eventlog.Entry {
			return []eventlog.Entry{factOf(s, &fact.StreamPaused{Base: factBase(s)})}
		}, "end", `{"type":"end","status":"paused"}`, "paused"},
		{"suspended", func(s string) []eventlog.Entry {
			return []eventlog.Entry{
				factOf(s, &fact.RunEnded{RunID: "run-1", Status: fact.RunClientTool, Base: factBase(s)}),
				factOf(s, &fact.StreamPaused{Base: factBase(s)}),
			}
		}, "end", `{"type":"end","status":"paused"}`, "paused"},
		{"interrupted", interrupted, "end", `{"type":"end","status":"interrupted"}`, "interrupted"},
		{"interrupted and paused", func(s string) []eventlog.Entry {
			return append(interrupted(s), factOf(s, &fact.StreamPaused{Base: factBase(s)}))
		}, "end", `{"type":"end","status":"interrupted"}`, "interrupted"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			id := fmt.Sprint("s", i)
			target := "/sse?sessionId=" + id
			a := &testAPI{t: t, log: a.log, loop: a.loop, srv: a.srv, http: a.http, logs: a.logs}
			a.append(id, created(id), requested(id, "run-1"), text(id, "a"))
			attached := a.stream(target)
			_, got := attached.chunk()
			require.Equal(t, "a", got)
			child := factOf("child", &fact.StreamEnd{StreamID: "child", Timestamp: 1})
			a.append(id, child, text(id, "b")) // a child's end is not the root's
			a.append(id, tc.entries(id)...)
			_, texts, end := attached.rest()
			require.Equal(t, "b", texts[0])
			require.Equal(t, sseEvent{name: tc.event, data: tc.data}, end)

			_, freshTexts, freshEnd := a.stream(target).rest()
			require.Equal(t, append([]string{"a"}, texts...), freshTexts)
			require.Equal(t, end, freshEnd)
			head, err := a.log.Head(a.ctx(), id)
			require.NoError(t, err)
			_, none, atHead := a.stream(fmt.Sprintf("%s&fromSequence=%d", target, head)).rest()
			require.Empty(t, none)
			require.Equal(t, end, atHead)

			var status api.Status
			a.get("/status?sessionId="+id).decode(t, &status)
			require.Equal(t, tc.status, status.Status)
			require.False(t, status.IsExecuting)
			require.Equal(t, head, status.LatestSequence)
			require.Equal(t, "run-1", status.RunID)
			require.JSONEq(t, `{"n":1}`, string(status.State))
		})
	}
}

func TestStreamHeartbeat(t *testing.T) {
	t.Parallel()
	a := newAPI(t, func(o *httpapi.Options) { o.Heartbeat = 1e6 }) // 1 ms
	a.append("s", created("s"), text("s", "a"))
	s := a.stream("/sse?sessionId=s")
	_, got := s.chunk() // on a slow machine a comment may come first
	require.Equal(t, "a", got)
	for range 3 {
		require.Equal(t, sseEvent{comment: "heartbeat"}, s.next())
	}
	a.append("s", text("s", "b"), ended("s", "1"))
	_, texts, _ := s.rest()
	require.Equal(t, []string{"b"}, texts)
}

// TestStreamOddPayloads: what other writers stored goes through if it is JSON.
func TestStreamOddPayloads(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	raw := func(typ, payload string) eventlog.Entry {
		return eventlog.Entry{Envelope: eventlog.Envelope{Kind: eventlog.KindChunk, Type: typ, Agent: "s"}, Payload: []byte(payload)}
	}
	a.append("s", created("s"),
		raw("from_tomorrow", "{\r\n  \"type\": \"from_tomorrow\",\n\n  \"deep\": [1,\n2]\n}"),
		raw("text_delta", `{"type":"text_delta","delta":7}`),
		raw("broken", "event: end\ndata: {}\n\n"),
		raw("number", `5`),
		eventlog.Entry{Envelope: eventlog.Envelope{Kind: "", Agent: "s"}, Payload: []byte("hello")},
		text("s", "<&>\u2028"), ended("s", `1`))
	s := a.stream("/sse?sessionId=s")
	require.Equal(t, `{"type":"chunk","chunk":{"type":"from_tomorrow","deep":[1,2]},"sequence":2}`, s.next().data)
	require.Equal(t, `{"type":"chunk","chunk":{"type":"text_delta","delta":7},"sequence":3}`, s.next().data)
	require.Equal(t, `{"type":"chunk","chunk":5,"sequence":5}`, s.next().data)
	_, got := s.chunk()
	require.Equal(t, "<&>\u2028", got)
	require.Equal(t, "end", s.next().name)
}

func TestStreamEndsWithServer(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.append("s", created("s"), text("s", "a"))
	s := a.stream("/sse?sessionId=s")
	_, got := s.chunk()
	require.Equal(t, "a", got)
	a.srv.Close()
	a.srv.Close()
	farewell, err := s.event()
	require.NoError(t, err)
	require.Regexp(t, "^[0-9]{3,4}$", farewell.retry, "each comes back at a different time")
	_, err = s.event()
	require.ErrorIs(t, err, io.EOF, "no end event: reconnect")
	a.get("/sse?sessionId=s").failed(t, 503, api.CodeUnavailable)
	require.Equal(t, 503, a.get("/readyz").status)
	require.Equal(t, 200, a.get("/status?sessionId=s").status)
	require.NotContains(t, a.logs.String(), "broke off")
}

func TestStreamEndsWithLog(t *testing.T) {
	a := newAPI(t)
	a.append("s", created("s"), text("s", "a"))
	s := a.stream("/sse?sessionId=s")
	_, got := s.chunk()
	require.Equal(t, "a", got)
	require.NoError(t, a.log.Close())
	_, err := s.event()
	require.ErrorIs(t, err, io.EOF)
	a.get("/sse?sessionId=s").failed(t, 503, api.CodeUnavailable)
	a.get("/status?sessionId=s").failed(t, 503, api.CodeUnavailable)
	require.Equal(t, 503, a.get("/readyz").status)
	require.Equal(t, 200, a.get("/healthz").status)
}

// TestStreamLong goes through several pages of the log and many flushes.
func TestStreamLong(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.append("s", created("s"))
	const n = 3000
	var want []string
	for i := 0; i < n; i += 500 {
		var batch []eventlog.Entry
		for j := range 500 {
			batch = append(batch, text("s", fmt.Sprint(i+j)))
			want = append(want, fmt.Sprint(i+j))
		}
		a.append("s", batch...)
	}
	a.append("s", ended("s", `1`))
	_, texts, _ := a.stream("/sse?sessionId=s").rest()
	require.Equal(t, want, texts)
}
