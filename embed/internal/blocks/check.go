package blocks

import (
	"bytes"
	"encoding/binary"

	"github.com/nats-io/nats-server/v2/server"
)

// Damage is a place in a file whose bytes are not what was stored.
type Damage struct {
	Stream string
	File   string // below the data folder
	Offset int64  // in the file, decompressed if it is compressed
	Bytes  int64
	Reason string
	// Torn: the stream's last file ends in the beginning of a record. A write
	// was cut off, as by a power loss, and was then hardly acknowledged.
	Torn bool
	// Sequence and Subject are of the stream's message, as far as that can be
	// known; the subject is what the damaged bytes say. The message is
	// after the one with sequence After and, unless it is 0, before Before.
	Sequence, After, Before uint64
	Subject                 string
}

// couldBe bounds a sequence that is read from damaged bytes at the end of a file.
const couldBe = 1000

func (d Damage) could(seq uint64) bool {
	return seq > d.After && (seq < d.Before || d.Before == 0 && seq <= d.After+couldBe)
}

// Scan passes the records of a block to good and all other bytes to bad.
// After damage it continues with the next bytes that are a record.
func (b *Block) Scan(raw []byte, good func(record []byte), bad func(Damage)) {
	for at := 0; at < len(raw); {
		r := b.record(raw[at:])
		if r.whole {
			good(raw[at : at+r.size])
			b.Last = max(b.Last, r.sequence)
			at += r.size
			continue
		}
		next, following := b.next(raw, at+1)
		d := Damage{Stream: b.Stream, Offset: int64(at), Bytes: int64(next - at), Reason: r.reason, After: b.Last}
		if following.sequence > b.Last { // no tombstone
			d.Before = following.sequence
		}
		if d.could(r.sequence) {
			d.Sequence = r.sequence
		} else if d.Before == b.Last+2 {
			d.Sequence = b.Last + 1
		}
		d.Subject = b.subjectOf(raw[at:next])
		d.Torn = next == len(raw) && b.torn(raw[at:], r) && (len(raw)-at < recordHeader || !r.message || d.could(r.sequence))
		bad(d)
		at = next
	}
}

// next finds the next record from an offset on.
func (b *Block) next(raw []byte, at int) (int, record) {
	for ; at+recordLeast <= len(raw); at++ {
		if r := b.record(raw[at:]); r.whole {
			return at, r
		}
	}
	return len(raw), record{}
}

// subjectOf reads the subject of a damaged record, if it looks like one of the
// stream's. It may be what is damaged.
func (b *Block) subjectOf(raw []byte) string {
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
func (b *Block) torn(raw []byte, r record) bool {
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
