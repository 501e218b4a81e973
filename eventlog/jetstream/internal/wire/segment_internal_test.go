package wire

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
)

func aSegment() *Segment {
	s := &Segment{
		Index: 300, Previous: 41, Earlier: SegmentRef{At: 9, Last: 7},
		Directory: []SegmentRef{{At: 10, Last: 20}, {At: 12, Last: 41}},
	}
	at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	for i := range 5 {
		previous := s.Previous
		if i > 0 {
			previous = s.Last()
		}
		s.Records = append(s.Records, Stored{
			Record: eventlog.Record{Sequence: 42 + 3*uint64(i), Time: at.Add(time.Duration(5-i) * time.Second), Entry: eventlog.Entry{
				Envelope: eventlog.Envelope{
					Kind: eventlog.KindChunk, Type: "text_delta", Agent: "ä b", Writer: fmt.Sprint("w", i/3), Ordinal: uint64(100 - i),
				},
				Payload: []byte(fmt.Sprint("payload ", i)),
			}},
			Previous: previous, Linked: i != 2,
		})
	}
	s.Records[3].Blob = "abc:5"
	s.Records[1].Origin = eventlog.Origin{Sequence: 7, Time: at.Add(time.Hour)}
	s.Records[4].Origin = eventlog.Origin{Sequence: 5, Time: at}
	return s
}

func TestSegmentsAreDecodedUnchanged(t *testing.T) {
	want := aSegment()
	b, err := want.Pack()
	require.NoError(t, err)
	got, err := Unpack(b)
	require.NoError(t, err)
	require.Equal(t, want, got)
}

// TestSegmentsOfVersion1AreRead: the file was packed by the version before columns. It is
// never written again.
func TestSegmentsOfVersion1AreRead(t *testing.T) {
	b, err := os.ReadFile("testdata/segment.v1")
	require.NoError(t, err)
	got, err := Unpack(b)
	require.NoError(t, err)
	require.Equal(t, aSegment(), got)
}

// TestSegmentsOfVersion2AreRead: the present form can't change either.
func TestSegmentsOfVersion2AreRead(t *testing.T) {
	b, err := os.ReadFile("testdata/segment.v2")
	require.NoError(t, err)
	got, err := Unpack(b)
	require.NoError(t, err)
	require.Equal(t, aSegment(), got)
}

func TestASegmentOfALaterVersionIsRefused(t *testing.T) {
	b, err := aSegment().Pack()
	require.NoError(t, err)
	b = b[:len(b)-4]
	b[0] = segmentVersion + 1
	_, err = Unpack(checked(b))
	require.ErrorIs(t, err, eventlog.ErrDamaged)
	require.ErrorContains(t, err, "not a segment of version 1 or 2")
}

