package backup

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"iter"

	"github.com/klauspost/compress/zstd"

	"github.com/helixd/helixd/eventlog"
)

// Beside is something that is stored beside the log, such as the files of workspaces.
type Beside struct {
	// Name says which reader understands the items. One that does not know it skips them.
	Name string
	// Items yields what is stored, after the sessions were copied.
	Items func(context.Context) iter.Seq2[eventlog.CopiedItem, error]
}

// Items are in frames that readers of Zstandard skip, as do programs up to 0.1.0: those
// restore the sessions. The contents of all such frames are one Zstandard frame.
const (
	itemFrame      = 0x184D2A5D
	itemFrameBytes = 256 << 10
	frameHeader    = 8 // a number that says what it is, and the length
)

// itemLine is a line about an item.
type itemLine struct {
	Of string `json:"of"` // Beside.Name
	eventlog.CopiedItem
}

// itemsEndLine ends the items.
type itemsEndLine struct {
	Items int `json:"items"`
}

// items writes what is stored beside the log.
func (t *taking) items(out io.Writer, all []Beside) (err error) {
	var packed *zstd.Encoder // nil until there is an item: a backup without any is as it was before there were items
	var framed *bufio.Writer
	var lines *json.Encoder
	begin := func() (err error) {
		framed = bufio.NewWriterSize(frameWriter{out}, itemFrameBytes)
		if packed, err = zstd.NewWriter(framed, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(window)); err == nil {
			lines = json.NewEncoder(pacedWriter{t, packed})
		}
		return err
	}
	defer func() {
		if packed == nil {
			return
		}
		err = errors.Join(err, packed.Close())
		if err == nil {
			err = framed.Flush()
		}
	}()
	for _, b := range all {
		for item, err := range b.Items(t.ctx) {
			if err == nil && packed == nil {
				err = begin()
			}
			if err == nil {
				err = lines.Encode(line{Item: &itemLine{b.Name, item}})
			}
			if err != nil {
				return err
			}
			t.done.Items++
		}
	}
	if packed == nil {
		return nil
	}
	return lines.Encode(line{ItemsEnd: &itemsEndLine{t.done.Items}})
}

// frameWriter writes each piece as a frame.
type frameWriter struct{ w io.Writer }

func (f frameWriter) Write(b []byte) (int, error) {
	head := binary.LittleEndian.AppendUint32(nil, itemFrame)
	head = binary.LittleEndian.AppendUint32(head, uint32(len(b))) //nolint:gosec // a piece of the buffer, or of the encoder's
	if _, err := f.w.Write(head); err != nil {
		return 0, err
	}
	return f.w.Write(b)
}

// frames divides a file into the frames with the sessions and the rest.
type frames struct {
	r       *bufio.Reader
	left    int  // bytes of the present piece
	within  bool // a frame
	last    bool // block of the frame
	summed  bool // the frame ends with a sum
	skipped bool // the frames with the sessions have ended
}

// Read implements io.Reader: it yields frames until one that is skipped.
func (f *frames) Read(b []byte) (int, error) {
	for f.left == 0 {
		if f.skipped {
			return 0, io.EOF
		}
		if err := f.next(); err != nil {
			return 0, err
		}
	}
	n, err := f.r.Read(b[:min(len(b), f.left)])
	f.left -= n
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// next finds the size of the next piece: a frame's header, or a block with what follows it.
func (f *frames) next() error {
	if !f.within {
		head, err := f.r.Peek(zstd.HeaderMaxSize)
		if len(head) == 0 {
			return err
		}
		var h zstd.Header
		if err := h.Decode(head); err != nil {
			return damaged("%v", err)
		}
		if f.skipped = h.Skippable; !f.skipped {
			f.left, f.within, f.last, f.summed = h.HeaderSize, true, false, h.HasCheckSum
		}
		return nil
	}
	if f.last {
		f.within = false
		return nil
	}
	head, err := f.r.Peek(3)
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return err
	}
	block := int(head[0]) | int(head[1])<<8 | int(head[2])<<16
	f.last, f.left = block&1 != 0, len(head)+block>>3
	if kind := block >> 1 & 3; kind == 1 { // one byte, repeated
		f.left = len(head) + 1
	}
	if f.last && f.summed {
		f.left += 4
	}
	return nil
}

// skippedReader yields the contents of the frames with items.
type skippedReader struct {
	r    *bufio.Reader
	left uint32 // bytes of the present frame
}

// Read implements io.Reader. It returns io.EOF at the end of the file.
func (s *skippedReader) Read(b []byte) (int, error) {
	for s.left == 0 {
		head, err := s.r.Peek(frameHeader)
		if len(head) == 0 {
			return 0, err
		}
		if err != nil {
			return 0, io.ErrUnexpectedEOF
		}
		if kind := binary.LittleEndian.Uint32(head); kind != itemFrame {
			return 0, damaged("a frame with the number %x follows the sessions", kind)
		}
		s.left = binary.LittleEndian.Uint32(head[4:])
		if _, err := s.r.Discard(frameHeader); err != nil {
			return 0, err
		}
	}
	n, err := s.r.Read(b[:min(uint32(len(b)), s.left)]) //nolint:gosec // a buffer
	s.left -= uint32(n)                                 //nolint:gosec // at most left
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// readItems reads the items after the sessions, to the end of the file.
func (r *reader) readItems() error {
	switch _, err := r.frames.r.Peek(1); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return err
	}
	packed, err := newUnpacker(&skippedReader{r: r.frames.r})
	if err != nil {
		return err
	}
	defer packed.Close()
	r.lines = newLines(packed)
	for {
		l, err := r.next()
		switch {
		case errors.Is(err, io.EOF):
			return damaged("the end of its items is missing")
		case err != nil:
			return err
		case l.ItemsEnd != nil && l.ItemsEnd.Items == r.done.Items:
			return r.atEnd()
		case l.Item == nil:
			return damaged("it has %d items and another end", r.done.Items)
		}
		r.done.Items++
		if r.visitor.Item != nil {
			if err := r.visitor.Item(l.Item.Of, l.Item.CopiedItem); err != nil {
				return err
			}
		}
	}
}
