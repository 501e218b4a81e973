package maintenance

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/internal/link"
	"github.com/helixd/helixd/eventlog/jetstream/internal/metrics"
	"github.com/helixd/helixd/eventlog/jetstream/internal/storetest"
	"github.com/helixd/helixd/eventlog/jetstream/internal/wire"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
	"github.com/helixd/helixd/eventlog/logtest"
)

// sealRounds seals the queued sessions, and the session whether it is due or not.
func sealRounds(s *sealer, session string) {
	for range 3 {
		s.mu.Lock()
		if t := s.tails[session]; t != nil {
			s.enqueue(t)
		}
		s.mu.Unlock()
		s.sealDue(context.Background())
	}
}

// TestUnsealedRecordsThatAnotherNodeSealed: they don't count any more, and later ones are
// sealed as usual.
func TestUnsealedRecordsThatAnotherNodeSealed(t *testing.T) {
	t.Parallel()
	a := openLog(t, link.Options{})
	b := secondNode(t, a)
	sealer := b.sealerOf("s")
	sealer.working.Lock()
	head := storetest.Appended(t, b, "s", 0, storetest.TextEntries("x", wire.SegmentRecords))
	require.NoError(t, a.Seal(t.Context(), "s"))
	sealer.working.Unlock()
	sealRounds(sealer, "s")
	sealer.mu.Lock()
	require.Zero(t, sealer.tails["s"].count)
	require.Zero(t, sealer.bytes)
	sealer.mu.Unlock()

	last := storetest.Appended(t, b, "s", head, append(storetest.TextEntries("y", sealLeast), storetest.RunEnded))
	sealRounds(sealer, "s")
	sealedTo(t, a, "s", last)
}

// TestIdleSessionsTakeNoMemory: of a session that is sealed to its end nothing is kept, and of one
// with a few unsealed records how many there are.
func TestIdleSessionsTakeNoMemory(t *testing.T) {
	now := time.Now()
	s := newSealer(nil)
	idle := func(session string, count int, since time.Duration) {
		s.tails[session] = &unsealed{session: session, count: count, touched: now.Add(-since), sealed: &wire.Segment{}, at: 1}
	}
	idle("sealed", 0, forgetSealed)
	idle("begun", sealLeast-1, forgetSealed)
	idle("failing", sealLeast, forgetIdle)
	s.tails["failing"].bytes, s.bytes = 100, 100
	idle("busy", 0, sealIdle)
	idle("old", sealLeast-1, forgetIdle)
	s.sweep(now)
	require.NotContains(t, s.tails, "sealed")
	require.NotContains(t, s.tails, "old")
	require.NotContains(t, s.tails, "failing", "it was due for an hour, and could not be sealed")
	require.Zero(t, s.bytes)
	require.Equal(t, sealLeast-1, s.tails["begun"].count)
	require.Nil(t, s.tails["begun"].sealed)
	require.NotNil(t, s.tails["busy"].sealed)
}

// TestASessionThatCanNotBeSealedIsCounted: once, however often it is tried.
func TestASessionThatCanNotBeSealedIsCounted(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	l := openLog(t, link.Options{Metrics: metrics.New(reg)})
	head := storetest.Appended(t, l, "s", 0, storetest.TextEntries("x", 1))
	storetest.PublishForeign(t, l.Conn, layout.SegmentSubject("s", 0), nil, []byte("damaged"))
	storetest.Appended(t, l, "s", head, storetest.TextEntries("y", sealLeast))
	sealer := l.sealerOf("s")
	for range 2 {
		sealer.mu.Lock()
		sealer.tails["s"].touched = time.Now().Add(-sealIdle)
		sealer.mu.Unlock()
		sealRounds(sealer, "s")
	}
	families, err := reg.Gather()
	require.NoError(t, err)
	i := slices.IndexFunc(families, func(f *dto.MetricFamily) bool { return f.GetName() == "helixd_seal_failures_total" })
	require.EqualValues(t, 1, families[i].GetMetric()[0].GetCounter().GetValue())
}

