package jetstream

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/internal/wire"
)

// published stores a message that helixd did not write.
func published(t *testing.T, l *Log, subject string, h nats.Header, data []byte) {
	t.Helper()
	answer, err := l.nc.RequestMsg(&nats.Msg{Subject: subject, Header: h, Data: data}, time.Minute)
	require.NoError(t, err)
	ack, err := parseAck(answer.Data)
	require.NoError(t, err)
	require.Nil(t, ack.Error)
}

// TestAForeignMessageHidesNoPurgedRecord: it names no predecessor, so that
// only the segments can tell what stands before it.
func TestAForeignMessageHidesNoPurgedRecord(t *testing.T) {
	t.Parallel()
	l := openLog(t, nil)
	own := textEntries("own", 10)
	appended(t, l, "s", 0, own)
	_, err := l.Purge(t.Context(), purgeNow)
	require.NoError(t, err)
	published(t, l, "helix.log.0.s", nil, []byte("hello"))
	requireRecords(t, l, "s", append(own, eventlog.Entry{Payload: []byte("hello")}))
}

// TestAForeignMessageWithAKindIsRead: it looks like the second record of an
// append whose first one is lost.
func TestAForeignMessageWithAKindIsRead(t *testing.T) {
	t.Parallel()
	l := openLog(t, nil)
	own := textEntries("own", 3)
	appended(t, l, "s", 0, own)
	appended(t, l, "other", 0, textEntries("other", 3))
	published(t, l, "helix.log.0.s", nats.Header{wire.HeaderKind: {"chunk"}}, []byte("{}"))
	requireRecords(t, l, "s", append(own, eventlog.Entry{
		Envelope: eventlog.Envelope{Kind: eventlog.KindChunk}, Payload: []byte("{}"),
	}))
}

func TestASubjectOfNoSessionStopsNoPurge(t *testing.T) {
	t.Parallel()
	l := openLog(t, nil)
	own := textEntries("own", 10)
	appended(t, l, "s", 0, own)
	for _, subject := range []string{"helix.log.0.%zz", "helix.log.0.%00", "helix.log.0.%41", "helix.seg.0.%zz"} {
		published(t, l, subject, nil, []byte("x"))
	}
	_, err := l.Purge(t.Context(), purgeNow)
	require.NoError(t, err)
	var ids []string
	for id, err := range l.Sessions(t.Context()) {
		require.NoError(t, err)
		ids = append(ids, id)
	}
	require.Equal(t, []string{"s"}, ids)
	requireRecords(t, l, "s", own)
}

// TestAForeignHeaderStopsNoPurge: the copy in a segment, where an envelope is
// JSON, is compared with what the log says.
func TestAForeignHeaderStopsNoPurge(t *testing.T) {
	t.Parallel()
	l := openLog(t, nil)
	appended(t, l, "s", 0, textEntries("own", 10))
	published(t, l, "helix.log.0.s", nats.Header{"Helix-Type": {"%FF"}}, nil)
	done, err := l.Purge(t.Context(), purgeNow)
	require.NoError(t, err)
	require.EqualValues(t, 11, done[0].Records)
}

func TestASegmentThatNamesItselfIsDamaged(t *testing.T) {
	l := openLog(t, nil)
	sealer := l.sealerOf("s")
	sealer.working.Lock() // so that no other segment is the first
	defer sealer.working.Unlock()
	last := appended(t, l, "s", 0, textEntries("x", 2*fewSequences))
	s := &wire.Segment{Index: 300, Earlier: wire.SegmentRef{At: 1, Last: 1 << 40}}
	s.Records = []wire.Stored{{Record: eventlog.Record{Sequence: last, Entry: textEntry(1)}, Linked: true}}
	raw, err := s.Pack()
	require.NoError(t, err)
	published(t, l, "helix.seg.0.s", nil, raw)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, err = range l.Read(ctx, "s", 1, 0) {
	}
	require.ErrorIs(t, err, eventlog.ErrDamaged)
}
