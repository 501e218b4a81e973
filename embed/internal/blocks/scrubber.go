package blocks

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/helixd/helixd/embed/internal/datadir"
	"github.com/klauspost/compress/s2"
	"github.com/nats-io/nats-server/v2/server"
)

// scrubPause bounds the pause after each block, which otherwise is as long as the
// block took: others write to the same disk.
const scrubPause = 250 * time.Millisecond

// Scrubber goes through the blocks of one stream.
type Scrubber struct {
	Dir, Stream, Subject string
	From, UpTo           uint64
	First                uint64 // of the stream; what is before was removed
	Ends                 uint64 // blocks that begin after it are left out; 0: none is
	Compressed           int    // messages that the last pass found in compressed blocks
	reached              uint64 // the last sequence in the blocks that were read so far
	raw                  []byte // of the block that is read
}

// Place is where a message's record is in a block.
type Place struct {
	Offset   int64  `json:"o"`
	Size     int    `json:"n"`
	Sequence uint64 `json:"s"`
	Time     uint64 `json:"t"`
}

// overwriter overwrites the records at some places of a block, of which it gets the
// open file and the name below the data folder.
type overwriter func(f *os.File, block string, places []Place) error

// Pass hands the places of the messages that are found in each block to do, and
// returns how many there were.
func (w *Scrubber) Pass(ctx context.Context, do overwriter) (n int, err error) {
	w.Compressed = 0
	names, err := w.blocks()
	if err != nil {
		return 0, err
	}
	for _, name := range names {
		if ctx.Err() != nil {
			return n, context.Cause(ctx)
		}
		began := time.Now()
		some, err := w.block(name, do)
		if errors.Is(err, fs.ErrNotExist) { // the server has removed it
			continue
		}
		if err != nil {
			return n, err
		}
		n += some
		if err := datadir.Sleep(ctx, min(time.Since(began), scrubPause)); err != nil {
			return n, err
		}
	}
	return n, nil
}

func (w *Scrubber) block(name string, do overwriter) (n int, err error) {
	// Read and write use one descriptor, so that they use one file even if the server
	// renames meanwhile. The server only appends to that file.
	f, err := os.OpenFile(filepath.Join(w.Dir, name), os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	if w.raw, err = readInto(w.raw[:0], f); err != nil {
		return 0, err
	}
	if bytes.HasPrefix(w.raw, []byte("cmp")) {
		plain, _ := Decompress(w.raw) // as far as it can be read
		w.Compressed += len(w.places(plain))
		return 0, nil
	}
	places := w.places(w.raw)
	if len(places) == 0 {
		return 0, nil
	}
	return len(places), do(f, name, places)
}

// readInto reads a file into the room that there is.
func readInto(room []byte, f *os.File) ([]byte, error) {
	info, err := f.Stat()
	if err != nil {
		return room, err
	}
	room = slices.Grow(room, int(info.Size()))[:info.Size()]
	n, err := io.ReadFull(f, room)
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		err = nil
	}
	return room[:n], err
}

// places returns where the messages are that are looked for.
func (w *Scrubber) places(raw []byte) (found []Place) {
	for at := 0; at+recordHeader <= len(raw); {
		h := headerOf(raw[at:])
		if !h.fits(len(raw) - at) {
			return found // the server is writing it, or it is damaged
		}
		if h.marks&bitTombstone == 0 {
			w.reached = max(w.reached, h.sequence)
		}
		subject := raw[at+recordHeader : at+recordHeader+h.subject]
		if h.marks == 0 && w.within(h.sequence) && w.matches(subject) {
			found = append(found, Place{Offset: int64(at), Size: h.size, Sequence: h.sequence, Time: h.time})
		}
		at += h.size
	}
	return found
}

func (w *Scrubber) within(seq uint64) bool {
	return seq < w.First || w.From <= seq && seq <= w.UpTo
}

func (w *Scrubber) matches(subject []byte) bool {
	if prefix, all := strings.CutSuffix(w.Subject, ">"); all {
		return bytes.HasPrefix(subject, []byte(prefix))
	}
	return string(subject) == w.Subject
}

// header is what a record says of itself.
type header struct {
	size, subject int // lengths
	sequence      uint64
	marks         uint64 // bitErased, bitTombstone
	time          uint64
}

func headerOf(raw []byte) header {
	marked := binary.LittleEndian.Uint64(raw[4:])
	return header{
		size: int(binary.LittleEndian.Uint32(raw) &^ bitHeaders), subject: int(binary.LittleEndian.Uint16(raw[20:])),
		sequence: marked &^ (bitErased | bitTombstone), marks: marked & (bitErased | bitTombstone),
		time: binary.LittleEndian.Uint64(raw[12:]),
	}
}

func (h header) fits(room int) bool {
	return h.size >= recordLeast && h.size <= recordMost && h.size <= room && recordHeader+h.subject <= h.size-recordHash
}

// files returns the names, below the data folder, of the stream's blocks in their order.
func (w *Scrubber) files() (names []string, err error) {
	dir := filepath.Join("jetstream", Account, "streams", w.Stream, "msgs")
	entries, err := os.ReadDir(filepath.Join(w.Dir, dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if name := filepath.Join(dir, e.Name()); Index(name) > 0 {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int { return Index(a) - Index(b) })
	return names, nil
}

// blocks returns those of files that may have what is looked for.
func (w *Scrubber) blocks() ([]string, error) {
	names, err := w.files()
	if err != nil {
		return nil, err
	}
	// Sequences rise from block to block.
	begins := make([]uint64, len(names)) // 0: not known
	for i, name := range names {
		begins[i] = beginOf(filepath.Join(w.Dir, name))
	}
	next := uint64(0) // with which a later block begins
	var within []string
	for i, name := range slices.Backward(names) {
		removed := begins[i] < w.First
		if begins[i] <= w.UpTo && (w.Ends == 0 || begins[i] <= w.Ends) && (removed || next == 0 || next > w.From) {
			within = append(within, name)
		}
		if begins[i] > 0 {
			next = begins[i]
		}
	}
	slices.Reverse(within)
	return within, nil
}

// beginOf returns the sequence of a block's first record, 0 if it is not known:
// the block can't be read, or begins with something else than a message.
func beginOf(path string) uint64 {
	f, err := os.Open(path)
	if err != nil {
		return 0
	}
	defer f.Close()
	var raw [recordHeader]byte
	if _, err := io.ReadFull(f, raw[:]); err != nil {
		return 0
	}
	if bytes.HasPrefix(raw[:], []byte("cmp")) {
		var c server.CompressionInfo
		n, err := c.UnmarshalMetadata(raw[:])
		if err != nil || c.Algorithm != server.S2Compression {
			return 0
		}
		if _, err := f.Seek(int64(n), io.SeekStart); err != nil {
			return 0
		}
		if _, err := io.ReadFull(s2.NewReader(f), raw[:]); err != nil {
			return 0
		}
	}
	h := headerOf(raw[:])
	if h.marks&bitTombstone != 0 {
		return 0
	}
	return h.sequence
}
