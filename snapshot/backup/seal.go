package backup

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
)

// skippable is the beginning of a frame that readers of Zstandard skip.
const skippable = 0x184D2A5E

// sealBytes is the size of the frame with the hash.
const sealBytes = 8 + sha256.Size

// sealWriter adds the hash of the bytes written to it.
type sealWriter struct {
	w   io.Writer
	sum hash.Hash
}

func newSealWriter(w io.Writer) *sealWriter { return &sealWriter{w, sha256.New()} }

func (s *sealWriter) Write(b []byte) (int, error) {
	n, err := s.w.Write(b)
	s.sum.Write(b[:n])
	return n, err
}

func (s *sealWriter) seal() error {
	_, err := s.w.Write(sealOf(s.sum))
	return err
}

func sealOf(sum hash.Hash) []byte {
	b := binary.LittleEndian.AppendUint32(nil, skippable)
	b = binary.LittleEndian.AppendUint32(b, sha256.Size)
	return sum.Sum(b)
}

// sealReader yields all but the last sealBytes of its input, and then checks that those
// are the hash of the rest.
type sealReader struct {
	r     io.Reader
	sum   hash.Hash
	buf   []byte
	ahead []byte // the part of buf that was not yielded yet
	ended error  // r's error: io.EOF, or a failure
}

func newSealReader(r io.Reader) *sealReader {
	return &sealReader{r: r, sum: sha256.New(), buf: make([]byte, 64<<10)}
}

// Read implements io.Reader. It returns io.EOF only at the end of a complete file.
func (s *sealReader) Read(b []byte) (int, error) {
	for len(s.ahead) <= sealBytes {
		switch {
		case s.ended == nil:
		case !errors.Is(s.ended, io.EOF):
			return 0, s.ended
		case !bytes.Equal(s.ahead, sealOf(s.sum)):
			return 0, fmt.Errorf("%w: it does not end with the SHA-256 of what it holds", ErrDamaged)
		default:
			return 0, io.EOF
		}
		kept := copy(s.buf, s.ahead)
		n, err := s.r.Read(s.buf[kept:])
		s.ahead, s.ended = s.buf[:kept+n], err
	}
	n := copy(b, s.ahead[:len(s.ahead)-sealBytes])
	s.sum.Write(b[:n])
	s.ahead = s.ahead[n:]
	return n, nil
}

// failed returns the error of reading the file, if that is not damage of the file.
func (s *sealReader) failed() error {
	if s.ended == nil || errors.Is(s.ended, io.EOF) || errors.Is(s.ended, io.ErrUnexpectedEOF) {
		return nil
	}
	return s.ended
}
