package jetstream

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/internal/wire"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

// openUnsealed is a log that seals only when it is told to, and to which what
// othersWrite is far.
func openUnsealed(t *testing.T) *Log {
	t.Helper()
	l := openLog(t, &Options{Durability: "interval=1h0m0s"})
	l.far = fewSequences
	return l
}

// othersWrite puts more between two records of a session than is read through.
func othersWrite(t *testing.T, l *Log) {
	t.Helper()
	head, err := l.Head(t.Context(), "other")
	if err != nil {
		require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
	}
	appended(t, l, "other", head, slices.Repeat(textEntries("other", 1), 2*fewSequences))
}

// asked returns what a function asks the partition's streams for.
func asked(t *testing.T, l *Log, f func()) []string {
	t.Helper()
	questions := make(chan *nats.Msg, 10_000)
	for _, subject := range []string{"$JS.API.DIRECT.GET.>", "$JS.API.STREAM.MSG.GET.>"} {
		sub, err := l.nc.ChanSubscribe(subject, questions)
		require.NoError(t, err)
		defer sub.Unsubscribe() //nolint:errcheck // fails only on a closed connection
	}
	require.NoError(t, l.nc.Flush())
	f()
	require.NoError(t, l.nc.Flush())
	var all []string
	for len(questions) > 0 {
		all = append(all, string((<-questions).Data))
	}
	return all
}

// TestASessionThatWaitedCostsNothingOfWhatOthersWrote: the server, asked for the
// next of a subject behind some sequence, would load every block up to it.
func TestASessionThatWaitedCostsNothingOfWhatOthersWrote(t *testing.T) {
	t.Parallel()
	for _, sealed := range []bool{false, true} {
		t.Run(fmt.Sprint("sealed=", sealed), func(t *testing.T) {
			l := openUnsealed(t)
			want := textEntries("x", 30)
			var heads []uint64
			head := uint64(0)
			for i := 0; i < len(want); i += 10 {
				head = appended(t, l, "s", head, want[i:i+10])
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
			requireNoWalk(func() { requireRecords(t, l, "s", want) })
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

// TestMoreThanAPageFarApartIsWhole: what is not looked for from behind comes
// before it, also where a purge has been.
func TestMoreThanAPageFarApartIsWhole(t *testing.T) {
	t.Parallel()
	l := openUnsealed(t)
	want := textEntries("x", 3*pageRecords)
	const part = pageRecords + 100
	head := uint64(0)
	var heads []uint64
	for some := range slices.Chunk(want, part) {
		head = appended(t, l, "s", head, some)
		heads = append(heads, head)
		othersWrite(t, l)
	}
	requireRecords(t, l, "s", want)
	for i, from := range heads {
		n := min((i+1)*part, len(want))
		for r, err := range l.Read(t.Context(), "s", from, 0) {
			require.NoError(t, err)
			require.Equal(t, want[n], r.Entry)
			n++
		}
		require.Len(t, want, n)
	}
	_, err := l.Purge(t.Context(), purgeNow)
	require.NoError(t, err)
	more := textEntries("y", 5)
	appended(t, l, "s", head, more)
	requireRecords(t, l, "s", append(want, more...))
}

// TestARecordThatIsMissingFarAwayIsSeen: a read that goes back from the head
// meets the gap, and tells of it.
func TestARecordThatIsMissingFarAwayIsSeen(t *testing.T) {
	t.Parallel()
	l := openUnsealed(t)
	head := appended(t, l, "s", 0, textEntries("x", 3))
	othersWrite(t, l)
	appended(t, l, "s", head, textEntries("y", 3))
	require.NoError(t, l.secureDelete(t.Context(), layout.LogStream(0), head-1))
	var err error
	for _, err = range l.Read(t.Context(), "s", 0, 0) {
	}
	require.ErrorIs(t, err, eventlog.ErrIncomplete)
}

// TestAForeignMessageFarAwayIsRead: it names no predecessor, so that nothing
// leads further back.
func TestAForeignMessageFarAwayIsRead(t *testing.T) {
	t.Parallel()
	l := openUnsealed(t)
	own := textEntries("own", 3)
	appended(t, l, "s", 0, own)
	published(t, l, "helix.log.0.s", nil, []byte("hello"))
	othersWrite(t, l)
	head, err := l.Head(t.Context(), "s")
	require.NoError(t, err)
	appended(t, l, "s", head, own)
	want := slices.Concat(own, []eventlog.Entry{{Payload: []byte("hello")}}, own)
	requireRecords(t, l, "s", want)
}

// TestAReplicaThatHasItNotLeavesTheAnswerToTheLeader: no direct get is answered
// here.
func TestAReplicaThatHasItNotLeavesTheAnswerToTheLeader(t *testing.T) {
	t.Parallel()
	l := openLog(t, nil)
	last := appended(t, l, "s", 0, textEntries("x", 3))
	direct, err := l.getAt(t.Context(), layout.LogStream(0), last)
	require.NoError(t, err)
	s, err := l.js.Stream(t.Context(), layout.LogStream(0))
	require.NoError(t, err)
	config := s.CachedInfo().Config
	config.AllowDirect = false
	_, err = l.js.UpdateStream(t.Context(), config)
	require.NoError(t, err)
	led, err := l.getAt(t.Context(), layout.LogStream(0), last)
	require.NoError(t, err)
	require.Equal(t, led.Subject, direct.Subject)
	require.Equal(t, led.Sequence, direct.Sequence)
	require.True(t, led.At.Equal(direct.At))
	require.Equal(t, led.Data, direct.Data)
	_, err = l.getAt(t.Context(), layout.LogStream(0), last+1)
	require.ErrorIs(t, err, errNoMessage)
}

func TestTheLastSegmentLeadsToAll(t *testing.T) {
	t.Parallel()
	l := openUnsealed(t)
	var s *wire.Segment
	var all []wire.SegmentRef
	for i := range 2*wire.DirectorySize + 5 {
		at := uint64(i) // of the one before
		s = s.Next(at)
		s.Records = []wire.Stored{{Record: eventlog.Record{Sequence: uint64(10 * (i + 1)), Entry: textEntry(i)}, Previous: s.Previous, Linked: true}}
		raw, err := s.Pack()
		require.NoError(t, err)
		published(t, l, layout.SegmentSubject("s", 0), nil, raw)
		all = append(all, wire.SegmentRef{At: at + 1, Last: s.Last()})
	}
	for n := range all {
		from := uint64(10 * n)
		got, end, err := l.segmentsBehind(t.Context(), "s", from, l.lastSegment)
		require.NoError(t, err)
		require.Equal(t, all[n:], got, "behind %d", from)
		require.Equal(t, s.Last(), end.Last())
	}
	got, _, err := l.segmentsBehind(t.Context(), "s", s.Last(), l.anyLastSegment)
	require.NoError(t, err)
	require.Empty(t, got)

	// Retention removes the oldest first, with what they name.
	for _, ref := range all[:wire.DirectorySize] {
		require.NoError(t, l.remove(t.Context(), layout.SegmentStream(0), ref.At))
	}
	var first uint64
	require.ErrorIs(t, l.readSegments(t.Context(), "s", all[wire.DirectorySize-1].Last, s.Last(), func(r wire.Stored) bool {
		first = r.Sequence
		return false
	}), errStopped)
	require.Equal(t, all[wire.DirectorySize].Last, first)
	require.NoError(t, l.readSegments(t.Context(), "s", 0, s.Last(), func(wire.Stored) bool {
		t.Error("what does not follow is not handed out")
		return false
	}))
}
