package remotehttp_test

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/remote"
	"github.com/helixd/helixd/agentloop/remote/remotehttp"
)

func follow(t *testing.T, s *server, from uint64, retries int) seen {
	t.Helper()
	h := remotehttp.New(s.http.URL, &remotehttp.Options{MaxRetries: -1})
	return collect(t, remote.Follow(ctxOf(t), h, "s", from, remote.FollowOptions{Retries: retries, RetryBase: 1}))
}

var completed = remote.EndEvent{Output: json.RawMessage("42"), State: json.RawMessage(`{"n":1}`)}

func TestFollowGoesOnWhereAConnectionDropped(t *testing.T) {
	s := newServer(t)
	s.on("/sse",
		drops(text(3, "a"), text(5, "b"), text(6, "lost")[:40]),
		says(502, ""),
		streams(text(6, "c")),
		streams(text(8, "d"), end))
	s.on("/status", status("running", 8))
	got := follow(t, s, 2, 0)
	require.NoError(t, got.err)
	require.Equal(t, []uint64{3, 5, 6, 8}, got.seqs)
	require.Equal(t, []string{"a", "b", "c", "d"}, got.texts)
	require.Equal(t, completed, got.last)
	require.Equal(t, []string{sseURI("s", "2"), sseURI("s", "5"), sseURI("s", "5"), sseURI("s", "6")}, s.from())
	require.Len(t, s.got("/status"), 3, "asked between two connections")
}

func TestFollowYieldsAChunkOnce(t *testing.T) {
	s := newServer(t)
	s.on("/sse", // this server restarts each time
		drops(text(1, "a"), text(1, "a"), text(2, "b")),
		streams(text(1, "a"), text(2, "b"), text(2, "b"), text(3, "c"), end))
	s.on("/status", status("running", 3))
	got := follow(t, s, 0, 0)
	require.NoError(t, got.err)
	require.Equal(t, []uint64{1, 2, 3}, got.seqs)
	require.Equal(t, completed, got.last)
}

func TestFollowRefusesSequencesThatGoBack(t *testing.T) {
	s := newServer(t)
	s.on("/sse", streams(text(1, "a"), text(3, "c"), text(2, "b"), end))
	got := follow(t, s, 0, 0)
	require.ErrorIs(t, got.err, remote.ErrOutOfOrder)
	require.Equal(t, []uint64{1, 3}, got.seqs)
	require.Len(t, s.from(), 1)
}

func TestFollowGivesUp(t *testing.T) {
	s := newServer(t)
	s.on("/status", status("running", 9))
	for name, c := range map[string]struct {
		answers     []http.HandlerFunc
		retries     int
		connections int
		kind        error
	}{
		"by default after 3 retries":      {[]http.HandlerFunc{drops(text(1, "a")), drops(text(1, "a")), drops()}, 0, 4, remote.ErrStreamDropped},
		"after as many as asked for":      {[]http.HandlerFunc{drops(text(1, "a")), drops()}, 5, 6, remote.ErrStreamDropped},
		"at once":                         {[]http.HandlerFunc{drops(text(1, "a"))}, -1, 1, remote.ErrStreamDropped},
		"if there is nothing but repeats": {[]http.HandlerFunc{drops(text(1, "a"))}, 2, 3, remote.ErrStreamDropped},
	} {
		t.Run(name, func(t *testing.T) {
			before := len(s.from())
			s.on("/sse", c.answers...)
			got := follow(t, s, 0, c.retries)
			require.ErrorIs(t, got.err, c.kind)
			require.Equal(t, []string{"a"}, got.texts)
			require.Len(t, s.from(), before+c.connections)
		})
	}
}

func TestProgressRefillsTheRetries(t *testing.T) {
	s := newServer(t)
	var answers []http.HandlerFunc
	for i := 1; i <= 10; i++ {
		answers = append(answers, drops(text(i, "x")), says(500, ""))
	}
	s.on("/sse", append(answers, streams(end))...)
	s.on("/status", status("running", 99))
	got := follow(t, s, 0, 2)
	require.NoError(t, got.err)
	require.Len(t, got.seqs, 10)
	require.Equal(t, completed, got.last)
}

