package client_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/client"
)

// A client that is cut off continues after its last part, and gets no part twice.
func TestAChatThatIsCut(t *testing.T) {
	s := newServer(t)
	close(s.open)
	c, ctx := s.client(), ctxOf(t)
	whole := all(t, c.Chat(ctx, client.ChatRequest{ID: "s", AgentType: "gated", Messages: []api.UIMessage{client.UserMessage("u", "hi")}}))
	require.Equal(t, "first, second", said(t, whole))

	cuts := 0
	for cut := 600; cut < 1600; cut += 50 { // the headers are shorter
		p, url := newCutter(t, s, func(int) int { return cut })
		var got []client.Part
		var last error
		for part, err := range quick(url).ChatStream(ctx, "s", client.ChatPosition{Resync: true}) {
			if last = err; err != nil {
				continue
			}
			got = append(got, part)
		}
		if p.accepted.Load() == 1 && last == nil {
			continue // it was not cut
		}
		require.ErrorIs(t, last, client.ErrStreamDropped, "cut after %d bytes", cut)
		require.EqualValues(t, 1, p.accepted.Load(), "going on is the caller's")
		if len(got) < 3 { // data-stream-resync and start
			continue
		}
		cuts++
		at := got[len(got)-1]
		rest := all(t, c.ChatStream(ctx, "s", client.ChatPosition{From: at.Sequence, Frames: at.Frames}))
		require.Equal(t, whole, append(got[1:], rest...), "cut after %d bytes", cut)
	}
	require.Greater(t, cuts, 3)
}

// What a user says is said once, whatever is lost.
func TestAChatIsNotRepeated(t *testing.T) {
	s := newServer(t)
	for name, answer := range map[string]http.HandlerFunc{
		"a lost answer":    func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"a server's error": func(w http.ResponseWriter, _ *http.Request) { answers(w, 503, "") },
	} {
		s.instead(func(w http.ResponseWriter, r *http.Request) bool {
			answer(w, r)
			return true
		})
		n := 0
		for _, err := range s.client().Chat(ctxOf(t), client.ChatRequest{ID: "s"}) {
			require.Error(t, err)
			n++
		}
		require.Equal(t, 1, n)
		require.Equal(t, 1, s.got("/chat"), name)
	}
	s.instead(func(w http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/stream") {
			answers(w, 503, "")
			s.instead(nil)
			return true
		}
		return false
	})
	require.Empty(t, all(t, s.client().ChatStream(ctxOf(t), "s", client.ChatPosition{})))
	require.Equal(t, 2, s.got("/chat/{id}/stream"), "asking for the stream is")
}

func TestChatPartsThatAreNone(t *testing.T) {
	s := newServer(t)
	for body, want := range map[string]error{
		"data: {\"type\":\"start\"}\n\n":                        client.ErrStreamDropped,
		"data: {\"type\":\"start\"}\n\ndata: <html>\n\n":        client.ErrMalformed,
		"data: {\"type\":\"start\"}\n\ndata: [DONE]\n\ndata: x": nil,
	} {
		s.instead(func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = w.Write([]byte(body))
			return true
		})
		n := 0
		var last error
		for _, last = range s.client().ChatStream(ctxOf(t), "s", client.ChatPosition{}) {
			if last == nil {
				n++
			}
		}
		require.ErrorIs(t, last, want)
		require.Equal(t, 1, n)
	}
}

func TestAStoreStreamAcrossCuts(t *testing.T) {
	s := newServer(t)
	s.written("s", 200)
	_, err := s.client().Fail(ctxOf(t), "s", "it broke", client.AppendOptions{})
	require.NoError(t, err)
	for _, step := range []int{1000, 1777} {
		p, url := newCutter(t, s, func(int) int { return step })
		var got []string
		var last client.StoreEvent
		for e, err := range quick(url).StoreStream(ctxOf(t), "s", 0) {
			require.NoError(t, err)
			require.Nil(t, last)
			if chunk, ok := e.(client.StoreChunk); ok {
				got = append(got, chunk.Chunk.(*eventlog.TextDelta).Delta)
			} else {
				last = e
			}
		}
		require.Len(t, got, 200)
		for i, chunk := range texts("s", 200) {
			require.Equal(t, chunk.(*eventlog.TextDelta).Delta, got[i])
		}
		require.Equal(t, client.StoreFail{Error: "it broke"}, last)
		require.Greater(t, int(p.accepted.Load()), 5)
	}
}

func TestAStoreStreamTellsOfTruncation(t *testing.T) {
	s := newServer(t)
	at := s.written("s", 5)
	c, ctx := s.client(), ctxOf(t)
	for e, err := range c.StoreStream(ctx, "s", at.LastSequence-1) {
		require.NoError(t, err)
		if _, ok := e.(client.StoreChunk); ok {
			_, err := c.Rollback(ctx, "s", client.Target{Sequence: at.FirstSequence})
			require.NoError(t, err)
			continue
		}
		require.Equal(t, client.StoreTruncated{AtSequence: at.LastSequence}, e)
		break
	}
	for _, err := range c.StoreStream(ctx, "nobody", 0) {
		refused(t, err, 404, "NOT_FOUND")
	}
}
