package embed

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/klauspost/compress/s2"
	"github.com/minio/highwayhash"
	"github.com/nats-io/nats-server/v2/server"
)

// A block is a file of a stream's messages, as nats-server's filestore writes
// it: records of
//
//	length(4) sequence(8) time(8) subject length(2) subject [headers length(4)] headers payload hash(8)
//
// little endian, with headers if the length's highest bit is set. Two bits of
// the sequence mark what was overwritten and what only says that another
// message was deleted. A full block of a compressed stream is "cmp", the
// algorithm, the size and an S2 stream, and the last record's hash behind it.
const (
	recordHeader  = 22
	recordHash    = 8
	recordLeast   = recordHeader + recordHash
	recordMost    = 32 << 20
	bitHeaders    = 1 << 31
	bitErased     = 1 << 63
	bitTombstone  = 1 << 62
	headersBegin  = "NATS/1.0\r\n"
	headersEnd    = "\r\n\r\n"
	headersLength = 4
)

// block is what is in one file.
type block struct {
	stream   string
	subjects []string // of the stream
	hash     *highwayhash.Digest64
	last     uint64 // sequence so far, over all blocks of the stream
}

func newBlock(stream string, subjects []string, index int, last uint64) (*block, error) {
	key := sha256.Sum256(fmt.Appendf(nil, "%s-%d", stream, index))
	h, err := highwayhash.NewDigest64(key[:])
	if err != nil {
		return nil, fmt.Errorf("embed: check: %w", err)
	}
	return &block{stream: stream, subjects: subjects, hash: h, last: last}, nil
}

// record is a whole record at the beginning of some bytes.
type record struct {
	size     int
	sequence uint64 // without the bits
	message  bool   // neither overwritten nor a tombstone
	subject  string
	whole    bool // nothing is wrong
	reason   string
}

// scan hands the records of a block to good and what else is there to bad.
// Behind damage it goes on with the next bytes that are a record.
func (b *block) scan(raw []byte, good func(record []byte), bad func(Damage)) {
	for at := 0; at < len(raw); {
		r := b.record(raw[at:])
		if r.whole {
			good(raw[at : at+r.size])
			b.last = max(b.last, r.sequence)
			at += r.size
			continue
		}
		next, following := b.next(raw, at+1)
		d := Damage{Stream: b.stream, Offset: int64(at), Bytes: int64(next - at), Reason: r.reason, After: b.last}
		if following.sequence > b.last { // no tombstone
			d.Before = following.sequence
		}
		if d.could(r.sequence) {
			d.Sequence = r.sequence
		} else if d.Before == b.last+2 {
			d.Sequence = b.last + 1
		}
		d.Subject = b.subjectOf(raw[at:next])
		d.Torn = next == len(raw) && b.torn(raw[at:], r) && (len(raw)-at < recordHeader || !r.message || d.could(r.sequence))
		bad(d)
		at = next
	}
}

// next finds the next record from an offset on.
func (b *block) next(raw []byte, at int) (int, record) {
	for ; at+recordLeast <= len(raw); at++ {
		if r := b.record(raw[at:]); r.whole {
			return at, r
		}
	}
	return len(raw), record{}
}

// record takes the record apart that raw begins with.
func (b *block) record(raw []byte) record {
	if len(raw) < recordHeader {
		return record{reason: "the file ends in the middle of a record"}
	}
	length, marked := binary.LittleEndian.Uint32(raw), binary.LittleEndian.Uint64(raw[4:])
	hasHeaders := length&bitHeaders != 0
	size, subjectEnd := int(length&^bitHeaders), recordHeader+int(binary.LittleEndian.Uint16(raw[20:]))
	r := record{
		size: size, sequence: marked &^ (bitErased | bitTombstone), message: marked&(bitErased|bitTombstone) == 0,
	}
	rest := subjectEnd
	if hasHeaders {
		rest += headersLength
	}
	switch {
	case size < recordLeast || size > recordMost || rest > size-recordHash:
		r.reason = "lengths that can't be"
		return r
	case size > len(raw):
		r.reason = "the file ends in the middle of a record"
		return r
	}
	subject, content := raw[recordHeader:subjectEnd], raw[rest:size-recordHash]
	if r.message && !server.IsValidLiteralSubject(string(subject)) {
		r.reason = "a subject that can't be"
		return r
	}
	b.hash.Reset()
	b.hash.Write(raw[4:20])
	b.hash.Write(subject)
	b.hash.Write(content)
	var sum [recordHash]byte
	if !bytes.Equal(b.hash.Sum(sum[:0]), raw[size-recordHash:size]) {
		r.reason = "the checksum is wrong"
		return r
	}
	// The checksum leaves the lengths out.
	if hasHeaders {
		n := int64(binary.LittleEndian.Uint32(raw[subjectEnd:]))
		if n > int64(len(content)) || !bytes.HasPrefix(content, []byte(headersBegin)) ||
			int64(bytes.Index(content, []byte(headersEnd))+len(headersEnd)) != n {
			r.reason = "the length of the headers is wrong"
			return r
		}
	}
	if r.message {
		if r.subject = string(subject); !b.takes(r.subject) {
			r.reason = "the subject is none of the stream's"
			return r
		}
	}
	r.whole = true
	return r
}

func (b *block) takes(subject string) bool {
	for _, filter := range b.subjects {
		if server.SubjectMatchesFilter(subject, filter) {
			return true
		}
	}
	return len(b.subjects) == 0
}

// subjectOf reads the subject of a damaged record, if it looks like one of the
// stream's. It may be what is damaged.
func (b *block) subjectOf(raw []byte) string {
	if len(raw) <= recordHeader {
		return ""
	}
	text := raw[recordHeader:]
	if end := bytes.Index(text, []byte(headersBegin)); end >= headersLength {
		text = text[:end-headersLength]
	} else {
		text = text[:min(len(text), int(binary.LittleEndian.Uint16(raw[20:])))]
	}
	if subject := string(text); server.IsValidLiteralSubject(subject) && b.takes(subject) {
		return subject
	}
	return ""
}

// torn reports whether the end of a file is the beginning of the next record:
// a write that was cut off. If it is whole with the length that is there, the
// length is damaged.
func (b *block) torn(raw []byte, r record) bool {
	if len(raw) < recordHeader {
		return true
	}
	if r.size <= len(raw) || r.size > recordMost {
		return false
	}
	if len(raw) >= recordLeast {
		cut := bytes.Clone(raw)
		length := uint32(len(raw)) | binary.LittleEndian.Uint32(raw)&bitHeaders
		binary.LittleEndian.PutUint32(cut, length)
		return !b.record(cut).whole
	}
	return true
}

// decompress returns a block's records. Where they are damaged it returns as
// many as it can, and the error.
func decompress(raw []byte) ([]byte, error) {
	var c server.CompressionInfo
	n, err := c.UnmarshalMetadata(raw)
	if err != nil || n == 0 {
		return raw, err
	}
	plain, err := c.Algorithm.Decompress(raw[n:])
	if err == nil {
		return plain, nil
	}
	body, sum := raw[n:max(n, len(raw)-recordHash)], raw[max(n, len(raw)-recordHash):]
	plain, rest := io.ReadAll(s2.NewReader(bytes.NewReader(body), s2.ReaderIgnoreCRC()))
	if rest == nil {
		plain = append(plain, sum...)
	}
	return plain, err
}
