package wire

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"
	"time"

	"github.com/helixd/helixd/eventlog"
)

const (
	// SegmentRecords and SegmentBytes are when a segment is full, and the most that it
	// may have; a larger record fills a segment alone.
	SegmentRecords = 200
	SegmentBytes   = 512 << 10
	// DirectorySize is how many earlier segments a segment names. From the last one, a
	// reader finds any segment of a session in one step per DirectorySize segments.
	DirectorySize = 256
)

const (
	// segmentVersion is the first byte of a packed segment. A version of helixd that does
	// not know it reports the segment as damaged.
	segmentVersion = 2
	// maxSegmentRecords and maxUnpacked bound the unpacked segment, in records and in
	// bytes. A record can be as large as a NATS message, 64 MiB, and is in memory at most
	// twice: as its payload and as its column.
	maxSegmentRecords = 4096
	maxUnpacked       = 160 << 20
)

// MessageOverhead is how many bytes a server stores with a message besides its subject,
// headers and data (nats-server 2.15, filestore.go: fileStoreMsgSizeRaw).
const MessageOverhead = 22 + 4 + 8

// SegmentHeaders is about the size in bytes of a segment's headers.
const SegmentHeaders = len("NATS/1.0\r\nNats-Expected-Last-Subject-Sequence: 123456\r\n\r\n")

// Segment is successive records of a session, unchanged.
type Segment struct {
	Index    uint64 // the segment's number within the session, from 0
	Previous uint64 // the record before the first one, 0 if there is none
	// Directory names the segments before this one, back to the last whose index is a
	// multiple of DirectorySize; Earlier is the one before those.
	Directory []SegmentRef
	Earlier   SegmentRef
	Records   []Stored
}

// SegmentRef is a segment's sequence in the stream, At, and its last record, Last.
type SegmentRef struct{ At, Last uint64 }

func (s *Segment) Last() uint64 { return s.Records[len(s.Records)-1].Sequence }

// Next returns an empty segment to follow s, whose sequence in the stream is at; s may be
// nil.
func (s *Segment) Next(at uint64) *Segment {
	if s == nil {
		return &Segment{}
	}
	n := &Segment{Index: s.Index + 1, Previous: s.Last(), Earlier: s.Earlier}
	ref := SegmentRef{At: at, Last: s.Last()}
	if n.Index%DirectorySize == 0 {
		n.Earlier = ref
	} else {
		n.Directory = append(append(n.Directory, s.Directory...), ref)
	}
	return n
}

// ErrDamaged: stored bytes are not those that were written.
var ErrDamaged = fmt.Errorf("jetstream: %w", eventlog.ErrDamaged)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Flags of a packed record.
const (
	flagBlob     = 1 << iota // the payload is a blob, whose address follows
	flagUnlinked             // helixd did not write it
	flagOrigin               // it was imported
)

// Pack encodes the segment: the version, the part that compresses badly, the compressed
// rest, and a checksum. What records have in common is stored once, the rest in columns.
func (s *Segment) Pack() ([]byte, error) {
	n := len(s.Records)
	plain, rest := packer{b: []byte{segmentVersion}}, packer{}
	plain.uint(s.Index)
	plain.uint(s.Previous)
	plain.uint(s.Earlier.At)
	plain.uint(s.Earlier.Last)
	plain.uint(uint64(len(s.Directory)))
	plain.differences(numbersOf(s.Directory, func(r *SegmentRef) int64 { return int64(r.At) }))
	plain.differences(numbersOf(s.Directory, func(r *SegmentRef) int64 { return int64(r.Last) }))
	plain.uint(uint64(n))
	plain.differences(numbersOf(s.Records, func(r *Stored) int64 { return r.Time.UnixNano() }))

	envelopes, of, err := distinctEnvelopes(s.Records)
	if err != nil {
		return nil, err
	}
	rest.uint(uint64(len(envelopes)))
	for _, e := range envelopes {
		rest.bytes(e)
	}
	rest.numbers(of)
	rest.numbers(numbersOf(s.Records, (*Stored).flags))
	rest.differences(numbersOf(s.Records, func(r *Stored) int64 { return int64(r.Sequence) }))
	rest.differences(numbersOf(s.Records, func(r *Stored) int64 { return int64(r.Ordinal) }))
	rest.origins(s.Records)
	rest.blobs(s.Records)
	rest.payloads(s.Records)
	size := len(rest.b)
	for i := range s.Records {
		size += len(s.Records[i].Payload)
	}
	if n > maxSegmentRecords || size > maxUnpacked {
		return nil, fmt.Errorf("jetstream: pack: %d records of %d bytes are too many for a segment", n, size)
	}
	b := segmentCodec().compress(rest.b, plain.b)
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli)), nil
}

