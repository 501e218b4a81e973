package remotehttp_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/remote"
	"github.com/helixd/helixd/agentloop/remote/remotehttp"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/integration/testkit"
)

func TestAStreamYieldsItsEvents(t *testing.T) {
	s := newServer(t)
	later := `{"type":"later_kind",  "x":1,"agentId":"s"}`
	s.on("/sse", streams(": heartbeat\n\n", text(3, "a")[:20], text(3, "a")[20:],
		"event: rewound\ndata: {\"at\":1}\n\n", // of a later version
		"event: chunk\ndata: {\"chunk\":"+later+",\ndata: \"sequence\":9}\n\n",
		"id: 11\nevent: chunk\ndata: {\"chunk\":"+rawText("b")+"}\n\n",
		"data: {\"type\":\"chunk\",\"sequence\":12,\"chunk\":"+strings.Replace(rawText("c?"), "?", "\xff", 1)+"}\n\n", end, text(99, "after the end")))
	h := remotehttp.New(s.http.URL, nil)

	var raw []string
	got := collect(t, func(yield func(remote.Event, error) bool) {
		for e, err := range h.Stream(ctxOf(t), "s", 2) {
			if c, ok := e.(remote.ChunkEvent); ok {
				raw = append(raw, string(c.Raw))
			}
			if !yield(e, err) {
				return
			}
		}
	})
	require.NoError(t, got.err)
	require.Equal(t, []uint64{3, 9, 11, 12}, got.seqs)
	require.Equal(t, []string{"a", "later_kind", "b", "c\ufffd"}, got.texts)
	require.Equal(t, []string{rawText("a"), later, rawText("b"), strings.Replace(rawText("c?"), "?", "\ufffd", 1)}, raw, "as it came, but valid UTF-8")
	require.Equal(t, remote.EndEvent{Output: json.RawMessage("42"), State: json.RawMessage(`{"n":1}`)}, got.last)
	require.Equal(t, []string{sseURI("s", "2")}, s.from())
	require.Equal(t, "text/event-stream", s.got("/sse")[0].header.Get("Accept"))
}

func TestLastEvents(t *testing.T) {
	for data, want := range map[string]remote.Event{
		"event: end\ndata: {\"type\":\"end\"}":                                          remote.EndEvent{},
		"event: end\ndata: {\"status\":\"paused\"}":                                     remote.EndEvent{Status: remote.StatusPaused},
		"event: end\ndata: {\"status\":\"interrupted\"}":                                remote.EndEvent{Status: remote.StatusInterrupted},
		"event: error\ndata: {\"type\":\"error\",\"error\":\"e\"}":                      remote.ErrorEvent{Error: "e"},
		"event: error\ndata: {\"type\":\"error\",\"error\":\"e\",\"recoverable\":true}": remote.ErrorEvent{Error: "e", Recoverable: true},
		"data: {\"type\":\"error\",\"error\":\"e\"}":                                    remote.ErrorEvent{Error: "e"},
	} {
		s := newServer(t)
		s.on("/sse", streams(text(1, "a"), data+"\n\n"))
		got := collect(t, remotehttp.New(s.http.URL, nil).Stream(ctxOf(t), "s", 0))
		require.NoError(t, got.err)
		require.Equal(t, []uint64{1}, got.seqs)
		require.Equal(t, want, got.last)
	}
}

func TestAStreamWithoutAnEndHasDropped(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"in the middle of an event": drops(text(1, "a"), text(2, "b")[:30]),
		"between two events":        drops(text(1, "a")),
		"with a clean end":          streams(text(1, "a")),
		"before the empty line":     streams(text(1, "a"), strings.TrimSuffix(end, "\n")),
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			s.on("/sse", answer)
			got := collect(t, remotehttp.New(s.http.URL, nil).Stream(ctxOf(t), "s", 0))
			require.ErrorIs(t, got.err, remote.ErrStreamDropped)
			require.True(t, remote.Retryable(got.err))
			require.NotContains(t, got.err.Error(), "127.0.0.1")
			require.Equal(t, []string{"a"}, got.texts, "what came whole")
			require.Nil(t, got.last)
			require.Len(t, s.got("/sse"), 1, "connecting again is the caller's")
		})
	}
}

func TestConnectingIsRetried(t *testing.T) {
	s := newServer(t)
	s.on("/sse", says(500, ""), says(503, ""), streams(text(1, "a"), end))
	got := collect(t, remotehttp.New(s.http.URL, quick()).Stream(ctxOf(t), "s", 0))
	require.NoError(t, got.err)
	require.Equal(t, []string{"a"}, got.texts)
	require.Len(t, s.got("/sse"), 3)

	s.on("/sse", says(416, `{"error":"ahead","code":"CURSOR_AHEAD"}`))
	got = collect(t, remotehttp.New(s.http.URL, quick()).Stream(ctxOf(t), "s", 7))
	require.Equal(t, &remote.Error{Status: 416, Code: "CURSOR_AHEAD", Message: "ahead"}, got.err)
}

