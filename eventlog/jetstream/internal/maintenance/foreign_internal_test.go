package maintenance

import (
	"context"
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
)

// TestAForeignMessageHidesNoPurgedRecord: it names no predecessor, so that only the
// segments know which record is before it.
func TestAForeignMessageHidesNoPurgedRecord(t *testing.T) {
	t.Parallel()
	l := openLog(t, link.Options{})
	own := storetest.TextEntries("own", 10)
	storetest.Appended(t, l, "s", 0, own)
	_, err := l.Purge(t.Context(), storetest.PurgeNow)
	require.NoError(t, err)
	storetest.PublishForeign(t, l.Conn, "helix.log.0.s", nil, []byte("hello"))
	storetest.RequireRecords(t, l, "s", append(own, eventlog.Entry{Payload: []byte("hello")}))
}

// TestAForeignMessageWithAKindIsRead: it looks like the second record of an
// append whose first one is lost.
func TestAForeignMessageWithAKindIsRead(t *testing.T) {
	t.Parallel()
	l := openLog(t, link.Options{})
	own := storetest.TextEntries("own", 3)
	storetest.Appended(t, l, "s", 0, own)
	storetest.Appended(t, l, "other", 0, storetest.TextEntries("other", 3))
	storetest.PublishForeign(t, l.Conn, "helix.log.0.s", nats.Header{wire.HeaderKind: {"chunk"}}, []byte("{}"))
	storetest.RequireRecords(t, l, "s", append(own, eventlog.Entry{
		Envelope: eventlog.Envelope{Kind: eventlog.KindChunk}, Payload: []byte("{}"),
	}))
}

func TestASubjectOfNoSessionStopsNoPurge(t *testing.T) {
	t.Parallel()
	l := openLog(t, link.Options{})
	own := storetest.TextEntries("own", 10)
	storetest.Appended(t, l, "s", 0, own)
	for _, subject := range []string{"helix.log.0.%zz", "helix.log.0.%00", "helix.log.0.%41", "helix.seg.0.%zz"} {
		storetest.PublishForeign(t, l.Conn, subject, nil, []byte("x"))
	}
	_, err := l.Purge(t.Context(), storetest.PurgeNow)
	require.NoError(t, err)
	var ids []string
	for id, err := range l.Sessions(t.Context()) {
		require.NoError(t, err)
		ids = append(ids, id)
	}
	require.Equal(t, []string{"s"}, ids)
	storetest.RequireRecords(t, l, "s", own)
}

// TestAForeignHeaderStopsNoPurge: the copy in a segment, where an envelope is JSON, is
// compared with the log's.
func TestAForeignHeaderStopsNoPurge(t *testing.T) {
	t.Parallel()
	l := openLog(t, link.Options{})
	storetest.Appended(t, l, "s", 0, storetest.TextEntries("own", 10))
	storetest.PublishForeign(t, l.Conn, "helix.log.0.s", nats.Header{"Helix-Type": {"%FF"}}, nil)
	done, err := l.Purge(t.Context(), storetest.PurgeNow)
	require.NoError(t, err)
	require.EqualValues(t, 11, done[0].Records)
}

// TestAForeignAddressStopsNoPurge: a segment has none that is so long.
func TestAForeignAddressStopsNoPurge(t *testing.T) {
	t.Parallel()
	l := openLog(t, link.Options{})
	storetest.Appended(t, l, "s", 0, storetest.TextEntries("own", 10))
	storetest.PublishForeign(t, l.Conn, "helix.log.0.s", nats.Header{"Helix-Blob": {strings.Repeat("x", 200)}}, nil)
	done, err := l.Purge(t.Context(), storetest.PurgeNow)
	require.NoError(t, err)
	require.EqualValues(t, 11, done[0].Records)
}

func TestASegmentThatNamesItselfIsDamaged(t *testing.T) {
	l := openLog(t, link.Options{})
	sealer := l.sealerOf("s")
	sealer.working.Lock() // so that no other segment is the first
	defer sealer.working.Unlock()
	last := storetest.Appended(t, l, "s", 0, storetest.TextEntries("x", 2*store.FewSequences))
	s := &wire.Segment{Index: 300, Earlier: wire.SegmentRef{At: 1, Last: 1 << 40}}
	s.Records = []wire.Stored{{Record: eventlog.Record{Sequence: last, Entry: storetest.TextEntry(1)}, Linked: true}}
	raw, err := s.Pack()
	require.NoError(t, err)
	storetest.PublishForeign(t, l.Conn, "helix.seg.0.s", nil, raw)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, err = range l.Read(ctx, "s", 1, 0) {
	}
	require.ErrorIs(t, err, eventlog.ErrDamaged)
}

// TestAForeignMarkOfAnErasureStopsNoNode: every node reads it, again after each start.
func TestAForeignMarkOfAnErasureStopsNoNode(t *testing.T) {
	t.Parallel()
	l := serve(t, t.TempDir(), link.Options{})
	storetest.Appended(t, l, "s", 0, storetest.TextEntries("x", 3))
	storetest.PublishForeign(t, l.Conn, "helix.erased.0.foreign", nil, []byte(`{"parts":[{"stream":"HELIX_LOG_0","upTo":9,"replicas":3}],"removed":true,"round":1}`))
	for _, lead := range []bool{false, true} {
		_, err := l.FinishErasures(t.Context(), lead)
		require.ErrorIs(t, err, eventlog.ErrDamaged)
	}
	l.erase("s")
}
