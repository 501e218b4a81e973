package blocks

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
// algorithm, the size and an S2 stream, and the last record's hash after it.
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

// Block decodes the content of one block file.
type Block struct {
	Stream   string
	subjects []string // of the stream
	hash     *highwayhash.Digest64
	Last     uint64 // sequence so far, over all blocks of the stream
}

// New returns a decoder for the block with a number. last is the highest sequence in the blocks before it.
func New(stream string, subjects []string, index int, last uint64) (*Block, error) {
	key := sha256.Sum256(fmt.Appendf(nil, "%s-%d", stream, index))
	h, err := highwayhash.NewDigest64(key[:])
	if err != nil {
		return nil, fmt.Errorf("embed: check: %w", err)
	}
	return &Block{Stream: stream, subjects: subjects, hash: h, Last: last}, nil
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

// record takes the record apart that raw begins with.
func (b *Block) record(raw []byte) record {
	if len(raw) < recordHeader {
		return record{reason: "the file ends in the middle of a record"}
	}
	hasHeaders := binary.LittleEndian.Uint32(raw)&bitHeaders != 0
	h := headerOf(raw)
	r := record{size: h.size, sequence: h.sequence, message: h.marks == 0}
	size, subjectEnd := h.size, recordHeader+h.subject
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

func (b *Block) takes(subject string) bool {
	for _, filter := range b.subjects {
		if server.SubjectMatchesFilter(subject, filter) {
			return true
		}
	}
	return len(b.subjects) == 0
}

// Decompress returns a block's records. Where they are damaged it returns as
// many as it can, and the error.
func Decompress(raw []byte) ([]byte, error) {
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
