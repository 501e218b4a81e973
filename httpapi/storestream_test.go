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
	"github.com/helixd/helixd/projector"
	"github.com/helixd/helixd/snapshot"
)

// storeEvent is an event of GET /sessions/{id}/stream as a client reads it.
type storeEvent struct {
	id              string
	Type            string
	Chunk           struct{ Type, Delta string }
	Sequence        uint64
	FinalOutput     json.RawMessage
	Error           string
	Status          string
	TruncatedAtStep *int
	AtSequence      uint64
}

// store reads the next event, comments left out.
func (s *stream) store() storeEvent {
	s.t.Helper()
	raw := s.next()
	for raw.comment != "" {
		raw = s.next()
	}
	require.Empty(s.t, raw.name, "events have no names")
	e := storeEvent{id: raw.id}
	require.NoError(s.t, json.Unmarshal([]byte(raw.data), &e), raw.data)
	switch e.Type {
	case "chunk":
		require.Equal(s.t, fmt.Sprint(e.Sequence), e.id)
	case "status", "truncated":
		require.Empty(s.t, e.id, "they move no cursor")
	}
	return e
}

// storeChunks reads n chunks and returns what they say.
func (s *stream) storeChunks(n int) (texts []string) {
	s.t.Helper()
	for range n {
		e := s.store()
		require.Equal(s.t, "chunk", e.Type)
		texts = append(texts, e.said())
	}
	return texts
}

func (e storeEvent) said() string {
	if e.Chunk.Type == "text_delta" {
		return e.Chunk.Delta
	}
	return e.Chunk.Type
}

// storeRest reads to the last event and returns the chunks before it.
func (s *stream) storeRest() (seqs []uint64, texts []string, last storeEvent) {
	s.t.Helper()
	for {
		e := s.store()
		if e.Type == "chunk" {
			seqs, texts = append(seqs, e.Sequence), append(texts, e.said())
			continue
		}
		require.Contains(s.t, []string{"end", "fail"}, e.Type)
		_, err := s.event()
		require.ErrorIs(s.t, err, io.EOF, "the stream is closed after it")
		return seqs, texts, e
	}
}

func storeTarget(session string) string { return "/sessions/" + session + "/stream" }

// TestStoreStreamWire compares every byte with the documented encoding.
func TestStoreStreamWire(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.append("s", created("s"), text("s", "Hello"), text("s", " world"), ended("s", `{"x":"<1>"}`))
	const one = `{"type":"text_delta","delta":"%s","agentId":"s","agentType":"writer","timestamp":1,"step":1}`
	got := a.get(storeTarget("s"))
	require.Equal(t, 200, got.status)
	require.Equal(t, "text/event-stream", got.header.Get("Content-Type"))
	require.Equal(t, "id: 2\ndata: {\"type\":\"chunk\",\"chunk\":"+fmt.Sprintf(one, "Hello")+",\"sequence\":2}\n\n"+
		"id: 3\ndata: {\"type\":\"chunk\",\"chunk\":"+fmt.Sprintf(one, " world")+",\"sequence\":3}\n\n"+
		"id: 4\ndata: {\"type\":\"end\",\"finalOutput\":{\"x\":\"<1>\"}}\n\n", got.body)
	require.Equal(t, "id: 4\ndata: {\"type\":\"end\",\"finalOutput\":{\"x\":\"<1>\"}}\n\n", a.get(storeTarget("s"), "Last-Event-ID", "4").body)

	head := a.request("HEAD", storeTarget("s"), "")
	require.Equal(t, 200, head.status)
	require.Empty(t, head.body)

	a.append("silent", created("silent"), factOf("silent", &fact.StreamEnd{StreamID: "silent", Timestamp: 1}))
	require.Contains(t, a.get(storeTarget("silent")).body, "\ndata: {\"type\":\"end\"}\n\n")
	a.append("broken", created("broken"), factOf("broken", &fact.StreamFailed{Error: "it broke", Base: factBase("broken")}))
	require.Contains(t, a.get(storeTarget("broken")).body, "\ndata: {\"type\":\"fail\",\"error\":\"it broke\"}\n\n")
}

