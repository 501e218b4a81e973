package httpapi_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog/jetstream/jetstreamtest"
	"github.com/helixd/helixd/httpapi"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/chat"
)

// requests counts what the log's leader, and any replica, were asked.
type requests struct {
	nc             *nats.Conn
	leader, direct atomic.Int64
}

func countRequests(t *testing.T, nc *nats.Conn) *requests {
	t.Helper()
	r := &requests{nc: nc}
	for subject, n := range map[string]*atomic.Int64{
		"$JS.API.STREAM.MSG.GET.HELIX_LOG_0": &r.leader, "$JS.API.DIRECT.GET.HELIX_LOG_0.>": &r.direct, "$JS.API.DIRECT.GET.HELIX_LOG_0": &r.direct,
	} {
		_, err := nc.Subscribe(subject, func(*nats.Msg) { n.Add(1) })
		require.NoError(t, err)
	}
	require.NoError(t, nc.Flush())
	return r
}

// during returns how many requests f has made.
func (r *requests) during(t *testing.T, f func()) (leader, direct int) {
	t.Helper()
	require.NoError(t, r.nc.Flush())
	l, d := r.leader.Load(), r.direct.Load()
	f()
	require.NoError(t, r.nc.Flush())
	return int(r.leader.Load() - l), int(r.direct.Load() - d)
}

// TestAnAppendReadsNothing: a node that was the last one to append to a session
// appends again without a request for anything that is stored, with an idempotency key
// or an expected sequence as well.
func TestAnAppendReadsNothing(t *testing.T) {
	t.Parallel()
	log, nc := newLogAndConn(t)
	a := newAPIOn(t, log, nil)
	count := countRequests(t, nc)
	last := a.post(chunksOf("s"), line("s", "first")).appended(t).LastSequence
	for i := range 40 {
		headers := [][]string{nil, {idemKey, fmt.Sprint("key-", i)}, {expected, fmt.Sprint(last)}}[i%3]
		leader, direct := count.during(t, func() {
			last = a.post(chunksOf("s"), lines("s", "more", 1+i%2), headers...).appended(t).LastSequence
		})
		require.Zero(t, leader, "append %d", i)
		require.Zero(t, direct, "append %d", i)
	}
	require.Equal(t, last, a.head("s"))
}

// TestAKnownHeadIsNotBelieved: whatever another node does to a session, a node that
// remembers it answers as one that reads it.
func TestAKnownHeadIsNotBelieved(t *testing.T) {
	t.Parallel()
	log, nc := newLogAndConn(t)
	other := jetstreamtest.Open(t, nc, nil)
	here, there := newAPIOn(t, log, nil), newAPIOn(t, other, nil)
	for i := range 3 {
		for _, node := range []*testAPI{here, there, there, here} {
			node.post(chunksOf("turns"), line("turns", fmt.Sprint(i))).appended(t)
		}
	}
	require.Len(t, here.texts("turns"), 12)

	first := here.post(chunksOf("s"), line("s", "1")).appended(t)
	keyed := there.post(chunksOf("s"), line("s", "2"), idemKey, "k").appended(t)
	require.Equal(t, keyed, here.post(chunksOf("s"), line("s", "2"), idemKey, "k").appended(t), "answered on another node")
	here.post(chunksOf("s"), line("s", "3"), idemKey, "k").failed(t, 409, api.CodeIdempotencyMismatch)
	here.post(chunksOf("s"), line("s", "3"), expected, fmt.Sprint(first.LastSequence)).failed(t, 409, api.CodeSequenceConflict)
	third := there.post(chunksOf("s"), line("s", "3")).appended(t)
	here.post(chunksOf("s"), line("s", "4"), expected, fmt.Sprint(third.LastSequence)).appended(t)
	require.Equal(t, []string{"1", "2", "3", "4"}, here.texts("s"))

	require.Equal(t, 200, there.post("/sessions/s/end", "").status)
	here.post(chunksOf("s"), line("s", "5")).failed(t, 409, api.CodeStreamEnded)

	here.post(chunksOf("gone"), line("gone", "1"), idemKey, "k").appended(t)
	require.Equal(t, 200, there.request("DELETE", "/sessions/gone", "").status)
	again := here.post(chunksOf("gone"), line("gone", "1"), idemKey, "k").appended(t)
	require.Equal(t, []string{"1"}, here.texts("gone"), "it is another session now")
	require.Equal(t, again.LastSequence, here.head("gone"))
	require.Equal(t, 200, there.request("DELETE", "/sessions/gone", "").status)
	there.post(chunksOf("gone"), line("gone", "other")).appended(t)
	here.post(chunksOf("gone"), line("gone", "mine")).appended(t)
	require.Equal(t, []string{"other", "mine"}, here.texts("gone"))
}

// TestAttachingReadsTheLeaderOnce: a client that attaches to a session costs one look
// at its head, whatever it has seen.
func TestAttachingReadsTheLeaderOnce(t *testing.T) {
	t.Parallel()
	log, nc := newLogAndConn(t)
	a := newAPIOn(t, log, nil, func(o *httpapi.Options) { o.Chat = &chat.Options{} })
	count := countRequests(t, nc)
	attach := func(path string) {
		t.Helper()
		least := 10
		for range 3 { // sealing and the hub's checks ask now and then, too
			leader, _ := count.during(t, func() {
				s := a.stream(path)
				require.NotEmpty(t, s.next().data)
				s.cancel()
			})
			least = min(least, leader)
		}
		require.LessOrEqual(t, least, 1, path)
	}
	for _, n := range []int{3, 150} {
		session := fmt.Sprint("s", n)
		a.append(session, created(session), requested(session, "run-1"))
		var seqs []uint64
		for i := range n {
			seqs = append(seqs, a.append(session, text(session, fmt.Sprint(i)))...)
		}
		attach("/chat/" + session + "/stream")
		for _, from := range []uint64{0, seqs[0], seqs[n-2]} {
			attach(fmt.Sprintf("/sse?sessionId=%s&fromSequence=%d", session, from))
			attach(fmt.Sprintf("/sessions/%s/stream?fromSequence=%d", session, from))
		}
	}
}
