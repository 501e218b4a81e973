package jetstream

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
)

func aSegment() *segment {
	s := &segment{
		index: 300, previous: 41, earlier: segmentRef{at: 9, last: 7},
		directory: []segmentRef{{at: 10, last: 20}, {at: 12, last: 41}},
	}
	at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	for i := range 5 {
		previous := s.previous
		if i > 0 {
			previous = s.last()
		}
		s.records = append(s.records, stored{
			Record: eventlog.Record{Sequence: 42 + 3*uint64(i), Time: at.Add(time.Duration(5-i) * time.Second), Entry: eventlog.Entry{
				Envelope: eventlog.Envelope{
					Kind: eventlog.KindChunk, Type: "text_delta", Agent: "ä b", Writer: fmt.Sprint("w", i/3), Ordinal: uint64(100 - i),
				},
				Payload: []byte(fmt.Sprint("payload ", i)),
			}},
			previous: previous, linked: i != 2,
		})
	}
	s.records[3].blob = "abc:5"
	s.records[1].Origin = eventlog.Origin{Sequence: 7, Time: at.Add(time.Hour)}
	s.records[4].Origin = eventlog.Origin{Sequence: 5, Time: at}
	return s
}

func TestSegmentsComeBackAsTheyWere(t *testing.T) {
	want := aSegment()
	b, err := want.pack()
	require.NoError(t, err)
	got, err := unpack(b)
	require.NoError(t, err)
	require.Equal(t, want, got)
}

func TestADamagedSegmentIsAnError(t *testing.T) {
	b, err := aSegment().pack()
	require.NoError(t, err)
	for i := range b {
		bad := append([]byte(nil), b...)
		bad[i] ^= 0x10
		_, err := unpack(bad)
		require.ErrorIs(t, err, eventlog.ErrDamaged, "byte %d", i)
		_, err = unpack(b[:i])
		require.ErrorIs(t, err, eventlog.ErrDamaged, "cut at %d", i)
	}
}

// FuzzUnpack: whatever bytes carry a right checksum, unpacking ends and does
// not panic.
func FuzzUnpack(f *testing.F) {
	b, err := aSegment().pack()
	require.NoError(f, err)
	f.Add(b[:len(b)-4])
	f.Fuzz(func(t *testing.T, b []byte) {
		b = binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
		s, err := unpack(b)
		if err != nil {
			require.ErrorIs(t, err, eventlog.ErrDamaged)
			return
		}
		again, err := s.pack()
		require.NoError(t, err)
		_, err = unpack(again)
		require.NoError(t, err)
	})
}