// TestRecordsThatMayNotBeOnDiskAreNotSealed: on a server that syncs only at intervals, a
// segment could survive a power loss that its records don't.
func TestRecordsThatMayNotBeOnDiskAreNotSealed(t *testing.T) {
	t.Parallel()
	l := openLog(t, link.Options{Durability: "interval=1h"})
	last := storetest.Appended(t, l, "s", 0, append(storetest.TextEntries("x", wire.SegmentRecords), storetest.RunEnded))
	sealer := l.sealerOf("s")
	sealRounds(sealer, "s")
	s, _, err := l.LastSegment(t.Context(), "s")
	require.NoError(t, err)
	require.True(t, s == nil, "a segment was written")
	require.NoError(t, l.Seal(t.Context(), "s"), "whoever asks for it gets it")
	sealedTo(t, l, "s", last)
}

func TestASegmentTakesWhatIsOldEnough(t *testing.T) {
	before := time.Now()
	records := func(old, young int) (all []wire.Stored) {
		for i := range old + young {
			at := before.Add(-time.Second)
			if i >= old {
				at = before.Add(time.Second)
			}
			all = append(all, wire.Stored{Record: eventlog.Record{Sequence: uint64(i + 1), Time: at, Entry: storetest.TextEntry(i)}})
		}
		return all
	}
	for name, tc := range map[string]struct {
		records []wire.Stored
		before  time.Time
		all     bool
		want    int // records; 0: no segment
	}{
		"full":                       {records(wire.SegmentRecords+1, 0), before, false, wire.SegmentRecords},
		"full, and young ones":       {records(wire.SegmentRecords, 9), before, true, wire.SegmentRecords},
		"not full":                   {records(wire.SegmentRecords-1, 0), before, false, 0},
		"not full, all":              {records(wire.SegmentRecords-1, 0), before, true, wire.SegmentRecords - 1},
		"not full without the young": {records(wire.SegmentRecords-1, 9), before, true, 0},
		"young":                      {records(0, wire.SegmentRecords), before, true, 0},
		"young on a disk":            {records(0, wire.SegmentRecords), time.Time{}, false, wire.SegmentRecords},
	} {
		w := &sealing{all: tc.all, before: tc.before, records: tc.records}
		next := w.take()
		if tc.want == 0 {
			require.True(t, next == nil, name)
			continue
		}
		require.NotNil(t, next, name)
		require.Len(t, next.Records, tc.want, name)
	}
}

// TestImportsOfAnyYearAreDecodedFromSegments: the original time of a record may be one
// that does not fit 64 bits as nanoseconds since 1970.
func TestImportsOfAnyYearAreDecodedFromSegments(t *testing.T) {
	t.Parallel()
	l := openLog(t, link.Options{})
	var entries []eventlog.Entry
	for i, year := range []int{1, 1600, 1969, 2026, 3000, 9999} {
		e := storetest.TextEntry(i)
		e.Origin = eventlog.Origin{Sequence: uint64(i + 1), Time: time.Date(year, 2, 3, 4, 5, 6, 789, time.UTC)}
		entries = append(entries, e)
	}
	storetest.Appended(t, l, "s", 0, entries)
	storetest.RequireRecords(t, l, "s", entries)
	done, err := l.Purge(t.Context(), storetest.PurgeNow)
	require.NoError(t, err)
	require.EqualValues(t, len(entries), done[0].Records)
	storetest.RequireRecords(t, l, "s", entries)
}

// TestATailKeepsNoChunks: only payloads, for as long as nothing is sealed.
func TestATailKeepsNoChunks(t *testing.T) {
	e := logtest.Text("s", "x")
	var unsealed unsealed
	unsealed.add(0, 1, []wire.Stored{{Record: eventlog.Record{Entry: e}}}, sealBuffer)
	require.NotEqual(t, e.Encoded(), e)
	require.Equal(t, e.Encoded(), unsealed.records[0].Entry)
}

// A session was erased and its id used again; its old segment is still found.
func TestASegmentOfAnErasedSessionTakesNothingFromTheTail(t *testing.T) {
	tail := &unsealed{}
	tail.add(0, 12, []wire.Stored{{Record: eventlog.Record{Entry: storetest.TextEntry(0)}}}, sealBuffer)
	old := &wire.Segment{Index: 1}
	for seq := range uint64(9) {
		old.Records = append(old.Records, wire.Stored{Record: eventlog.Record{Sequence: seq + 1}})
	}
	tail.cut(old, 3)
	require.Len(t, tail.records, 1)
	require.True(t, tail.whole())
	require.Equal(t, 1, tail.count)
}