// TestStoreStreamCursors resumes at every sequence of a log with truncated
// records and several turns.
func TestStoreStreamCursors(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	seqs := a.append("s", created("s"), requested("s", "run-1"), text("s", "a"), text("s", "b"), text("s", "c"))
	a.append("other", created("other"), text("other", "a gap"))
	a.append("s", factOf("s", &eventlog.Truncated{
		Reason: eventlog.ResyncRetry, Ranges: []eventlog.Range{{AgentID: "s", From: seqs[3], To: seqs[4]}}, Base: factBase("s"),
	}), text("s", "B"), factOf("s", &fact.StreamPaused{Base: factBase("s")}), ended("s", `"one"`),
		requested("s", "run-2"), text("s", "second turn"), ended("s", `"two"`))
	head, err := a.log.Head(a.ctx(), "s")
	require.NoError(t, err)
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
			a.stream(storeTarget("s") + "?fromSequence=" + n),
			a.stream(storeTarget("s"), "Last-Event-ID", n),
			a.stream(storeTarget("s"), "X-Resume-From-Sequence", n, "Last-Event-ID", "0"),
			a.stream(storeTarget("s")+"?fromSequence=0", "Last-Event-ID", n),
		} {
			got, _, end := s.storeRest()
			require.Equal(t, want, got, "from %d", from)
			require.Equal(t, "end", end.Type)
			require.JSONEq(t, `"two"`, string(end.FinalOutput))
		}
	}
	body := a.get(fmt.Sprint(storeTarget("s"), "?fromSequence=", head+1)).failed(t, 416, api.CodeCursorAhead)
	require.Equal(t, map[string]any{"head": float64(head)}, body.Detail)
	a.get(storeTarget("s")+"?fromSequence=x").failed(t, 400, api.CodeInvalidRequest)
	a.get(storeTarget("s"), "Last-Event-ID", "x").failed(t, 400, api.CodeInvalidRequest)
	a.get(storeTarget("%00")).failed(t, 400, api.CodeInvalidRequest)
	a.get(storeTarget("nobody")).failed(t, 404, api.CodeNotFound)
	require.Equal(t, "GET, HEAD", a.post(storeTarget("s"), "{}").header.Get("Allow"))
}

// TestStoreStreamPauses: a pause is sent and ends nothing; an end ends the stream; a new
// turn continues with it.
func TestStoreStreamPauses(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.append("s", created("s"), requested("s", "run-1"), text("s", "a"))
	streams := eventlog.NewStreams(a.log)
	s := a.stream(storeTarget("s"))
	require.Equal(t, []string{"a"}, s.storeChunks(1))
	require.NoError(t, streams.ResumeStream(a.ctx(), "s"), "no change")
	require.NoError(t, streams.PauseStream(a.ctx(), "s", "wait"))
	require.Equal(t, "paused", s.store().Status)
	require.NoError(t, streams.PauseStream(a.ctx(), "s", "wait longer"))
	a.append("s", factOf("child", &fact.StreamEnd{StreamID: "child", Timestamp: 1}), text("s", "while it waits"))
	require.Equal(t, []string{"while it waits"}, s.storeChunks(1), "a second pause is no change, and a child's end not the root's")
	fresh := a.stream(storeTarget("s"))
	require.Equal(t, []string{"a", "while it waits"}, fresh.storeChunks(2), "a finished turn is not sent")
	require.NoError(t, streams.ResumeStream(a.ctx(), "s"))
	a.append("s", factOf("s", &fact.StreamPaused{Base: factBase("s")}), requested("s", "run-2"), text("s", "b"))
	for _, s := range []*stream{s, fresh} {
		for _, want := range []string{"active", "paused", "active"} {
			e := s.store()
			require.Equal(t, "status", e.Type)
			require.Equal(t, want, e.Status)
		}
		require.Equal(t, []string{"b"}, s.storeChunks(1))
	}
	require.NoError(t, streams.EndStream(a.ctx(), "s", json.RawMessage(`1`)))
	for _, s := range []*stream{s, fresh, a.stream(storeTarget("s"), "Last-Event-ID", "3")} {
		_, _, end := s.storeRest()
		require.Equal(t, "end", end.Type)
		require.JSONEq(t, `1`, string(end.FinalOutput))
	}

	a.append("s", requested("s", "run-3"))
	again := a.stream(storeTarget("s"))
	require.Equal(t, []string{"a", "while it waits", "b"}, again.storeChunks(3), "it reads on")
	a.append("s", text("s", "third turn"))
	require.Equal(t, []string{"third turn"}, again.storeChunks(1))
	require.NoError(t, streams.FailStream(a.ctx(), "s", "it broke"))
	_, _, end := again.storeRest()
	require.Equal(t, "fail", end.Type)
	require.Equal(t, "it broke", end.Error)
	head, err := a.log.Head(a.ctx(), "s")
	require.NoError(t, err)
	require.Equal(t, fmt.Sprint(head), end.id)
	require.NotContains(t, a.logs.String(), "ERROR")
}