func (r *Stored) flags() (flags int64) {
	if r.Blob != "" {
		flags |= flagBlob
	}
	if !r.Linked {
		flags |= flagUnlinked
	}
	if r.Origin != (eventlog.Origin{}) {
		flags |= flagOrigin
	}
	return flags
}

func (p *packer) origins(records []Stored) {
	var sequences, seconds, nanoseconds []int64
	for i := range records {
		if o := records[i].Origin; o != (eventlog.Origin{}) {
			sequences = append(sequences, int64(o.Sequence))
			seconds = append(seconds, o.Time.Unix()) // of any year
			nanoseconds = append(nanoseconds, int64(o.Time.Nanosecond()))
		}
	}
	p.differences(sequences)
	p.differences(seconds)
	p.numbers(nanoseconds)
}

func (p *packer) blobs(records []Stored) {
	var blobs [][]byte
	for i := range records {
		if blob := records[i].Blob; blob != "" {
			blobs = append(blobs, []byte(blob))
		}
	}
	p.strings(blobs)
}

// distinctEnvelopes returns the different envelopes, as JSON and without the fields that
// differ from record to record, and the envelope of each record.
func distinctEnvelopes(records []Stored) (distinct [][]byte, of []int64, err error) {
	known := map[eventlog.Envelope]int64{}
	of = make([]int64, len(records))
	for i := range records {
		e := &records[i].Envelope
		if i > 0 && sharesEnvelope(e, &records[i-1].Envelope) { // nearly always
			of[i] = of[i-1]
			continue
		}
		key := *e
		key.Ordinal, key.Origin = 0, eventlog.Origin{}
		n, ok := known[key]
		if !ok {
			n = int64(len(distinct))
			known[key] = n
			b, err := json.Marshal(key)
			if err != nil {
				return nil, nil, fmt.Errorf("jetstream: pack: %w", err)
			}
			distinct = append(distinct, b)
		}
		of[i] = n
	}
	return distinct, of, nil
}

func sharesEnvelope(a, b *eventlog.Envelope) bool {
	return a.Kind == b.Kind && a.Type == b.Type && a.Agent == b.Agent && a.Run == b.Run && a.Call == b.Call && a.Writer == b.Writer
}

// Unpack decodes a segment of any version. Payloads are parts of one allocation. Errors:
// ErrDamaged.
func Unpack(b []byte) (*Segment, error) {
	if len(b) < 5 || b[0] != segmentVersion && b[0] != segmentVersion1 {
		return nil, fmt.Errorf("%w: not a segment of version %d or %d", ErrDamaged, segmentVersion1, segmentVersion)
	}
	body, sum := b[:len(b)-4], binary.BigEndian.Uint32(b[len(b)-4:])
	if crc32.Checksum(body, castagnoli) != sum {
		return nil, fmt.Errorf("%w: segment checksum", ErrDamaged)
	}
	u := unpacker{b: body[1:]}
	s := u.segment
	if b[0] == segmentVersion1 {
		s = u.segmentV1
	}
	got := s()
	if u.err == nil && (len(u.b) != 0 || len(got.Records) == 0) {
		u.fail()
	}
	if u.err != nil {
		return nil, fmt.Errorf("%w: segment: %w", ErrDamaged, u.err)
	}
	return got, nil
}

func (u *unpacker) segment() *Segment {
	s, times := u.head()
	if u.err != nil {
		return s
	}
	if u.b, u.err = segmentCodec().decompress(u.b); u.err != nil {
		return s
	}
	n := len(times)
	envelopes := make([]eventlog.Envelope, u.atMost(n))
	for i := range envelopes {
		if err := json.Unmarshal(u.bytes(), &envelopes[i]); err != nil && u.err == nil {
			u.err = err
		}
	}
	of, flags := u.numbers(n), u.numbers(n)
	sequences, ordinals := u.differences(n), u.differences(n)
	if u.err != nil {
		return s
	}
	records := make([]Stored, n)
	previous := s.Previous
	for i := range records {
		r := &records[i]
		e := of.at(i)
		if e < 0 || e >= int64(len(envelopes)) {
			u.fail()
			return s
		}
		r.Envelope = envelopes[e]
		r.Sequence, r.Previous, r.Linked = uint64(sequences[i]), previous, flags.at(i)&flagUnlinked == 0
		r.Time, r.Ordinal = time.Unix(0, times[i]).UTC(), uint64(ordinals[i])
		previous = r.Sequence
	}
	u.origins(records, flags)
	u.blobs(records, flags)
	u.payloads(records)
	s.Records = records
	return s
}

