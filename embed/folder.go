package embed

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/helixd/helixd/embed/internal/blocks"
	"github.com/helixd/helixd/embed/internal/datadir"
	"github.com/minio/highwayhash"
)

// Folder is a data folder that no server uses. It can be looked at without
// changing anything in it, which a server can't: what a server can't read when
// it starts, it cuts off, with everything that follows in the same file.
type Folder struct {
	dir    string
	unlock func()
}

// Damage is a place in a file whose bytes are not what was stored.
type Damage = blocks.Damage

// OpenFolder takes the data folder of a server that is stopped. Errors: there
// is no such folder, a server uses it, or a [version.NewerError].
func OpenFolder(dir string) (*Folder, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("embed: data dir: %w", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "jetstream")); err != nil {
		return nil, fmt.Errorf("embed: data dir: %s holds no JetStream data: %w", dir, err)
	}
	unlock, err := datadir.Lock(dir)
	if err != nil {
		return nil, fmt.Errorf("embed: data dir: %w", err)
	}
	if _, err := checkFormat(dir); err != nil {
		unlock()
		return nil, err
	}
	return &Folder{dir: dir, unlock: unlock}, nil
}

// Close releases the folder.
func (f *Folder) Close() { f.unlock() }

// Check reads the files of all streams' messages and settings and reports damage to
// found. It sees every changed byte of a message, also of removed messages and where a
// server trusts its index. It leaves out the server's index and the states of consumers:
// a server rebuilds them.
func (f *Folder) Check(ctx context.Context, found func(Damage)) error {
	return f.walk(ctx, "", found)
}

// Salvage copies the folder without what Check finds damaged, so that a server
// which is started on the copy has everything else.
func (f *Folder) Salvage(ctx context.Context, to string) error {
	return f.walk(ctx, to, func(Damage) {})
}

// walk checks all files, and copies what is whole if to is not empty.
func (f *Folder) walk(ctx context.Context, to string, found func(Damage)) error {
	var names []string
	err := filepath.WalkDir(f.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		name, err := filepath.Rel(f.dir, path)
		if err != nil {
			return err
		}
		switch {
		case d.Type()&fs.ModeSymlink != 0: // to batches that a process has left in memory; see staging
			if to != "" {
				err = os.CopyFS(filepath.Join(to, name), os.DirFS(path))
			}
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return err
		case name == stagingFile: // not the copy's
			return nil
		case d.IsDir():
			if to != "" {
				return os.MkdirAll(filepath.Join(to, name), 0o750)
			}
			return nil
		case blocks.Index(name) > 0:
			names = append(names, name)
			return nil
		case filepath.Base(name) == "index.db" && to != "":
			return nil // of blocks that are copied in part
		case filepath.Base(name) == "meta.inf" && blocks.IsStream(filepath.Dir(name)):
			if err := f.checkSettings(name, found); err != nil {
				return err
			}
		}
		if to == "" {
			return nil
		}
		return f.copy(name, to)
	})
	if err == nil {
		err = f.walkBlocks(ctx, names, to, found)
	}
	if err != nil {
		return fmt.Errorf("embed: check: %w", err)
	}
	return nil
}

func (f *Folder) copy(name, to string) error {
	b, err := os.ReadFile(filepath.Join(f.dir, name))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(to, name), b, 0o640)
}

// checkSettings compares a stream's settings with their checksum: a server
// leaves a stream out whose settings are damaged.
func (f *Folder) checkSettings(name string, found func(Damage)) error {
	b, err := os.ReadFile(filepath.Join(f.dir, name))
	if err != nil {
		return err
	}
	want, err := os.ReadFile(filepath.Join(f.dir, filepath.Dir(name), "meta.sum"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	stream := filepath.Base(filepath.Dir(name))
	key := sha256.Sum256([]byte(stream))
	h, err := highwayhash.NewDigest64(key[:])
	if err != nil {
		return err
	}
	h.Write(b)
	if got := hex.EncodeToString(h.Sum(nil)); got != string(want) {
		found(Damage{Stream: stream, File: name, Bytes: int64(len(b)), Reason: "the checksum of the stream's settings is wrong"})
	}
	return nil
}

// subjectsOf returns the subjects of the stream that a block belongs to; none
// if its settings can't be read.
func (f *Folder) subjectsOf(stream string) []string {
	var settings struct {
		Subjects []string `json:"subjects"`
	}
	b, err := os.ReadFile(filepath.Join(f.dir, stream, "meta.inf"))
	if err != nil || json.Unmarshal(b, &settings) != nil {
		return nil
	}
	return settings.Subjects
}

// walkBlocks goes through the blocks of each stream in their order.
func (f *Folder) walkBlocks(ctx context.Context, names []string, to string, found func(Damage)) error {
	slices.SortFunc(names, func(a, b string) int {
		if c := strings.Compare(filepath.Dir(a), filepath.Dir(b)); c != 0 {
			return c
		}
		return blocks.Index(a) - blocks.Index(b)
	})
	last := uint64(0)
	for i, name := range names {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		dir := filepath.Dir(name)
		if i == 0 || filepath.Dir(names[i-1]) != dir {
			last = 0
		}
		ends := i == len(names)-1 || filepath.Dir(names[i+1]) != dir
		raw, err := os.ReadFile(filepath.Join(f.dir, name))
		if err != nil {
			return err
		}
		stream := filepath.Dir(dir)
		b, err := blocks.New(filepath.Base(stream), f.subjectsOf(stream), blocks.Index(name), last)
		if err != nil {
			return err
		}
		whole := true
		var kept bytes.Buffer
		content, broken := blocks.Decompress(raw)
		b.Scan(content, func(r []byte) {
			if to != "" {
				kept.Write(r)
			}
		}, func(d blocks.Damage) {
			whole = false
			d.File, d.Torn = name, d.Torn && ends && broken == nil
			found(d)
		})
		if broken != nil {
			whole = false
			found(Damage{
				Stream: b.Stream, File: name, Bytes: int64(len(raw)), After: b.Last,
				Reason: fmt.Sprintf("a server reads nothing of the file, which it can't decompress: %v", broken),
			})
		}
		last = b.Last
		if to == "" || !whole && kept.Len() == 0 {
			continue
		}
		if whole {
			kept.Reset()
			kept.Write(raw)
		}
		if err := os.WriteFile(filepath.Join(to, name), kept.Bytes(), 0o640); err != nil {
			return err
		}
	}
	return nil
}