// TestStoreStreamTruncated: an attached client is notified of what a clean-up has
// truncated, and gets the rest; a client that comes later gets only the rest.
func TestStoreStreamTruncated(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	step := func(n int, s string) eventlog.Entry {
		b := base("s")
		b.Step = n
		return chunk(&eventlog.TextDelta{Delta: s, Base: b})
	}
	seqs := a.append("s", created("s"), requested("s", "run-1"), step(1, "keep"), step(2, "die"), step(3, "die too"))
	attached := a.stream(storeTarget("s"))
	require.Equal(t, []string{"keep", "die", "die too"}, attached.storeChunks(3))
	_, err := eventlog.CleanupToStep(a.ctx(), a.log, "s", "s", 1, seqs[1])
	require.NoError(t, err)
	a.append("s", step(2, "survivor"))
	one := 1
	require.Equal(t, storeEvent{Type: "truncated", TruncatedAtStep: &one, AtSequence: seqs[4]}, attached.store())
	require.Equal(t, []string{"survivor"}, attached.storeChunks(1))
	fresh := a.stream(storeTarget("s"))
	require.Equal(t, []string{"keep", "survivor"}, fresh.storeChunks(2))

	// A marker that was not written by step: those of the loop.
	doomed := a.append("s", step(2, "die"))[0]
	for _, s := range []*stream{attached, fresh} {
		require.Equal(t, []string{"die"}, s.storeChunks(1))
	}
	a.append("s", factOf("s", &eventlog.Truncated{
		Reason: eventlog.ResyncRetry, AtSequence: doomed, Ranges: []eventlog.Range{{AgentID: "s", From: doomed, To: doomed}},
		Base: factBase("s"),
	}), ended("s", `1`))
	zero := 0
	for _, s := range []*stream{attached, fresh} {
		require.Equal(t, storeEvent{Type: "truncated", TruncatedAtStep: &zero, AtSequence: doomed}, s.store(), "no step was committed")
		_, texts, end := s.storeRest()
		require.Empty(t, texts)
		require.Equal(t, "end", end.Type)
	}
	_, texts, _ := a.stream(storeTarget("s")).storeRest()
	require.Equal(t, []string{"keep", "survivor"}, texts)
}

// TestStoreStreamRolledBack: a rollback is sent with the steps that it keeps; if it goes
// back to where the stream had ended, the stream ends.
func TestStoreStreamRolledBack(t *testing.T) {
	t.Parallel()
	a := newAPIOn(t, newLog(t), waitingAgents())
	a.begin("s", "asker")
	attached := a.stream(storeTarget("s"))
	require.Equal(t, 200, a.post("/resume", `{"sessionId":"s","mode":"with_confirmation","approved":true}`).status)
	var statuses []string
	e := attached.store()
	for ; e.Type != "end"; e = attached.store() {
		if e.Type == "status" {
			statuses = append(statuses, e.Status)
		}
	}
	require.Equal(t, []string{"active"}, statuses, "it was paused when the client came")
	require.JSONEq(t, `"removed"`, string(e.FinalOutput))

	atEnd := a.status("s").LatestSequence
	before, err := snapshot.New(a.log, nil).At(a.ctx(), "s", atEnd)
	require.NoError(t, err)
	restore, err := projector.RestoreAt(before)
	require.NoError(t, err)
	a.append("s", requested("s", "again"), text("s", "second turn"))
	attached = a.stream(fmt.Sprint(storeTarget("s"), "?fromSequence=", atEnd))
	require.Equal(t, []string{"second turn"}, attached.storeChunks(1))
	marker, err := eventlog.Rollback(a.ctx(), a.log, "s", atEnd, eventlog.RollbackOptions{Restore: restore})
	require.NoError(t, err)
	two := 2
	require.Equal(t, storeEvent{Type: "truncated", TruncatedAtStep: &two, AtSequence: marker.AtSequence}, attached.store())
	_, texts, end := attached.storeRest()
	require.Empty(t, texts)
	require.JSONEq(t, `"removed"`, string(end.FinalOutput))
}

func TestStoreStreamHeartbeat(t *testing.T) {
	t.Parallel()
	a := newAPI(t, func(o *httpapi.Options) { o.Heartbeat = 1e6 }) // 1 ms
	a.append("s", created("s"))
	s := a.stream(storeTarget("s"))
	for range 3 {
		require.Equal(t, sseEvent{comment: "heartbeat"}, s.next())
	}
	a.srv.Close()
	var err error
	for err == nil {
		var e sseEvent
		e, err = s.event()
		require.Empty(t, e.data, "no end event: reconnect")
	}
	require.ErrorIs(t, err, io.EOF)
	a.get(storeTarget("s")).failed(t, 503, api.CodeUnavailable)
}

// TestStoreStreamLong goes through several pages of the log.
func TestStoreStreamLong(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.append("s", created("s"))
	var want []string
	for i := range 6 {
		var batch []eventlog.Entry
		for j := range 500 {
			batch = append(batch, text("s", fmt.Sprint(i, j)))
			want = append(want, fmt.Sprint(i, j))
		}
		a.append("s", batch...)
	}
	a.append("s", ended("s", `1`))
	_, texts, _ := a.stream(storeTarget("s")).storeRest()
	require.Equal(t, want, texts)
}
