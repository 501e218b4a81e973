package blocks

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// A process that is killed, or a machine that loses its power, while it writes a message
// leaves the beginning of a record at the end of the stream. The message was not
// acknowledged. The server would cut it off, too, but it would report that as it reports
// damage: verify could not tell them apart.

// cutUnfinished cuts such a beginning off the end of each stream. No server may use the folder.
func cutUnfinished(dir string) error {
	names, err := streamsIn(dir)
	if err != nil {
		return err
	}
	for _, stream := range names {
		name, at, err := unfinished(dir, stream)
		if err == nil && name != "" {
			err = cut(filepath.Join(dir, name), at)
		}
		if err != nil {
			return fmt.Errorf("embed: data dir: stream %s: %w", stream, err)
		}
	}
	return nil
}

// unfinished returns the block and the offset at which an unfinished record begins that a
// stream ends in; name is empty if there is none, or anything else in the block is damaged.
func unfinished(dir, stream string) (name string, at int64, err error) {
	names, err := (&Scrubber{Dir: dir, Stream: stream}).files()
	if err != nil || len(names) == 0 {
		return "", 0, err
	}
	last := len(names) - 1
	if indexed(filepath.Join(dir, names[last])) {
		return "", 0, nil
	}
	b, raw, err := load(dir, stream, names[last])
	if err != nil || b == nil || len(raw) == 0 {
		return "", 0, err
	}
	if last > 0 && !b.record(raw).whole { // the sequence before it is in another block
		before, raw, err := load(dir, stream, names[last-1])
		if err != nil || before == nil {
			return "", 0, err
		}
		before.Scan(raw, func([]byte) {}, func(Damage) {})
		b.Last = before.Last
	}
	var found []Damage
	b.Scan(raw, func([]byte) {}, func(d Damage) { found = append(found, d) })
	if len(found) != 1 || !found[0].Torn {
		return "", 0, nil
	}
	return names[last], found[0].Offset, nil
}

// load returns a block and its records, or nil if it can't be decompressed.
func load(dir, stream, name string) (*Block, []byte, error) {
	raw, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return nil, nil, err
	}
	plain, broken := Decompress(raw)
	if broken != nil {
		return nil, nil, nil
	}
	b, err := New(stream, nil, Index(name), 0)
	return b, plain, err
}

// indexed reports whether the server has stored the stream's index after it wrote to a
// block: it was stopped, not killed.
func indexed(block string) bool {
	index, err := os.Stat(filepath.Join(filepath.Dir(block), "index.db"))
	if err != nil {
		return false
	}
	info, err := os.Stat(block)
	return err == nil && index.ModTime().After(info.ModTime().Add(time.Second)) // times may be coarse
}

// cut shortens a file.
func cut(path string, size int64) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Truncate(size), f.Sync(), f.Close())
}

// streamsIn returns the names of the streams in a data folder.
func streamsIn(dir string) (names []string, err error) {
	entries, err := os.ReadDir(filepath.Join(dir, "jetstream", Account, "streams"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("embed: data dir: %w", err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, nil
}