func TestAStatusThatIsFinalEndsFollow(t *testing.T) {
	for _, c := range []struct {
		status      string
		latest      int
		last        remote.Event
		connections int
	}{
		{remote.StatusCompleted, 1, completed, 1},
		{remote.StatusFailed, 1, remote.ErrorEvent{Error: "it broke"}, 1},
		{remote.StatusCompleted, 2, remote.EndEvent{Status: "paused"}, 2}, // there is more to read
		{remote.StatusFailed, 2, remote.EndEvent{Status: "paused"}, 2},
		{remote.StatusRunning, 1, remote.EndEvent{Status: "paused"}, 2},
		{remote.StatusPaused, 1, remote.EndEvent{Status: "paused"}, 2},
		{remote.StatusInterrupted, 1, remote.EndEvent{Status: "paused"}, 2},
		{"later", 1, remote.EndEvent{Status: "paused"}, 2},
	} {
		t.Run(c.status, func(t *testing.T) {
			s := newServer(t)
			s.on("/sse", drops(text(1, "a")), streams("event: end\ndata: {\"status\":\"paused\"}\n\n"))
			s.on("/status", status(c.status, c.latest))
			got := follow(t, s, 0, 1)
			require.NoError(t, got.err)
			require.Equal(t, []string{"a"}, got.texts)
			require.Equal(t, c.last, got.last)
			require.Len(t, s.from(), c.connections)
		})
	}
}

func TestAStatusThatCantBeHad(t *testing.T) {
	s := newServer(t)
	s.on("/sse", drops(text(1, "a")), streams(end))
	s.on("/status", says(503, ""), says(500, ""), status("running", 1))
	got := follow(t, s, 0, 3)
	require.NoError(t, got.err)
	require.Equal(t, completed, got.last)

	s.on("/sse", drops(text(1, "a")), streams(end))
	got = follow(t, s, 0, 3)
	require.NoError(t, got.err)

	for _, refusal := range []int{404, 401} {
		s.on("/sse", drops(text(1, "a")), streams(end))
		s.on("/status", says(refusal, ""))
		got = follow(t, s, 0, 3)
		require.Equal(t, &remote.Error{Status: refusal}, got.err, "what is refused is not asked again")
		require.Equal(t, []string{"a"}, got.texts)
	}
}

func TestWhatTheServerRefusesEndsFollow(t *testing.T) {
	s := newServer(t)
	s.on("/sse", says(410, `{"error":"trimmed","code":"TRUNCATED"}`))
	got := follow(t, s, 4, 0)
	require.Equal(t, &remote.Error{Status: 410, Code: "TRUNCATED", Message: "trimmed"}, got.err)
	require.Len(t, s.from(), 1)
	require.Empty(t, s.got("/status"))
}

func TestAConsumerThatLeavesEndsFollow(t *testing.T) {
	s := newServer(t)
	left := make(chan struct{})
	s.on("/sse", func(w http.ResponseWriter, r *http.Request) {
		streams(text(1, "a"), text(2, "b"))(w, r)
		<-r.Context().Done()
		close(left)
	})
	h := remotehttp.New(s.http.URL, nil)
	for _, err := range remote.Follow(ctxOf(t), h, "s", 0, remote.FollowOptions{}) {
		require.NoError(t, err)
		break
	}
	<-left
	require.Len(t, s.from(), 1)
}

func TestFollowEndsWithItsContext(t *testing.T) {
	s := newServer(t)
	s.on("/sse", func(w http.ResponseWriter, r *http.Request) {
		streams(text(1, "a"))(w, r)
		<-r.Context().Done()
	})
	ctx, cancel := context.WithCancelCause(ctxOf(t))
	defer cancel(nil)
	var last error
	for _, last = range remote.Follow(ctx, remotehttp.New(s.http.URL, nil), "s", 0, remote.FollowOptions{}) {
		cancel(http.ErrServerClosed)
	}
	require.Equal(t, http.ErrServerClosed, last)
	require.Len(t, s.from(), 1)
}