// head decodes the part before the compressed one.
func (u *unpacker) head() (s *Segment, times column[int64]) {
	s = &Segment{Index: u.uint(), Previous: u.uint(), Earlier: SegmentRef{At: u.uint(), Last: u.uint()}}
	named := u.atMost(DirectorySize)
	at, last := u.differences(named), u.differences(named)
	for i := range at {
		s.Directory = append(s.Directory, SegmentRef{At: uint64(at[i]), Last: uint64(last[i])})
	}
	return s, u.differences(u.atMost(maxSegmentRecords))
}

func (u *unpacker) origins(records []Stored, flags column[int64]) {
	rows := flagged(len(records), flags, flagOrigin)
	sequences, seconds, nanoseconds := u.differences(len(rows)), u.differences(len(rows)), u.numbers(len(rows))
	if u.err != nil {
		return
	}
	for i, row := range rows {
		records[row].Origin = eventlog.Origin{Sequence: uint64(sequences[i]), Time: time.Unix(seconds[i], nanoseconds.at(i)).UTC()}
	}
}

func (u *unpacker) blobs(records []Stored, flags column[int64]) {
	rows := flagged(len(records), flags, flagBlob)
	blobs := u.strings(len(rows))
	if u.err != nil {
		return
	}
	for i, row := range rows {
		address := blobs.at(i)
		if len(address) > maxBlobAddress {
			u.fail()
			return
		}
		records[row].Blob = string(address)
	}
}

// maxBlobAddress is more bytes than a BlobRef takes. A column of equal addresses is
// stored once and copied to each record.
const maxBlobAddress = 128

// flagged returns the rows that have a flag.
func flagged(n int, flags column[int64], flag int64) (rows []int) {
	for row := range n {
		if flags.at(row)&flag != 0 {
			rows = append(rows, row)
		}
	}
	return rows
}

type packer struct{ b []byte }

func (p *packer) uint(n uint64) { p.b = binary.AppendUvarint(p.b, n) }
func (p *packer) int(n int64)   { p.b = binary.AppendVarint(p.b, n) }
func (p *packer) bytes(b []byte) {
	p.uint(uint64(len(b)))
	p.b = append(p.b, b...)
}

// unpacker decodes the output of packer; after an error it yields zeros.
type unpacker struct {
	b   []byte
	err error
}

var errTruncated = errors.New("unexpected end")

func (u *unpacker) fail() {
	u.b = nil
	if u.err == nil {
		u.err = errTruncated
	}
}

func (u *unpacker) uint() uint64 {
	n, size := binary.Uvarint(u.b)
	if size <= 0 {
		u.fail()
		return 0
	}
	u.b = u.b[size:]
	return n
}

func (u *unpacker) int() int64 {
	n, size := binary.Varint(u.b)
	if size <= 0 {
		u.fail()
		return 0
	}
	u.b = u.b[size:]
	return n
}

// atMost reads a number of items.
func (u *unpacker) atMost(most int) int {
	n := u.uint()
	if n > uint64(most) {
		u.fail()
		return 0
	}
	return int(n)
}

// count reads the number of items of at least least bytes each: never more than the
// remaining bytes can have.
func (u *unpacker) count(least int) uint64 {
	n := u.uint()
	if n > uint64(len(u.b)/least) {
		u.fail()
		return 0
	}
	return n
}

func (u *unpacker) bytes() []byte { return u.take(u.uint()) }

func (u *unpacker) take(n uint64) []byte {
	if n > uint64(len(u.b)) {
		u.fail()
		return nil
	}
	b := u.b[:n:n]
	u.b = u.b[n:]
	return b
}

// Reaches returns the last sequence that a segment has or a floor names; readable is
// false if that can't be decoded.
func Reaches(m Message) (last uint64, readable bool) {
	if n, err := strconv.ParseUint(string(m.Data), 10, 64); err == nil {
		return n, true
	}
	if s, err := Unpack(m.Data); err == nil {
		return s.Last(), true
	}
	return 0, false
}

// Take returns the segment after s, whose sequence in the stream is at, with the first of
// these records: as many as fill it, or all of them if all is set and they are fewer. If
// before is set, no record may be later. It returns nil if there is no segment to write.
func (s *Segment) Take(at uint64, records []Stored, before time.Time, all bool) *Segment {
	n, size, full := 0, 0, false
	for n < len(records) && !full {
		r := records[n]
		if !before.IsZero() && r.Time.After(before) {
			break
		}
		if n > 0 && size+len(r.Payload) > SegmentBytes {
			full = true
			break
		}
		n, size = n+1, size+len(r.Payload)
		full = n == SegmentRecords || size >= SegmentBytes
	}
	if n == 0 || !full && !(all && n == len(records)) {
		return nil
	}
	next := s.Next(at)
	next.Records = records[:n:n]
	return next
}