func TestGarbageIsAnError(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"a page":                   says(200, "<html>"),
		"no content":               says(204, ""),
		"not JSON":                 streams("event: chunk\ndata: {\"chunk\n\n"),
		"no sequence":              streams("event: chunk\ndata: {\"chunk\":" + rawText("x") + "}\n\n"),
		"a negative sequence":      streams("event: chunk\ndata: {\"sequence\":-1,\"chunk\":" + rawText("x") + "}\n\n"),
		"no chunk":                 streams("event: chunk\ndata: {\"sequence\":1}\n\n"),
		"a chunk without a type":   streams("event: chunk\ndata: {\"sequence\":1,\"chunk\":{}}\n\n"),
		"a chunk of another shape": streams("event: chunk\ndata: {\"sequence\":1,\"chunk\":{\"type\":\"text_delta\",\"delta\":1}}\n\n"),
		"an end that is none":      streams("event: end\ndata: [DONE]\n\n"),
		"an error that is none":    streams("event: error\ndata: {\"error\":{}}\n\n"),
		"no kind":                  streams("data: [DONE]\n\n"),
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			s.on("/sse", answer)
			got := collect(t, remotehttp.New(s.http.URL, quick()).Stream(ctxOf(t), "s", 0))
			require.ErrorIs(t, got.err, remote.ErrMalformed)
			require.False(t, remote.Retryable(got.err), "it would be the same again")
			require.Len(t, s.got("/sse"), 1)
		})
	}
}

func TestAnAnswerThatIsNoStreamIsClosed(t *testing.T) {
	s := newServer(t)
	left := make(chan struct{})
	s.on("/sse", func(w http.ResponseWriter, r *http.Request) {
		says(200, "<html>")(w, r)
		http.NewResponseController(w).Flush()
		<-r.Context().Done()
		close(left)
	})
	got := collect(t, remotehttp.New(s.http.URL, nil).Stream(ctxOf(t), "s", 0))
	require.ErrorIs(t, got.err, remote.ErrMalformed)
	<-left
}

func TestLargeEvents(t *testing.T) {
	testkit.Sequential(t)
	s := newServer(t)
	h := remotehttp.New(s.http.URL, nil)
	largest := strings.Repeat("x", eventlog.MaxPayload-len(rawText("")))
	s.on("/sse", streams(text(1, largest), end))
	got := collect(t, h.Stream(ctxOf(t), "s", 0))
	require.NoError(t, got.err)
	require.Len(t, got.texts[0], len(largest))

	s.on("/sse", streams(text(1, largest+"x"), end))
	got = collect(t, h.Stream(ctxOf(t), "s", 0))
	require.ErrorIs(t, got.err, remote.ErrTooLarge)

	half := strings.Repeat("x", eventlog.MaxPayload-2)
	s.on("/sse", streams(`event: end`+"\n"+`data: {"output":"`+half+`","state":"`+half+`"}`+"\n\n"))
	got = collect(t, h.Stream(ctxOf(t), "s", 0))
	require.NoError(t, got.err)
	require.Len(t, got.last.(remote.EndEvent).State, eventlog.MaxPayload)

	left := make(chan struct{})
	s.on("/sse", func(w http.ResponseWriter, r *http.Request) {
		defer close(left)
		streams(text(1, "a"), "data: ")(w, r)
		block := strings.Repeat("x", 1<<20)
		for {
			if _, err := io.WriteString(w, block); err != nil {
				return
			}
		}
	})
	got = collect(t, h.Stream(ctxOf(t), "s", 0))
	require.ErrorIs(t, got.err, remote.ErrTooLarge, "a line without end is not read to it")
	require.Equal(t, []string{"a"}, got.texts)
	<-left
}

func TestAConsumerThatLeavesClosesTheConnection(t *testing.T) {
	s := newServer(t)
	left := make(chan struct{})
	s.on("/sse", func(w http.ResponseWriter, r *http.Request) {
		streams(text(1, "a"), text(2, "b"))(w, r)
		<-r.Context().Done()
		close(left)
	})
	for e, err := range remotehttp.New(s.http.URL, nil).Stream(ctxOf(t), "s", 0) {
		require.NoError(t, err)
		require.NotNil(t, e)
		break
	}
	<-left
}

func TestAStreamEndsWithItsContext(t *testing.T) {
	s := newServer(t)
	s.on("/sse", func(w http.ResponseWriter, r *http.Request) {
		streams(text(1, "a"))(w, r)
		<-r.Context().Done()
	})
	cause := errors.New("the parent was stopped")
	ctx, cancel := context.WithCancelCause(ctxOf(t))
	defer cancel(nil)
	var last error
	for _, last = range remotehttp.New(s.http.URL, nil).Stream(ctx, "s", 0) {
		cancel(cause)
	}
	require.Equal(t, cause, last)
}
