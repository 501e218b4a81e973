package client_test

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/client"
)

// However the connections are cut, each chunk comes once and in order.
func TestAStreamAcrossCuts(t *testing.T) {
	s := newServer(t)
	s.written("s", 200)
	_, err := s.client().End(ctxOf(t), "s", nil, client.AppendOptions{})
	require.NoError(t, err)
	want, end := s.stream(s.client(), "s", 0)
	require.Len(t, want, 200)
	require.IsType(t, client.EndEvent{}, end)

	for _, step := range []int{1000, 1001, 1777, 4096} {
		p, url := newCutter(t, s, func(int) int { return step }) // at least one event more each time
		got, last := s.stream(quick(url), "s", 0)
		require.Equal(t, want, got, "cut after %d bytes", step)
		require.Equal(t, end, last)
		require.Greater(t, int(p.accepted.Load()), 5)
	}
}

// A stream continues live after a cut.
func TestALiveStreamAcrossCuts(t *testing.T) {
	s := newServer(t)
	ctx := ctxOf(t)
	_, url := newCutter(t, s, func(int) int { return 1500 })
	s.written("s", 1)
	var got []string
	for e, err := range quick(url).Stream(ctx, "s", 0) {
		require.NoError(t, err)
		chunk, ok := e.(client.ChunkEvent)
		if !ok {
			break
		}
		got = append(got, chunk.Chunk.(*eventlog.TextDelta).Delta)
		if n := len(got); n < 40 {
			_, err = s.client().AppendChunks(ctx, "s", []eventlog.Chunk{text("s", strconv.Itoa(n))}, client.AppendOptions{})
		} else {
			_, err = s.client().End(ctx, "s", nil, client.AppendOptions{})
		}
		require.NoError(t, err)
	}
	want := []string{"text 0 of 1"}
	for n := 1; n < 40; n++ {
		want = append(want, strconv.Itoa(n))
	}
	require.Equal(t, want, got)
}

func TestAStreamGivesUp(t *testing.T) {
	s := newServer(t)
	at := s.written("s", 20)
	p, url := newCutter(t, s, func(n int) int { return 1000 * max(0, 1-n) })
	c := client.New(url, &client.Options{RetryBase: time.Microsecond, MaxRetries: 2})
	var seqs []uint64
	var last error
	for e, err := range c.Stream(ctxOf(t), "s", 0) {
		if last = err; err == nil {
			seqs = append(seqs, e.(client.ChunkEvent).Sequence)
		}
	}
	require.Error(t, last)
	require.True(t, errors.Is(last, client.ErrStreamDropped) || errors.Is(last, client.ErrUnreachable), "%v", last)
	require.NotContains(t, last.Error(), "127.0.0.1")
	require.NotEmpty(t, seqs, "what came before is there")
	for i, seq := range seqs {
		require.Equal(t, at.FirstSequence+uint64(i), seq)
	}
	require.GreaterOrEqual(t, int(p.accepted.Load()), 3)
}

func TestAStreamThatIsRefused(t *testing.T) {
	s := newServer(t)
	at := s.written("s", 2)
	c := s.client()
	for session, from := range map[string]uint64{"nobody": 0, "s": at.LastSequence + 1} {
		n := 0
		for e, err := range c.Stream(ctxOf(t), session, from) {
			require.Nil(t, e)
			require.Error(t, err)
			n++
			var refusal *client.Error
			require.ErrorAs(t, err, &refusal)
			if session == "s" {
				require.Equal(t, api.CodeCursorAhead, refusal.Code)
				require.Equal(t, `{"head":`+strconv.FormatUint(at.LastSequence, 10)+`}`, string(refusal.Detail))
			}
		}
		require.Equal(t, 1, n)
	}
	require.Equal(t, 2, s.got("/sse"), "neither is tried again")

	s.instead(func(w http.ResponseWriter, _ *http.Request) bool {
		_, _ = w.Write([]byte("<html>"))
		return true
	})
	for _, err := range c.Stream(ctxOf(t), "s", 0) {
		require.ErrorIs(t, err, client.ErrMalformed)
	}
}

func TestAStreamEndsWithItsContext(t *testing.T) {
	s := newServer(t)
	s.written("s", 1)
	cause := errors.New("the user went home")
	ctx, cancel := context.WithCancelCause(ctxOf(t))
	defer cancel(nil)
	var last error
	for _, last = range s.client().Stream(ctx, "s", 0) {
		cancel(cause)
	}
	require.Equal(t, cause, last)
	for _, err := range s.client().Stream(ctx, "s", 0) {
		require.Equal(t, cause, err)
	}
}

// An iteration that is left early leaves nothing: the server's side ends, too, and so
// does every goroutine.
func TestAnIterationThatIsLeft(t *testing.T) {
	s := newServer(t)
	s.written("s", 300)
	gone := make(chan struct{}, 10)
	s.instead(func(_ http.ResponseWriter, r *http.Request) bool {
		context.AfterFunc(r.Context(), func() { gone <- struct{}{} })
		return false
	})
	before := goleak.IgnoreCurrent()
	transport := &http.Transport{}
	c := client.New(s.http.URL, &client.Options{HTTPClient: &http.Client{Transport: transport}})
	for range c.Stream(ctxOf(t), "s", 0) {
		break
	}
	<-gone
	for range c.Records(ctxOf(t), "s", client.RecordRange{}) {
		break
	}
	<-gone
	for range c.AllSessions(ctxOf(t), client.SessionFilter{}) {
		break
	}
	transport.CloseIdleConnections()
	require.Eventually(t, func() bool {
		return goleak.Find(before, goleak.IgnoreAnyFunction("net/http.(*conn).serve")) == nil
	}, within, time.Millisecond)
}
