package embed

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

	"github.com/nats-io/nats-server/v2/server"
)

// laterFile says, in the data folder, what Start has to overwrite before the
// server runs.
const laterFile = "helixd.scrub-at-start"

// removed is what Scrub is called with.
type removed struct {
	Stream  string `json:"stream"`
	Subject string `json:"subject"`
	UpTo    uint64 `json:"upTo"`
}

// ScrubAtStart has the next Start overwrite what Scrub would, also in compressed
// blocks and in streams of which the server itself overwrites messages: a block
// that is written as a whole may be replaced only while no server uses it.
func (s *Server) ScrubAtStart(stream, subject string, upTo uint64) error {
	s.scrubbing.Lock()
	defer s.scrubbing.Unlock()
	all, err := scrubsAtStart(s.opts.DataDir)
	if err != nil {
		return err
	}
	if r := (removed{stream, subject, upTo}); !slices.Contains(all, r) {
		raw, err := json.Marshal(append(all, r))
		if err != nil {
			return err
		}
		if err := replaceFile(filepath.Join(s.opts.DataDir, laterFile), raw); err != nil {
			return fmt.Errorf("embed: %w", err)
		}
	}
	return nil
}

func scrubsAtStart(dir string) (all []removed, err error) {
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

// scrubAtStart does what ScrubAtStart has asked for.
func scrubAtStart(dir string) error {
	all, err := scrubsAtStart(dir)
	if err != nil || all == nil {
		return err
	}
	for _, r := range all {
		if err := (&scrubber{dir: dir, stream: r.Stream, subject: r.Subject, upTo: r.UpTo}).rewriteAll(); err != nil {
			return err
		}
	}
	return os.Remove(filepath.Join(dir, laterFile))
}

// rewriteAll overwrites what it finds in blocks that no server uses.
func (w *scrubber) rewriteAll() error {
	names, err := w.blocks()
	for _, name := range names {
		if err == nil {
			err = w.rewrite(name)
		}
	}
	if err != nil {
		return fmt.Errorf("embed: data dir: scrub: stream %s: %w", w.stream, err)
	}
	return nil
}

// forgetIndex removes the server's index of the stream, which may count what is
// overwritten: the server makes it again from the blocks.
func (w *scrubber) forgetIndex(block string) error {
	err := os.Remove(filepath.Join(w.dir, filepath.Dir(block), "index.db"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// rewrite overwrites what it finds in a block.
func (w *scrubber) rewrite(name string) error {
	path := filepath.Join(w.dir, name)
	raw, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if !bytes.HasPrefix(raw, []byte("cmp")) {
		_, err := w.block(name, func(f *os.File, block string, places []place) error {
			if err := w.forgetIndex(block); err != nil {
				return err
			}
			return overwriteBlock(w.dir, f, block, places)
		})
		return err
	}
	var c server.CompressionInfo
	n, err := c.UnmarshalMetadata(raw)
	if err != nil {
		return err
	}
	plain, err := c.Algorithm.Decompress(raw[n:])
	if err != nil && w.reached >= w.upTo { // sequences rise from block to block
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s is damaged, and may hold what is to be overwritten: copy the folder with helixd salvage and start on the copy: %w", name, err)
	}
	places := w.places(plain)
	if len(places) == 0 {
		return nil
	}
	stream, index := streamOf(name)
	b, err := newBlock(stream, nil, index, 0)
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
	return replaceFile(path, append(c.MarshalMetadata(), packed...))
}
