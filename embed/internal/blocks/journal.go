package blocks

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"github.com/helixd/helixd/embed/internal/datadir"
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
	Places []Place  `json:"places"`
}

// Overwrite overwrites the records at some places of an open block, with a journal, so that Redo
// can repeat it.
func Overwrite(dir string, f *os.File, block string, places []Place) error {
	j := journal{Block: filepath.ToSlash(block), Places: places}
	_, _ = rand.Read(j.Seed[:]) // never fails
	raw, err := json.Marshal(j)
	if err != nil {
		return err
	}
	if err := datadir.Replace(filepath.Join(dir, journalFile), raw); err != nil {
		return err
	}
	if err := j.redo(f); err != nil {
		return err
	}
	return os.Remove(filepath.Join(dir, journalFile))
}

// Redo overwrites again what was under way when the server stopped. It has
// to come before a server reads the block.
func Redo(dir string) error {
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
			"keep the folder, and restore a backup into another one: %w", path, err)
	}
	name := filepath.FromSlash(j.Block)
	if Index(name) == 0 || !filepath.IsLocal(name) {
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
	b, err := New(stream, nil, index, 0)
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

func (p Place) is(h header) bool {
	return h.size == p.Size && h.sequence == p.Sequence && h.time == p.Time && h.marks&bitTombstone == 0
}

// erased is a record as the server overwrites one, but for the time, which the
// server sets to 0: if the block's last time is gone, it finds no message by time.
func (b *Block) erased(p Place, random io.Reader) []byte {
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
