package blocks

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// A server that is to delete a message and overwrite its bytes first appends a
// tombstone, which is durable, and then writes the message's block again. If it is
// killed in between, the message is gone after the next start, but not its bytes, and
// no request can name it any more. The store is locked meanwhile, so in that case the
// stream's last record is that tombstone.

// finishDeletes overwrites the message that the last record of a stream deletes, if its
// bytes are still there. No server may use the folder.
func finishDeletes(dir string) error {
	names, err := streamsIn(dir)
	if err != nil {
		return err
	}
	for _, stream := range names {
		seq, err := lastDeleted(dir, stream)
		if err != nil {
			return fmt.Errorf("embed: data dir: stream %s: %w", stream, err)
		}
		if seq == 0 {
			continue
		}
		if err := (&Scrubber{Dir: dir, Stream: stream, Subject: ">", From: seq, UpTo: seq}).rewriteAll(); err != nil {
			return err
		}
	}
	return nil
}

// lastDeleted returns the sequence of the message that a stream's last record
// deletes, 0 if that record is no tombstone.
func lastDeleted(dir, stream string) (uint64, error) {
	names, err := (&Scrubber{Dir: dir, Stream: stream}).files()
	if err != nil {
		return 0, err
	}
	for _, name := range slices.Backward(names) {
		end, err := blockEnd(filepath.Join(dir, name))
		if err != nil {
			return 0, err
		}
		if len(end) == 0 { // nothing was stored in it yet
			continue
		}
		b, err := New(stream, nil, Index(name), 0)
		if err != nil || len(end) != recordLeast {
			return 0, err
		}
		if r := b.record(end); r.whole && r.size == recordLeast && headerOf(end).marks&bitTombstone != 0 {
			return r.sequence, nil
		}
		return 0, nil
	}
	return 0, nil
}

// blockEnd returns as many of a block's last bytes as a tombstone has.
func blockEnd(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	var begin [recordLeast]byte
	if n, err := f.ReadAt(begin[:], 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	} else if bytes.HasPrefix(begin[:n], []byte("cmp")) {
		raw, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		plain, _ := Decompress(raw) // as far as it can be read
		return plain[max(0, len(plain)-recordLeast):], nil
	}
	end := make([]byte, min(info.Size(), recordLeast))
	_, err = f.ReadAt(end, info.Size()-int64(len(end)))
	return end, err
}
