package maintenance

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/internal/link"
	"github.com/helixd/helixd/eventlog/jetstream/internal/store"
	"github.com/helixd/helixd/eventlog/jetstream/internal/storetest"
	"github.com/helixd/helixd/eventlog/jetstream/internal/wire"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
	"github.com/helixd/helixd/integration/testkit"
)

// openUnsealed returns a log that seals only on request, and for which the records of
// othersWrite are far apart.
func openUnsealed(t *testing.T) *Maintenance {
	t.Helper()
	return openLogAs(t, link.WithTuning(t.Context(), link.Tuning{Far: store.FewSequences}), link.Options{Durability: "interval=1h0m0s"})
}

// othersWrite puts more records between two records of a session than a read scans.
func othersWrite(t *testing.T, l *Maintenance) {
	t.Helper()
	head, err := l.Head(t.Context(), "other")
	if err != nil {
		require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
	}
	storetest.Appended(t, l, "other", head, slices.Repeat(storetest.TextEntries("other", 1), 2*store.FewSequences))
}

// asked returns the requests that a function sends to the partition's streams.
func asked(t *testing.T, l *Maintenance, f func()) []string {
	t.Helper()
	questions := make(chan *nats.Msg, 10_000)
	for _, subject := range []string{"$JS.API.DIRECT.GET.>", "$JS.API.STREAM.MSG.GET.>"} {
		sub, err := l.Conn.ChanSubscribe(subject, questions)
		require.NoError(t, err)
		defer sub.Unsubscribe() //nolint:errcheck // fails only on a closed connection
	}
	require.NoError(t, l.Conn.Flush())
	f()
	require.NoError(t, l.Conn.Flush())
	var all []string
	for len(questions) > 0 {
		all = append(all, string((<-questions).Data))
	}
	return all
}

// TestASessionThatWaitedReadsNoBlocksOfOthers: for a subject's next message after some
// sequence, the server would load every block up to it.
func TestASessionThatWaitedReadsNoBlocksOfOthers(t *testing.T) {
	t.Parallel()
	for _, sealed := range []bool{false, true} {
		t.Run(fmt.Sprint("sealed=", sealed), func(t *testing.T) {
			l := openUnsealed(t)
			want := storetest.TextEntries("x", 30)
			var heads []uint64
			head := uint64(0)
			for i := 0; i < len(want); i += 10 {
				head = storetest.Appended(t, l, "s", head, want[i:i+10])
				heads = append(heads, head)
				if sealed {
					require.NoError(t, l.Seal(t.Context(), "s"))
				}
				othersWrite(t, l)
			}
			requireNoWalk := func(f func()) {
				t.Helper()
				for _, question := range asked(t, l, f) {
					if strings.Contains(question, "next_by_subj") {
						require.Regexp(t, `"seq":1\D`, question, "from where the server's index leads on")
					}
				}
			}
			requireNoWalk(func() { storetest.RequireRecords(t, l, "s", want) })
			requireNoWalk(func() {
				n := 0
				for r, err := range l.Read(t.Context(), "s", heads[0], 0) {
					require.NoError(t, err)
					require.Equal(t, want[10+n], r.Entry)
					n++
				}
				require.Equal(t, 20, n)
			})
			requireNoWalk(func() {
				_, err := l.SealedBefore(t.Context(), "s", time.Now().Add(time.Hour))
				require.NoError(t, err)
			})
			requireNoWalk(func() {
				_, _, err := l.Trimmable(t.Context(), "s", head)
				require.NoError(t, err)
			})
		})
	}
}

// TestMoreThanAPageFarApartIsComplete: records that are not read backwards come before
// those that are, also after a purge.
func TestMoreThanAPageFarApartIsComplete(t *testing.T) {
	testkit.OneGoroutine(t)
	t.Parallel()
	l := openUnsealed(t)
	want := storetest.TextEntries("x", 3*link.PageRecords)
	const part = link.PageRecords + 100
	head := uint64(0)
	var heads []uint64
	for some := range slices.Chunk(want, part) {
		head = storetest.Appended(t, l, "s", head, some)
		heads = append(heads, head)
		othersWrite(t, l)
	}
	storetest.RequireRecords(t, l, "s", want)
	for i, from := range heads {
		n := min((i+1)*part, len(want))
		for r, err := range l.Read(t.Context(), "s", from, 0) {
			require.NoError(t, err)
			require.Equal(t, want[n], r.Entry)
			n++
		}
		require.Len(t, want, n)
	}
	_, err := l.Purge(t.Context(), storetest.PurgeNow)
	require.NoError(t, err)
	more := storetest.TextEntries("y", 5)
	storetest.Appended(t, l, "s", head, more)
	storetest.RequireRecords(t, l, "s", append(want, more...))
}

