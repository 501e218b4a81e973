package maintenance

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/internal/link"
	"github.com/helixd/helixd/eventlog/jetstream/internal/storetest"
	"github.com/helixd/helixd/eventlog/jetstream/internal/wire"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

// TestALogThatEndsBeforeItsSegmentsIsWaitedFor: with replicas, a server that has just
// been elected, or was stopped for a while, may answer for a log that lacks records which
// the segments have. A node that starts then waits for them, and refuses to start only if
// they don't arrive.
func TestALogThatEndsBeforeItsSegmentsIsWaitedFor(t *testing.T) {
	t.Parallel()
	// A hooked log does nothing in the background, so its options may be changed.
	l := openHooked(t, openLog(t, link.Options{}).Conn, func(ctx context.Context, _ string, do func(context.Context) error) error { return do(ctx) })
	l.Opts.Replicas = 3 // as far as orphan segments are concerned
	head, err := l.Append(t.Context(), "s", 0, []eventlog.Entry{storetest.TextEntry(0)})
	require.NoError(t, err)
	var records []wire.Stored
	for i := range 2 {
		records = append(records, wire.Stored{Record: eventlog.Record{Sequence: head + uint64(i), Time: time.Now(), Entry: storetest.TextEntry(i)}})
	}
	packed, err := (&wire.Segment{Records: records}).Pack()
	require.NoError(t, err)
	_, err = l.Publish(t.Context(), []*nats.Msg{{Subject: layout.SegmentSubject("s", 0), Header: nats.Header{}, Data: packed}})
	require.NoError(t, err)

	require.ErrorIs(t, l.dropOrphanSegments(t.Context(), 0, 0), errLogLost)
	opened := make(chan error, 1)
	go func() { opened <- l.dropOrphanSegments(t.Context(), 0, time.Minute) }()
	_, err = l.Append(t.Context(), "s", head, []eventlog.Entry{storetest.TextEntry(1)})
	require.NoError(t, err)
	require.NoError(t, <-opened)
	s, _, err := l.LastSegment(t.Context(), "s")
	require.NoError(t, err)
	require.Equal(t, head+1, s.Last())
}

// TestStreamsThatANewLeaderDoesNotKnowAreWaitedFor: nodes that start together create the
// streams while the cluster still elects its leader, which may not know them for a moment.
// A node does not fail for that.
func TestStreamsThatANewLeaderDoesNotKnowAreWaitedFor(t *testing.T) {
	t.Parallel()
	var unknown atomic.Int64 // requests that are answered so
	l := openHooked(t, openLog(t, link.Options{}).Conn, func(ctx context.Context, point string, do func(context.Context) error) error {
		if point == "stream" && unknown.Add(-1) >= 0 {
			return natsjs.ErrStreamNotFound
		}
		return do(ctx)
	})
	unknown.Store(1)
	require.ErrorIs(t, l.dropOrphanSegments(t.Context(), 0, time.Minute), natsjs.ErrStreamNotFound, "a server without a cluster knows its streams")
	l.Opts.Replicas = 3
	unknown.Store(2)
	require.NoError(t, l.dropOrphanSegments(t.Context(), 0, time.Minute))
	require.Negative(t, unknown.Load())
}
