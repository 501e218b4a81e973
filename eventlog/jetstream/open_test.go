package jetstream_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/embed/embedtest"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/jetstream"
	"github.com/helixd/helixd/eventlog/jetstream/jetstreamtest"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
	"github.com/helixd/helixd/eventlog/logtest"
	"github.com/helixd/helixd/integration/testkit"
)

// serve runs a server on dir and returns a function that ends it.
func serve(t *testing.T, dir string) (*nats.Conn, func()) {
	t.Helper()
	srv, nc := embedtest.Start(t, embed.Options{DataDir: dir})
	return nc, func() { nc.Close(); srv.Stop() }
}

func TestPartitionsStayAsTheyAre(t *testing.T) {
	t.Parallel()
	nc, _ := serve(t, t.TempDir())
	jetstreamtest.Open(t, nc, &jetstream.Options{Partitions: 2})
	log := jetstreamtest.Open(t, nc, &jetstream.Options{Partitions: 2})
	_, err := log.Append(t.Context(), "s", 0, []eventlog.Entry{logtest.Text("s", "a")})
	require.NoError(t, err)
	for _, grow := range []bool{false, true} {
		_, err := jetstream.Open(t.Context(), nc, &jetstream.Options{Partitions: 1, Grow: grow})
		require.EqualError(t, err, `jetstream: stream HELIX_LOG_0 was created for "2" partitions, not 1`)
	}
	_, err = jetstream.Open(t.Context(), nc, &jetstream.Options{Partitions: 3})
	require.ErrorContains(t, err, "jetstream: the log has 2 partitions, not 3: keep 2, or start a node once without nats.user")
	require.Equal(t, 2, jetstreamtest.Open(t, nc, nil).Info().Partitions)
	_, err = jetstream.Open(t.Context(), nc, &jetstream.Options{Partitions: 65})
	require.ErrorContains(t, err, "at most 64 partitions")
}

func TestPartitionsByDefault(t *testing.T) {
	t.Parallel()
	nc, _ := serve(t, t.TempDir())
	require.Equal(t, 1, jetstreamtest.Open(t, nc, nil).Info().Partitions)
	nc, _ = serve(t, t.TempDir())
	jetstreamtest.Open(t, nc, &jetstream.Options{Partitions: 3})
	require.Equal(t, 3, jetstreamtest.Open(t, nc, nil).Info().Partitions, "they are fixed")
}

func TestPartitionsShareNothing(t *testing.T) {
	t.Parallel()
	nc, _ := serve(t, t.TempDir())
	log := jetstreamtest.Open(t, nc, &jetstream.Options{Partitions: 4})
	var want []string
	for i := range 20 {
		id := fmt.Sprintf("session-%02d", i)
		want = append(want, id)
		_, err := log.Append(t.Context(), id, 0, []eventlog.Entry{logtest.Text(id, id)})
		require.NoError(t, err)
	}
	var got []string
	for id, err := range log.Sessions(t.Context()) {
		require.NoError(t, err)
		got = append(got, id)
		require.Len(t, logtest.Records(t, log, id), 1)
	}
	require.Equal(t, want, got, "listed across partitions in one order")
}

func TestInfo(t *testing.T) {
	t.Parallel()
	nc, _ := serve(t, t.TempDir())
	info := jetstreamtest.Open(t, nc, nil).Info()
	require.Equal(t, eventlog.DurabilityUnknown, info.Durability)
	require.Equal(t, 1, info.Partitions)
	require.Equal(t, eventlog.MaxPayload, info.MaxRecordBytes)
	info = jetstreamtest.Open(t, nc, &jetstream.Options{Durability: eventlog.DurabilityFsync}).Info()
	require.Equal(t, eventlog.DurabilityFsync, info.Durability)
}

func TestReopen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	nc, stop := serve(t, dir)
	log := jetstreamtest.Open(t, nc, nil)
	_, err := log.Append(t.Context(), "noise", 0, []eventlog.Entry{logtest.Text("noise", "n")})
	require.NoError(t, err)
	last, err := log.Append(t.Context(), "s", 0, []eventlog.Entry{logtest.Text("s", "a"), logtest.Text("s", "b")})
	require.NoError(t, err)
	before := logtest.Records(t, log, "s")
	require.NoError(t, log.Close())
	stop()

	nc, _ = serve(t, dir)
	log = jetstreamtest.Open(t, nc, nil)
	require.Equal(t, before, logtest.Records(t, log, "s"), "with their sequences and times")
	var conflict *eventlog.ConflictError
	_, err = log.Append(t.Context(), "s", 0, []eventlog.Entry{logtest.Text("s", "again")})
	require.ErrorAs(t, err, &conflict)
	next, err := log.Append(t.Context(), "s", last, []eventlog.Entry{logtest.Text("s", "c")})
	require.NoError(t, err)
	require.Equal(t, last+1, next)
	require.Len(t, logtest.Records(t, log, "s"), 3)
}