// TestARecordThatIsMissingFarAwayIsSeen: a read that goes back from the head finds the
// gap, and reports it.
func TestARecordThatIsMissingFarAwayIsSeen(t *testing.T) {
	t.Parallel()
	l := openUnsealed(t)
	head := storetest.Appended(t, l, "s", 0, storetest.TextEntries("x", 3))
	othersWrite(t, l)
	storetest.Appended(t, l, "s", head, storetest.TextEntries("y", 3))
	require.NoError(t, l.SecureDelete(t.Context(), layout.LogStream(0), head-1))
	var err error
	for _, err = range l.Read(t.Context(), "s", 0, 0) {
	}
	require.ErrorIs(t, err, eventlog.ErrIncomplete)
}

// TestAForeignMessageFarAwayIsRead: it names no predecessor, so that the read can't go
// further back from it.
func TestAForeignMessageFarAwayIsRead(t *testing.T) {
	t.Parallel()
	l := openUnsealed(t)
	own := storetest.TextEntries("own", 3)
	storetest.Appended(t, l, "s", 0, own)
	storetest.PublishForeign(t, l.Conn, "helix.log.0.s", nil, []byte("hello"))
	othersWrite(t, l)
	head, err := l.Head(t.Context(), "s")
	require.NoError(t, err)
	storetest.Appended(t, l, "s", head, own)
	want := slices.Concat(own, []eventlog.Entry{{Payload: []byte("hello")}}, own)
	storetest.RequireRecords(t, l, "s", want)
}

// TestAReplicaThatLagsLeavesTheAnswerToTheLeader: no direct get is answered here.
func TestAReplicaThatLagsLeavesTheAnswerToTheLeader(t *testing.T) {
	t.Parallel()
	l := openLog(t, link.Options{})
	last := storetest.Appended(t, l, "s", 0, storetest.TextEntries("x", 3))
	direct, err := l.GetAt(t.Context(), layout.LogStream(0), last)
	require.NoError(t, err)
	s, err := l.JS.Stream(t.Context(), layout.LogStream(0))
	require.NoError(t, err)
	config := s.CachedInfo().Config
	config.AllowDirect = false
	_, err = l.JS.UpdateStream(t.Context(), config)
	require.NoError(t, err)
	led, err := l.GetAt(t.Context(), layout.LogStream(0), last)
	require.NoError(t, err)
	require.Equal(t, led.Subject, direct.Subject)
	require.Equal(t, led.Sequence, direct.Sequence)
	require.True(t, led.At.Equal(direct.At))
	require.Equal(t, led.Data, direct.Data)
	_, err = l.GetAt(t.Context(), layout.LogStream(0), last+1)
	require.ErrorIs(t, err, link.ErrNoMessage)
}

func TestTheLastSegmentLeadsToAll(t *testing.T) {
	testkit.OneGoroutine(t)
	t.Parallel()
	l := openUnsealed(t)
	var s *wire.Segment
	var all []wire.SegmentRef
	for i := range 2*wire.DirectorySize + 5 {
		at := uint64(i) // the sequence of the one before
		s = s.Next(at)
		s.Records = []wire.Stored{{Record: eventlog.Record{Sequence: uint64(10 * (i + 1)), Entry: storetest.TextEntry(i)}, Previous: s.Previous, Linked: true}}
		raw, err := s.Pack()
		require.NoError(t, err)
		storetest.PublishForeign(t, l.Conn, layout.SegmentSubject("s", 0), nil, raw)
		all = append(all, wire.SegmentRef{At: at + 1, Last: s.Last()})
	}
	for n := range all {
		from := uint64(10 * n)
		got, end, err := l.SegmentsBehind(t.Context(), "s", from, l.LastSegment)
		require.NoError(t, err)
		require.Equal(t, all[n:], got, "behind %d", from)
		require.Equal(t, s.Last(), end.Last())
	}
	got, _, err := l.SegmentsBehind(t.Context(), "s", s.Last(), l.AnyLastSegment)
	require.NoError(t, err)
	require.Empty(t, got)

	// Retention removes the oldest first, with the segments that they name.
	for _, ref := range all[:wire.DirectorySize] {
		require.NoError(t, l.Remove(t.Context(), layout.SegmentStream(0), ref.At))
	}
	var first uint64
	require.ErrorIs(t, l.ReadSegments(t.Context(), "s", all[wire.DirectorySize-1].Last, s.Last(), func(r wire.Stored) bool {
		first = r.Sequence
		return false
	}), link.ErrStopped)
	require.Equal(t, all[wire.DirectorySize].Last, first)
	require.NoError(t, l.ReadSegments(t.Context(), "s", 0, s.Last(), func(wire.Stored) bool {
		t.Error("what does not follow is not handed out")
		return false
	}))
}
