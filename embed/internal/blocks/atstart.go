package blocks

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/helixd/helixd/embed/internal/datadir"
	"github.com/nats-io/nats-server/v2/server"
)

// laterFile says, in the data folder, what Start has to overwrite before the
// server runs.
const laterFile = "helixd.scrub-at-start"

// Removed names messages to overwrite: those of a stream on a subject up to a sequence.
type Removed struct {
	Stream  string `json:"stream"`
	Subject string `json:"subject"`
	UpTo    uint64 `json:"upTo"`
}

// AtStart has FinishErasing overwrite messages also in compressed blocks, which is possible only
// while no server uses the folder.
func AtStart(dir string, r Removed) error {
	all, err := scrubsAtStart(dir)
	if err != nil || slices.Contains(all, r) {
		return err
	}
	raw, err := json.Marshal(append(all, r))
	if err != nil {
		return err
	}
	if err := datadir.Replace(filepath.Join(dir, laterFile), raw); err != nil {
		return fmt.Errorf("embed: %w", err)
	}
	return nil
}

func scrubsAtStart(dir string) (all []Removed, err error) {
	raw, err := os.ReadFile(filepath.Join(dir, laterFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(raw, &all)
	}
	if err != nil {
		return nil, fmt.Errorf("embed: data dir: %w", err)
	}
	return all, nil
}

// scrubAtStart overwrites the messages that AtStart has recorded.
func scrubAtStart(dir string) error {
	all, err := scrubsAtStart(dir)
	if err != nil || all == nil {
		return err
	}
	for _, r := range all {
		if err := (&Scrubber{Dir: dir, Stream: r.Stream, Subject: r.Subject, UpTo: r.UpTo}).rewriteAll(); err != nil {
			return err
		}
	}
	return os.Remove(filepath.Join(dir, laterFile))
}

// rewriteAll overwrites what it finds in blocks that no server uses.
func (w *Scrubber) rewriteAll() error {
	names, err := w.blocks()
	for _, name := range names {
		if err == nil {
			err = w.rewrite(name)
		}
	}
	if err != nil {
		return fmt.Errorf("embed: data dir: scrub: stream %s: %w", w.Stream, err)
	}
	return nil
}

// forgetIndex removes the server's index of the stream, which may count what is
// overwritten: the server makes it again from the blocks.
func (w *Scrubber) forgetIndex(block string) error {
	err := os.Remove(filepath.Join(w.Dir, filepath.Dir(block), "index.db"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// rewrite overwrites what it finds in a block.
func (w *Scrubber) rewrite(name string) error {
	path := filepath.Join(w.Dir, name)
	raw, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if !bytes.HasPrefix(raw, []byte("cmp")) {
		_, err := w.block(name, func(f *os.File, block string, places []Place) error {
			if err := w.forgetIndex(block); err != nil {
				return err
			}
			return Overwrite(w.Dir, f, block, places)
		})
		return err
	}
	var c server.CompressionInfo
	n, err := c.UnmarshalMetadata(raw)
	if err != nil {
		return err
	}
	plain, err := c.Algorithm.Decompress(raw[n:])
	if err != nil && w.reached >= w.UpTo { // sequences rise from block to block
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s is damaged and may hold bytes that must be overwritten: keep the folder, and restore a backup into another one: %w", name, err)
	}
	places := w.places(plain)
	if len(places) == 0 {
		return nil
	}
	stream, index := streamOf(name)
	b, err := New(stream, nil, index, 0)
	if err != nil {
		return err
	}
	for _, p := range places {
		copy(plain[p.Offset:], b.erased(p, rand.Reader))
	}
	packed, err := c.Algorithm.Compress(plain)
	if err == nil {
		err = w.forgetIndex(name)
	}
	if err != nil {
		return err
	}
	c.OriginalSize = uint64(len(plain))
	return datadir.Replace(path, append(c.MarshalMetadata(), packed...))
}