func TestPlainSubscription(t *testing.T) {
	t.Parallel()
	nc, _ := serve(t, t.TempDir())
	log := jetstreamtest.Open(t, nc, nil)
	sub, err := nc.SubscribeSync("helix.live.>")
	require.NoError(t, err)
	require.NoError(t, nc.Flush())
	entries := []eventlog.Entry{
		logtest.Text("a.b", "x"),
		logtest.Fact("a.b", &fact.StreamEnd{StreamID: "a.b", Timestamp: 1}),
	}
	_, err = log.Append(t.Context(), "noise", 0, []eventlog.Entry{logtest.Text("noise", "n")})
	require.NoError(t, err)
	_, err = log.Append(t.Context(), "a.b", 0, entries)
	require.NoError(t, err)

	m, err := sub.NextMsg(time.Minute)
	require.NoError(t, err)
	require.Equal(t, "helix.live.noise", m.Subject)
	previous := uint64(0)
	for i, r := range logtest.Records(t, log, "a.b") {
		m, err := sub.NextMsg(time.Minute)
		require.NoError(t, err)
		require.Equal(t, layout.LiveSubject("a.b"), m.Subject)
		require.Equal(t, []string{"t,,run-1", "f.stream_end"}[i], m.Header.Get("H"))
		live, before, err := jetstream.LiveRecord(m)
		require.NoError(t, err)
		require.Equal(t, r, live)
		require.Equal(t, previous, before)
		require.Equal(t, fmt.Sprint(r.Sequence), m.Header.Get("Nats-Sequence"))
		require.Equal(t, fmt.Sprint(previous), m.Header.Get("Nats-Last-Sequence"))
		require.Equal(t, r.Payload, m.Data)
		previous = r.Sequence
	}
}

func TestTooLarge(t *testing.T) {
	testkit.Sequential(t)
	t.Parallel()
	nc, _ := serve(t, t.TempDir())
	log := jetstreamtest.Open(t, nc, nil)
	e := logtest.Text("s", "x")
	e.Payload = bytes.Repeat([]byte("x"), log.Info().MaxRecordBytes)
	last, err := log.Append(t.Context(), "s", 0, []eventlog.Entry{e})
	require.NoError(t, err, "the limit itself")
	require.Equal(t, e.Payload, logtest.Records(t, log, "s")[0].Payload)

	e.Payload = append(e.Payload, 'x')
	_, err = log.Append(t.Context(), "s", last, []eventlog.Entry{e})
	require.ErrorIs(t, err, eventlog.ErrTooLarge)
	_, err = log.Append(t.Context(), "s", last, make([]eventlog.Entry, 1001))
	require.ErrorIs(t, err, eventlog.ErrTooLarge)

	// A stream that takes less than the connection does.
	js, err := natsjs.New(nc, natsjs.WithDefaultTimeout(time.Minute))
	require.NoError(t, err)
	s, err := js.Stream(t.Context(), "HELIX_LOG_0")
	require.NoError(t, err)
	small := s.CachedInfo().Config
	small.MaxMsgSize = 1000
	_, err = js.UpdateStream(t.Context(), small)
	require.NoError(t, err)
	e.Payload = e.Payload[:2000]
	for _, entries := range [][]eventlog.Entry{{e}, {logtest.Text("s", "x"), e}} {
		_, err = log.Append(t.Context(), "s", last, entries)
		require.ErrorIs(t, err, eventlog.ErrTooLarge)
	}
	require.Len(t, logtest.Records(t, log, "s"), 1)
}

// A follower's context need not have a deadline.
func TestFollowWithoutDeadline(t *testing.T) {
	t.Parallel()
	nc, _ := serve(t, t.TempDir())
	log := jetstreamtest.Open(t, nc, nil)
	_, err := log.Append(t.Context(), "s", 0, []eventlog.Entry{logtest.Text("s", "x")})
	require.NoError(t, err)
	for r, err := range log.Follow(t.Context(), "s", 0) {
		require.NoError(t, err)
		require.EqualValues(t, 1, r.Sequence)
		break
	}
}
