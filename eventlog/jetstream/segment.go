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

// segmentVersion is the first byte of a packed segment.
const segmentVersion = 1

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

// pack encodes the segment: version, header, directory, the distinct
// envelopes, the records as differences to the ones before, and a checksum.
// The envelope is JSON, so that fields can be added.
func (s *segment) pack() ([]byte, error) {
	p := packer{b: []byte{segmentVersion}}
	p.uint(s.index)
	p.uint(s.previous)
	p.uint(uint64(len(s.directory)))
	ref := segmentRef{}
	for _, d := range s.directory {
		p.uint(d.at - ref.at)
		p.uint(d.last - ref.last)
		ref = d
	}
	p.uint(s.earlier.at)
	p.uint(s.earlier.last)
	envelopes, of, err := distinctEnvelopes(s.records)
	if err != nil {
		return nil, err
	}
	p.uint(uint64(len(envelopes)))
	for _, e := range envelopes {
		p.bytes(e)
	}
	p.uint(uint64(len(s.records)))
	sequence, at, ordinal := s.previous, int64(0), int64(0)
	var origin, originAt int64
	for i, r := range s.records {
		flags := uint64(0)
		if r.blob != "" {
			flags |= flagBlob
		}
		if !r.linked {
			flags |= flagUnlinked
		}
		if r.Origin != (eventlog.Origin{}) {
			flags |= flagOrigin
		}
		p.uint(flags)
		p.uint(r.Sequence - sequence)
		p.int(r.Time.UnixNano() - at)
		p.int(int64(r.Ordinal) - ordinal)
		p.uint(uint64(of[i]))
		if flags&flagOrigin != 0 {
			p.int(int64(r.Origin.Sequence) - origin)
			p.int(r.Origin.Time.Unix() - originAt) // of any year
			p.uint(uint64(r.Origin.Time.Nanosecond()))
			origin, originAt = int64(r.Origin.Sequence), r.Origin.Time.Unix()
		}
		if r.blob != "" {
			p.bytes([]byte(r.blob))
		}
		p.bytes(r.Payload)
		sequence, at, ordinal = r.Sequence, r.Time.UnixNano(), int64(r.Ordinal)
	}
	return binary.BigEndian.AppendUint32(p.b, crc32.Checksum(p.b, castagnoli)), nil
}

// distinctEnvelopes returns the different envelopes, as JSON and without what
// differs from record to record, and which of them each record has.
func distinctEnvelopes(records []stored) (distinct [][]byte, of []int, err error) {
	known := map[eventlog.Envelope]int{}
	for _, r := range records {
		e := r.Envelope
		e.Ordinal, e.Origin = 0, eventlog.Origin{}
		i, ok := known[e]
		if !ok {
			i = len(distinct)
			known[e] = i
			b, err := json.Marshal(e)
			if err != nil {
				return nil, nil, fmt.Errorf("jetstream: pack: %w", err)
			}
			distinct = append(distinct, b)
		}
		of = append(of, i)
	}
	return distinct, of, nil
}

// unpack decodes a segment. Payloads are parts of b.
func unpack(b []byte) (*segment, error) {
	if len(b) < 5 || b[0] != segmentVersion {
		return nil, fmt.Errorf("%w: not a segment of version %d", errDamaged, segmentVersion)
	}
	body, sum := b[:len(b)-4], binary.BigEndian.Uint32(b[len(b)-4:])
	if crc32.Checksum(body, castagnoli) != sum {
		return nil, fmt.Errorf("%w: segment checksum", errDamaged)
	}
	u := unpacker{b: body[1:]}
	s := &segment{index: u.uint(), previous: u.uint()}
	ref := segmentRef{}
	for range u.count(2) {
		ref = segmentRef{at: ref.at + u.uint(), last: ref.last + u.uint()}
		s.directory = append(s.directory, ref)
	}
	s.earlier = segmentRef{at: u.uint(), last: u.uint()}
	envelopes := make([]eventlog.Envelope, 0, 16)
	for range u.count(3) {
		var e eventlog.Envelope
		if err := json.Unmarshal(u.bytes(), &e); err != nil && u.err == nil {
			u.err = err
		}
		envelopes = append(envelopes, e)
	}
	var origin, originAt int64
	n := u.count(6)
	s.records = make([]stored, 0, n)
	sequence, at, ordinal := s.previous, int64(0), int64(0)
	for range n {
		r := stored{previous: sequence}
		flags := u.uint()
		r.linked = flags&flagUnlinked == 0
		sequence += u.uint()
		at += u.int()
		ordinal += u.int()
		r.Sequence, r.Time = sequence, time.Unix(0, at).UTC()
		if i := u.uint(); i < uint64(len(envelopes)) {
			r.Envelope = envelopes[i]
		} else {
			u.fail()
		}
		r.Ordinal = uint64(ordinal)
		if flags&flagOrigin != 0 {
			origin += u.int()
			originAt += u.int()
			r.Origin = eventlog.Origin{Sequence: uint64(origin), Time: time.Unix(originAt, int64(u.uint())).UTC()}
		}
		if flags&flagBlob != 0 {
			r.blob = string(u.bytes())
		}
		r.Payload = u.bytes()
		s.records = append(s.records, r)
	}
	if u.err == nil && (len(u.b) != 0 || n == 0) {
		u.fail()
	}
	if u.err != nil {
		return nil, fmt.Errorf("%w: segment: %w", errDamaged, u.err)
	}
	return s, nil
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

func (u *unpacker) bytes() []byte {
	n := u.uint()
	if n > uint64(len(u.b)) {
		u.fail()
		return nil
	}
	b := u.b[:n:n]
	u.b = u.b[n:]
	return b
}
