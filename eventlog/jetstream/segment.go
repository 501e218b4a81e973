package jetstream

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"time"

	"github.com/helixd/helixd/eventlog"
)

const (
	// segmentRecords and segmentBytes are where a segment is full, and what
	// a packed one may hold at most; a single larger record fills one alone.
	segmentRecords = 200
	segmentBytes   = 512 << 10
	// directorySize is how many segments before it one names. A reader finds
	// any segment of a session from the last one in a step for so many.
	directorySize = 256
)

const (
	// segmentVersion is the first byte of a packed segment. A version of helixd that does
	// not know it calls the segment damaged.
	segmentVersion = 2
	// maxSegmentRecords and maxUnpacked bound what a segment unpacks to, in records and in
	// bytes. A record can be as large as a NATS message, 64 MiB, and is stored twice at most:
	// its payload and its column.
	maxSegmentRecords = 4096
	maxUnpacked       = 160 << 20
)

// messageOverhead is what a server stores with a message beside its subject, headers and
// data (nats-server 2.15, filestore.go: fileStoreMsgSizeRaw).
const messageOverhead = 22 + 4 + 8

// segmentHeaders are about what the headers of a segment take.
const segmentHeaders = len("NATS/1.0\r\nNats-Expected-Last-Subject-Sequence: 123456\r\n\r\n")

// segment holds successive records of a session, unchanged.
type segment struct {
	index    uint64 // of the session's segments, from 0
	previous uint64 // the record before the first one, 0 if there is none
	// directory names the segments before this one, back to the last whose
	// index is a multiple of directorySize; earlier is the one before those.
	directory []segmentRef
	earlier   segmentRef
	records   []stored
}

// segmentRef names a segment by its last record and its place in the stream.
type segmentRef struct{ at, last uint64 }

func (s *segment) last() uint64 { return s.records[len(s.records)-1].Sequence }

// next returns an empty segment to follow s, which is at the given place; s
// may be nil.
func (s *segment) next(at uint64) *segment {
	if s == nil {
		return &segment{}
	}
	n := &segment{index: s.index + 1, previous: s.last(), earlier: s.earlier}
	ref := segmentRef{at: at, last: s.last()}
	if n.index%directorySize == 0 {
		n.earlier = ref
	} else {
		n.directory = append(append(n.directory, s.directory...), ref)
	}
	return n
}

// errDamaged tells that stored bytes are not what was stored.
var errDamaged = fmt.Errorf("jetstream: %w", eventlog.ErrDamaged)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Flags of a packed record.
const (
	flagBlob     = 1 << iota // a blob's address follows
	flagUnlinked             // helixd did not write it
	flagOrigin               // it was imported
)

// pack encodes the segment: the version, what compresses badly, the rest compressed, and a
// checksum. What records have in common is stored once, the rest in columns.
func (s *segment) pack() ([]byte, error) {
	n := len(s.records)
	plain, rest := packer{b: []byte{segmentVersion}}, packer{}
	plain.uint(s.index)
	plain.uint(s.previous)
	plain.uint(s.earlier.at)
	plain.uint(s.earlier.last)
	plain.uint(uint64(len(s.directory)))
	plain.differences(numbersOf(s.directory, func(r *segmentRef) int64 { return int64(r.at) }))
	plain.differences(numbersOf(s.directory, func(r *segmentRef) int64 { return int64(r.last) }))
	plain.uint(uint64(n))
	plain.differences(numbersOf(s.records, func(r *stored) int64 { return r.Time.UnixNano() }))

	envelopes, of, err := distinctEnvelopes(s.records)
	if err != nil {
		return nil, err
	}
	rest.uint(uint64(len(envelopes)))
	for _, e := range envelopes {
		rest.bytes(e)
	}
	rest.numbers(of)
	rest.numbers(numbersOf(s.records, (*stored).flags))
	rest.differences(numbersOf(s.records, func(r *stored) int64 { return int64(r.Sequence) }))
	rest.differences(numbersOf(s.records, func(r *stored) int64 { return int64(r.Ordinal) }))
	rest.origins(s.records)
	rest.blobs(s.records)
	rest.payloads(s.records)
	size := len(rest.b)
	for i := range s.records {
		size += len(s.records[i].Payload)
	}
	if n > maxSegmentRecords || size > maxUnpacked {
		return nil, fmt.Errorf("jetstream: pack: %d records of %d bytes are too many for a segment", n, size)
	}
	b := segmentCodec().compress(rest.b, plain.b)
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli)), nil
}

