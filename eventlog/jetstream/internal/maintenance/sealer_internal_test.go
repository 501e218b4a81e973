package maintenance

import (
	"context"
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/embed/embedtest"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/internal/link"
	"github.com/helixd/helixd/eventlog/jetstream/internal/live"
	"github.com/helixd/helixd/eventlog/jetstream/internal/storetest"
	"github.com/helixd/helixd/eventlog/jetstream/internal/wire"
)

func openLog(t *testing.T, o link.Options) *Maintenance {
	t.Helper()
	return openLogAs(t, t.Context(), o)
}

// wholeLog is a log that can be followed.
type wholeLog struct {
	*Maintenance
	live *live.Live
}

func whole(l *Maintenance) *wholeLog {
	w := &wholeLog{l, live.New(l.Store)}
	w.live.Start()
	return w
}

func (l *wholeLog) Follow(ctx context.Context, session string, from uint64) iter.Seq2[eventlog.Record, error] {
	return l.live.Follow(ctx, session, from)
}

// openLogAs opens the log of a new server in a context with the test's tuning.
func openLogAs(t *testing.T, ctx context.Context, o link.Options) *Maintenance {
	t.Helper()
	_, nc := embedtest.Start(t, embed.Options{SyncInterval: time.Second})
	l, err := Open(ctx, nc, o)
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	return l
}

// sealedTo waits until the session is sealed up to a sequence, and checks the
// segments against the log.
func sealedTo(t *testing.T, l *Maintenance, session string, want uint64) {
	t.Helper()
	require.Eventually(t, func() bool {
		s, _, err := l.LastSegment(t.Context(), session)
		require.NoError(t, err)
		return s != nil && s.Last() >= want
	}, time.Minute, 5*time.Millisecond)
	s, _, err := l.LastSegment(t.Context(), session)
	require.NoError(t, err)
	require.Equal(t, want, s.Last())
	n, err := l.compare(t.Context(), session, want+1)
	require.NoError(t, err)
	require.Positive(t, n)
}

func TestSessionsAreSealedAsTheyGrow(t *testing.T) {
	t.Parallel()
	l := openLog(t, link.Options{Partitions: 3})
	heads := map[string]uint64{}
	full := map[string]uint64{}
	for i := range wire.SegmentRecords + 50 {
		for s := range 5 {
			session := fmt.Sprint("s", s)
			last, err := l.Append(t.Context(), session, heads[session], []eventlog.Entry{storetest.TextEntry(i)})
			require.NoError(t, err)
			heads[session] = last
			if i+1 == wire.SegmentRecords {
				full[session] = last
			}
		}
	}
	for session, last := range full {
		sealedTo(t, l, session, last)
	}
	last, err := l.Append(t.Context(), "s0", heads["s0"], []eventlog.Entry{storetest.RunEnded})
	require.NoError(t, err)
	sealedTo(t, l, "s0", last)
}

// TestAnotherNodesRecordsAreSealedToo: a node reads records that it has not appended from
// the log, and continues after a segment that another node wrote.
func TestAnotherNodesRecordsAreSealedToo(t *testing.T) {
	t.Parallel()
	a := openLog(t, link.Options{})
	b, err := Open(t.Context(), a.Conn, link.Options{})
	require.NoError(t, err)
	defer b.Close()
	head := uint64(0)
	for i := range 3 * wire.SegmentRecords {
		node := a
		if i/17%2 == 1 {
			node = b
		}
		head, err = node.Append(t.Context(), "s", head, []eventlog.Entry{storetest.TextEntry(i)})
		require.NoError(t, err)
	}
	require.NoError(t, a.Seal(t.Context(), "s"))
	sealedTo(t, a, "s", head)
	head, err = b.Append(t.Context(), "s", head, []eventlog.Entry{storetest.TextEntry(0)})
	require.NoError(t, err)
	require.NoError(t, b.Seal(t.Context(), "s"))
	require.NoError(t, a.Seal(t.Context(), "s"))
	sealedTo(t, a, "s", head)
}

func TestATailIsDue(t *testing.T) {
	now := time.Now()
	records := func(n, size int) []wire.Stored {
		some := make([]wire.Stored, n)
		for i := range some {
			some[i].Payload = make([]byte, size)
		}
		return some
	}
	ended := records(sealLeast, 1)
	ended[sealLeast-1].Envelope = storetest.RunEnded.Envelope
	for name, tc := range map[string]struct {
		records []wire.Stored
		idle    time.Duration
		due     bool
	}{
		"full":               {records(wire.SegmentRecords, 1), 0, true},
		"not yet":            {records(wire.SegmentRecords-1, 1), 0, false},
		"large":              {records(3, wire.SegmentBytes/2), 0, true},
		"a run ended":        {ended, 0, true},
		"a short run ended":  {ended[1:], 0, false},
		"idle":               {records(sealLeast, 1), sealIdle, true},
		"idle and too short": {records(sealLeast-1, 1), sealIdle, false},
	} {
		tail := &unsealed{touched: now}
		tail.add(0, uint64(len(tc.records)), tc.records, sealBuffer)
		require.Equal(t, tc.due, tail.due(now.Add(tc.idle)), name)
	}
}

func TestATailThatDoesNotFitIsReadFromTheLog(t *testing.T) {
	t.Parallel()
	tail := &unsealed{}
	one := []wire.Stored{{Record: eventlog.Record{Entry: eventlog.Entry{Payload: make([]byte, 100)}}}}
	tail.add(0, 1, one, 150)
	require.True(t, tail.whole())
	tail.add(1, 2, one, 50)
	require.False(t, tail.whole())
	require.Zero(t, tail.bytes)
	tail.add(2, 3, one, 150)
	require.False(t, tail.whole(), "the middle is missing")
	require.Equal(t, 3, tail.count)
	tail.add(9, 10, one, 150) // another record was appended before
	require.True(t, tail.whole())
	require.Equal(t, uint64(9), tail.from)

	l := openLog(t, link.Options{})
	l.sealers[0].most = 100
	head := uint64(0)
	for i := range wire.SegmentRecords {
		var err error
		head, err = l.Append(t.Context(), "s", head, []eventlog.Entry{storetest.TextEntry(i)})
		require.NoError(t, err)
	}
	sealedTo(t, l, "s", head)
}