// unusual are payloads that no codec of helixd writes, and some that are just not cut.
var unusual = []string{
	"", "{}", "[]", "null", "-", "{", `{"a"`, `{"a":`, `{"a":}`, `{"a":1`, `{"a":1,}`, `{"a":1}}`, `{"a":1} `, ` {"a":1}`, `{ "a": 1, "b" :"c"}`,
	"\x00", "\x01", "{\"a\x00\":1}", "{\"a\":\"\x00\x01\"}", "\xff\xfe", "{\"a\":\xff}", "not JSON",
	`{"a":"\\","b":"\"","c":"\u0000\\\""}`, `{"a":"unfinished\`, `{"a":"x"y}`, `{"a":[1,"]",{"b":"}"}],"c":{"d":{}}}`, `{"a":[}`,
	`{"a":0,"b":-0,"c":00,"d":01,"e":-1,"f":1.0,"g":1e3,"h":999999999999999999,"i":9223372036854775807,"j":-9223372036854775808,"k":123456789012345678901}`,
	`{"a":true,"b":false,"c":null,"a":true}`, `{"a":1,"a":"1","":""}`,
	"{" + strings.Repeat(`"a":1,`, maxHoles-1) + `"b":2}`, "{" + strings.Repeat(`"a":1,`, maxHoles) + `"b":2}`,
	strings.Repeat(`{"a":`, 1000) + "1" + strings.Repeat("}", 1000),
}

func payloadsOf(all ...string) *Segment {
	s := &Segment{}
	for i, payload := range all {
		previous := uint64(i)
		s.Records = append(s.Records, Stored{
			Record:   eventlog.Record{Sequence: previous + 1, Time: time.Unix(0, 0).UTC(), Entry: eventlog.Entry{Payload: []byte(payload)}},
			Previous: previous, Linked: true,
		})
	}
	return s
}

func requireSame(t *testing.T, want *Segment) {
	t.Helper()
	b, err := want.Pack()
	require.NoError(t, err)
	got, err := Unpack(b)
	require.NoError(t, err)
	require.Equal(t, want, got)
}

func TestUnusualPayloadsAreDecodedUnchanged(t *testing.T) {
	for _, payload := range unusual {
		requireSame(t, payloadsOf(payload))
		requireSame(t, payloadsOf(payload, `{"a":1}`, payload, payload+payload))
	}
	requireSame(t, payloadsOf(unusual...))
	var forms []string
	for i := range 2 * maxForms {
		forms = append(forms, fmt.Sprintf(`{"member-%d":"x"}`, i))
	}
	requireSame(t, payloadsOf(forms...))
	requireSame(t, payloadsOf(append(forms, forms...)...))
}

// TestASegmentThatUnpacksToTooMuchIsDamaged: a few bytes can't use all memory.
func TestASegmentThatUnpacksToTooMuchIsDamaged(t *testing.T) {
	b, err := payloadsOf(slices.Repeat([]string{"x"}, maxSegmentRecords)...).Pack()
	require.NoError(t, err)
	head, columns := apart(t, b)
	columns, ok := bytes.CutSuffix(columns, []byte{columnEqual, 1, 'x'})
	require.True(t, ok, "the payloads are equal: one is stored")
	p := packer{b: append(columns, columnEqual)}
	p.bytes(make([]byte, 1<<20))
	require.NotPanics(t, func() { _, err = Unpack(checked(segmentCodec().compress(p.b, head))) })
	require.ErrorIs(t, err, eventlog.ErrDamaged)
	_, err = payloadsOf(slices.Repeat([]string{strings.Repeat("x", 1<<20)}, maxUnpacked>>20)...).Pack()
	require.ErrorContains(t, err, "too many", "what could not be unpacked is not packed")
	_, err = payloadsOf(make([]string, maxSegmentRecords+1)...).Pack()
	require.ErrorContains(t, err, "too many")
}

// apart returns the part of a segment before the compressed one, and the compressed one.
func apart(t testing.TB, b []byte) (head, columns []byte) {
	u := unpacker{b: b[1 : len(b)-4]}
	u.head()
	require.NoError(t, u.err)
	columns, err := segmentCodec().decompress(u.b)
	require.NoError(t, err)
	return b[: len(b)-4-len(u.b) : len(b)-4-len(u.b)], columns
}

// checked appends the checksum.
func checked(b []byte) []byte {
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// FuzzUnpack: unpacking any bytes with a correct checksum ends without a panic.
func FuzzUnpack(f *testing.F) {
	for _, name := range []string{"testdata/segment.v1", "testdata/segment.v2"} {
		b, err := os.ReadFile(name)
		require.NoError(f, err)
		f.Add(b[:len(b)-4])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := Unpack(checked(b))
		if err != nil {
			require.ErrorIs(t, err, eventlog.ErrDamaged)
			return
		}
		if again, err := s.Pack(); err == nil {
			_, err = Unpack(again)
			require.NoError(t, err)
		}
	})
}

// FuzzUnpackColumns is FuzzUnpack for the compressed part.
func FuzzUnpackColumns(f *testing.F) {
	b, err := os.ReadFile("testdata/segment.v2")
	require.NoError(f, err)
	head, columns := apart(f, b)
	f.Add(columns)
	f.Fuzz(func(t *testing.T, columns []byte) {
		s, err := Unpack(checked(segmentCodec().compress(columns, head)))
		if err != nil {
			require.ErrorIs(t, err, eventlog.ErrDamaged)
			return
		}
		if b, err := s.Pack(); err == nil {
			_, err = Unpack(b)
			require.NoError(t, err)
		}
	})
}

// FuzzPayloads: payloads are decoded byte for byte.
func FuzzPayloads(f *testing.F) {
	for _, payload := range unusual {
		f.Add([]byte(payload), []byte(`{"type":"text_delta","delta":"a","timestamp":1}`))
	}
	f.Fuzz(func(t *testing.T, a, b []byte) {
		requireSame(t, payloadsOf(string(a), string(b), string(a), string(a)+string(b)))
	})
}

// TestASegmentIsNoLargerInMemoryThanItsBytesAllow: each record takes at least some bytes
// of the segment, whatever number of records it claims.
func TestASegmentIsNoLargerInMemoryThanItsBytesAllow(t *testing.T) {
	const size = 1 << 20
	p := packer{b: []byte{segmentVersion1}}
	for range 5 { // index, previous, directory, earlier
		p.uint(0)
	}
	p.uint(1) // envelope
	p.bytes([]byte("{}"))
	p.uint(size) // records
	p.b = append(p.b, make([]byte, size)...)
	raw := binary.BigEndian.AppendUint32(p.b, crc32.Checksum(p.b, castagnoli))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := Unpack(raw)
	runtime.ReadMemStats(&after)
	require.ErrorIs(t, err, eventlog.ErrDamaged)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(64*size))
}
