package embed

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	mathrand "math/rand/v2"
	"os"
	"path/filepath"
)

// journalFile says, in the data folder, what of a block is being overwritten. A
// record that is overwritten in part has a wrong checksum, and a server that
// starts would cut its block off there.
const journalFile = "helixd.scrub"

// journal is enough to overwrite again, byte for byte.
type journal struct {
	Block  string   `json:"block"` // below the data folder
	Seed   [32]byte `json:"seed"`
	Places []place  `json:"places"`
}

// overwrite is an [overwriter]. While it works, the server neither stops nor
// restarts.
func (s *Server) overwrite(f *os.File, block string, places []place) error {
	s.scrubbing.Lock()
	defer s.scrubbing.Unlock()
	if s.stopped {
		return errors.New("the server is stopped")
	}
	if err := redoScrub(s.opts.DataDir); err != nil { // of one that failed
		return err
	}
	return overwriteBlock(s.opts.DataDir, f, block, places)
}

func overwriteBlock(dir string, f *os.File, block string, places []place) error {
	j := journal{Block: filepath.ToSlash(block), Places: places}
	_, _ = rand.Read(j.Seed[:]) // never fails
	raw, err := json.Marshal(j)
	if err != nil {
		return err
	}
	if err := replaceFile(filepath.Join(dir, journalFile), raw); err != nil {
		return err
	}
	if err := j.redo(f); err != nil {
		return err
	}
	return os.Remove(filepath.Join(dir, journalFile))
}

// redoScrub overwrites again what was under way when the server stopped. It has
// to come before a server reads the block.
func redoScrub(dir string) error {
	path := filepath.Join(dir, journalFile)
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("embed: data dir: %w", err)
	}
	var j journal
	if err := json.Unmarshal(raw, &j); err != nil {
		return fmt.Errorf("embed: data dir: %s is damaged, and a block may be overwritten in part: "+
			"copy the folder with helixd salvage and start on the copy: %w", path, err)
	}
	name := filepath.FromSlash(j.Block)
	if blockIndex(name) == 0 || !filepath.IsLocal(name) {
		return fmt.Errorf("embed: data dir: %s names %q, which is no block", path, j.Block)
	}
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_RDWR, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist): // the server has removed it
	case err != nil:
		return fmt.Errorf("embed: data dir: %w", err)
	default:
		err = j.redo(f)
		if err := errors.Join(err, f.Close()); err != nil {
			return fmt.Errorf("embed: data dir: %w", err)
		}
	}
	return os.Remove(path)
}

// redo overwrites what is still in its place, and syncs the block. The length, the
// sequence and the time of a record stay: they identify also a record that is
// partly overwritten.
func (j *journal) redo(f *os.File) error {
	stream, index := streamOf(filepath.FromSlash(j.Block))
	b, err := newBlock(stream, nil, index, 0)
	if err != nil {
		return err
	}
	random := mathrand.NewChaCha8(j.Seed)
	var head [recordHeader]byte
	for _, p := range j.Places {
		if p.Size < recordLeast || p.Size > recordMost {
			return fmt.Errorf("%s: a record of %d bytes", journalFile, p.Size)
		}
		record := b.erased(p, random)
		switch _, err := f.ReadAt(head[:], p.Offset); {
		case errors.Is(err, io.EOF):
			continue
		case err != nil:
			return err
		}
		if !p.is(headerOf(head[:])) {
			continue
		}
		if _, err := f.WriteAt(record, p.Offset); err != nil {
			return err
		}
	}
	return f.Sync()
}

func (p place) is(h header) bool {
	return h.size == p.Size && h.sequence == p.Sequence && h.time == p.Time && h.marks&bitTombstone == 0
}

// erased is a record as the server overwrites one, but for the time, which the
// server sets to 0: if the block's last time is gone, it finds no message by time.
func (b *block) erased(p place, random io.Reader) []byte {
	record := make([]byte, p.Size)
	binary.LittleEndian.PutUint32(record, uint32(p.Size))
	binary.LittleEndian.PutUint64(record[4:], p.Sequence|bitErased)
	binary.LittleEndian.PutUint64(record[12:], p.Time)
	content := record[recordHeader : p.Size-recordHash]
	_, _ = random.Read(content) // never fails
	b.hash.Reset()
	b.hash.Write(record[4:20])
	b.hash.Write(content)
	b.hash.Sum(record[:p.Size-recordHash])
	return record
}

// replaceFile writes a file as a whole, and to the disk.
func replaceFile(path string, content []byte) error {
	f, err := os.OpenFile(path+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, bytes.NewReader(content))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(path+".new", path); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(path))
}
