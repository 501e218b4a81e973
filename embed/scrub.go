package embed

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/s2"
	"github.com/nats-io/nats-server/v2/server"
)

const (
	// scrubPasses bounds how often Scrub reads a stream's blocks: the server may
	// have replaced one by what it had read before, which is rare.
	scrubPasses = 5
	// scrubPause bounds the pause after each block, which is otherwise as long as
	// the block took: others write to the same disk.
	scrubPause = 250 * time.Millisecond
)

// Scrub overwrites, in this server's own files, messages that a stream has
// removed: those with a sequence from `from` to upTo, or before the stream's first, on
// the subject or, if that ends in ".>", on all subjects that begin so. A message that was deleted or purged keeps
// its bytes in its block until the server removes the block. Messages that the
// stream still has the caller must not name. Blocks that hold no such sequence are
// left out.
//
// Blocks are overwritten in place: each record keeps its place and its length,
// and becomes what the server makes of a message that it overwrites itself. A
// journal in the data folder has Start, or a later Scrub, repair a record that a
// power loss cut. left is how many messages could not be overwritten: those in
// compressed blocks.
//
// A stream that is scrubbed must not also have the server overwrite single
// messages: it then writes a block back as it was when it was last read. A purge by
// sequence may do the same to the block in which it ends; see Rescrub.
func (s *Server) Scrub(ctx context.Context, stream, subject string, from, upTo uint64) (overwritten, left int, err error) {
	w := scrubber{dir: s.opts.DataDir, stream: stream, subject: subject, from: from, upTo: upTo}
	found := 0
	for range scrubPasses {
		w.first, _, _, _ = s.Replica(stream)
		found, err = w.pass(ctx, s.overwrite)
		overwritten += found
		if err != nil {
			return overwritten, w.compressed, fmt.Errorf("embed: scrub: stream %s: %w", stream, err)
		}
		if found == 0 {
			break
		}
	}
	s.remember(scrubbed{removed{stream, subject, upTo}, from})
	return overwritten, w.compressed + found, nil
}

// ScrubPurged overwrites what a purge by sequence has left of a subject, as of Scrub, in the
// block in which it ended. Else the server has it again if it rebuilds its index from the block.
func (s *Server) ScrubPurged(ctx context.Context, stream, subject string) error {
	first, _, _, ok := s.Replica(stream)
	if !ok || first <= 1 {
		return nil
	}
	w := scrubber{dir: s.opts.DataDir, stream: stream, subject: subject, upTo: first - 1, first: first}
	for range scrubPasses {
		found, err := w.pass(ctx, s.overwrite)
		if err != nil {
			return fmt.Errorf("embed: scrub: stream %s: %w", stream, err)
		}
		if found == 0 {
			break
		}
	}
	return nil // not remembered for Rescrub: the next purge comes here again
}

// Holds returns how many messages Scrub would have to overwrite.
func (s *Server) Holds(ctx context.Context, stream, subject string, from, upTo uint64) (n int, err error) {
	w := scrubber{dir: s.opts.DataDir, stream: stream, subject: subject, from: from, upTo: upTo}
	w.first, _, _, _ = s.Replica(stream)
	n, err = w.pass(ctx, func(*os.File, string, []place) error { return nil })
	if err != nil {
		return n, fmt.Errorf("embed: stream %s: %w", stream, err)
	}
	return n + w.compressed, nil
}

// Replica returns what this server's own replica of a stream has: its first and
// last sequence, and how many messages. ok is false if it has none.
func (s *Server) Replica(stream string) (first, last, messages uint64, ok bool) {
	account, err := s.instance().srv.JszAccount(&server.JSzOptions{Account: accountHelix, Streams: true})
	if err != nil {
		return 0, 0, 0, false
	}
	for _, d := range account.Streams {
		if d.Name == stream {
			return d.State.FirstSeq, d.State.LastSeq, d.State.Msgs, true
		}
	}
	return 0, 0, 0, false
}

// scrubber goes through the blocks of one stream.
type scrubber struct {
	dir, stream, subject string
	from, upTo           uint64
	first                uint64 // of the stream; what is before was removed
	ends                 uint64 // blocks that begin behind it are left out; 0: none is
	compressed           int    // messages that the last pass found in compressed blocks
	reached              uint64 // the last sequence in the blocks that were read so far
	raw                  []byte // of the block that is read
}

// place is where a message's record is in a block.
type place struct {
	Offset   int64  `json:"o"`
	Size     int    `json:"n"`
	Sequence uint64 `json:"s"`
	Time     uint64 `json:"t"`
}

// overwriter overwrites the records at some places of a block, of which it gets the
// open file and the name below the data folder.
type overwriter func(f *os.File, block string, places []place) error

// pass hands the places of the messages that are found in each block to do, and
// returns how many there were.
func (w *scrubber) pass(ctx context.Context, do overwriter) (n int, err error) {
	w.compressed = 0
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
		if err := pauseAfter(ctx, time.Since(began)); err != nil {
			return n, err
		}
	}
	return n, nil
}

func pauseAfter(ctx context.Context, took time.Duration) error {
	t := time.NewTimer(min(took, scrubPause))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (w *scrubber) block(name string, do overwriter) (n int, err error) {
	// What is read and written through one descriptor is one file, whatever the
	// server renames meanwhile: that file it only appends to.
	f, err := os.OpenFile(filepath.Join(w.dir, name), os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	if w.raw, err = readInto(w.raw[:0], f); err != nil {
		return 0, err
	}
	if bytes.HasPrefix(w.raw, []byte("cmp")) {
		plain, _ := decompress(w.raw) // as far as it can be read
		w.compressed += len(w.places(plain))
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
func (w *scrubber) places(raw []byte) (found []place) {
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
			found = append(found, place{Offset: int64(at), Size: h.size, Sequence: h.sequence, Time: h.time})
		}
		at += h.size
	}
	return found
}

func (w *scrubber) within(seq uint64) bool {
	return seq < w.first || w.from <= seq && seq <= w.upTo
}

func (w *scrubber) matches(subject []byte) bool {
	if prefix, all := strings.CutSuffix(w.subject, ">"); all {
		return bytes.HasPrefix(subject, []byte(prefix))
	}
	return string(subject) == w.subject
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
func (w *scrubber) files() (names []string, err error) {
	dir := filepath.Join("jetstream", accountHelix, "streams", w.stream, "msgs")
	entries, err := os.ReadDir(filepath.Join(w.dir, dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if name := filepath.Join(dir, e.Name()); blockIndex(name) > 0 {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int { return blockIndex(a) - blockIndex(b) })
	return names, nil
}

// blocks returns those of files that may have what is looked for.
func (w *scrubber) blocks() ([]string, error) {
	names, err := w.files()
	if err != nil {
		return nil, err
	}
	// Sequences rise from block to block.
	begins := make([]uint64, len(names)) // 0: not known
	for i, name := range names {
		begins[i] = beginOf(filepath.Join(w.dir, name))
	}
	next := uint64(0) // with which a later block begins
	var within []string
	for i, name := range slices.Backward(names) {
		removed := begins[i] < w.first
		if begins[i] <= w.upTo && (w.ends == 0 || begins[i] <= w.ends) && (removed || next == 0 || next > w.from) {
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

// streamOf returns the stream that a block's name is of, and the block's number.
func streamOf(name string) (stream string, index int) {
	return filepath.Base(filepath.Dir(filepath.Dir(name))), blockIndex(name)
}