func (r *stored) flags() (flags int64) {
	if r.blob != "" {
		flags |= flagBlob
	}
	if !r.linked {
		flags |= flagUnlinked
	}
	if r.Origin != (eventlog.Origin{}) {
		flags |= flagOrigin
	}
	return flags
}

func (p *packer) origins(records []stored) {
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

func (p *packer) blobs(records []stored) {
	var blobs [][]byte
	for i := range records {
		if blob := records[i].blob; blob != "" {
			blobs = append(blobs, []byte(blob))
		}
	}
	p.strings(blobs)
}

// distinctEnvelopes returns the different envelopes, as JSON and without what
// differs from record to record, and which of them each record has.
func distinctEnvelopes(records []stored) (distinct [][]byte, of []int64, err error) {
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

// unpack decodes a segment of any version. Payloads are parts of one allocation.
func unpack(b []byte) (*segment, error) {
	if len(b) < 5 || b[0] != segmentVersion && b[0] != segmentVersion1 {
		return nil, fmt.Errorf("%w: not a segment of version %d or %d", errDamaged, segmentVersion1, segmentVersion)
	}
	body, sum := b[:len(b)-4], binary.BigEndian.Uint32(b[len(b)-4:])
	if crc32.Checksum(body, castagnoli) != sum {
		return nil, fmt.Errorf("%w: segment checksum", errDamaged)
	}
	u := unpacker{b: body[1:]}
	s := u.segment
	if b[0] == segmentVersion1 {
		s = u.segmentV1
	}
	got := s()
	if u.err == nil && (len(u.b) != 0 || len(got.records) == 0) {
		u.fail()
	}
	if u.err != nil {
		return nil, fmt.Errorf("%w: segment: %w", errDamaged, u.err)
	}
	return got, nil
}

func (u *unpacker) segment() *segment {
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
	records := make([]stored, n)
	previous := s.previous
	for i := range records {
		r := &records[i]
		e := of.at(i)
		if e < 0 || e >= int64(len(envelopes)) {
			u.fail()
			return s
		}
		r.Envelope = envelopes[e]
		r.Sequence, r.previous, r.linked = uint64(sequences[i]), previous, flags.at(i)&flagUnlinked == 0
		r.Time, r.Ordinal = time.Unix(0, times[i]).UTC(), uint64(ordinals[i])
		previous = r.Sequence
	}
	u.origins(records, flags)
	u.blobs(records, flags)
	u.payloads(records)
	s.records = records
	return s
}

// head reads what precedes what is compressed.
func (u *unpacker) head() (s *segment, times column[int64]) {
	s = &segment{index: u.uint(), previous: u.uint(), earlier: segmentRef{at: u.uint(), last: u.uint()}}
	named := u.atMost(directorySize)
	at, last := u.differences(named), u.differences(named)
	for i := range at {
		s.directory = append(s.directory, segmentRef{at: uint64(at[i]), last: uint64(last[i])})
	}
	return s, u.differences(u.atMost(maxSegmentRecords))
}

func (u *unpacker) origins(records []stored, flags column[int64]) {
	rows := flagged(len(records), flags, flagOrigin)
	sequences, seconds, nanoseconds := u.differences(len(rows)), u.differences(len(rows)), u.numbers(len(rows))
	if u.err != nil {
		return
	}
	for i, row := range rows {
		records[row].Origin = eventlog.Origin{Sequence: uint64(sequences[i]), Time: time.Unix(seconds[i], nanoseconds.at(i)).UTC()}
	}
}

func (u *unpacker) blobs(records []stored, flags column[int64]) {
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
		records[row].blob = string(address)
	}
}

// maxBlobAddress is more than a blobRef takes, in bytes. A column of equal addresses is
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

// unpacker reads what packer wrote; after an error it yields zeros.
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

// count reads how many items of at least so many bytes follow: never more than
// there is room for.
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
