package blocks

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// temporary are the files in which a server writes a block that is to replace another.
// One that was killed leaves them, with messages that are erased since: it neither
// reads nor removes them.
var temporary = []string{
	"jetstream/*/streams/*/msgs/*.tmp", "jetstream/*/streams/*/msgs/*.new",
	"jetstream/*/_js_/*/msgs/*.tmp", "jetstream/*/_js_/*/msgs/*.new",
}

// removeTemporary removes what a server that was killed has left half written.
func removeTemporary(dir string) error {
	for _, pattern := range temporary {
		files, err := filepath.Glob(filepath.Join(dir, filepath.FromSlash(pattern)))
		if err != nil {
			return fmt.Errorf("embed: data dir: %w", err)
		}
		for _, file := range files {
			if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("embed: data dir: %w", err)
			}
		}
	}
	return nil
}

// FinishErasing overwrites and removes what was to go when a server stopped or was
// killed, and cuts off what it had begun to write. No server may use the folder.
func FinishErasing(dir string) error {
	for _, f := range []func(dir string) error{Redo, scrubAtStart, cutUnfinished, finishDeletes, removeTemporary} {
		if err := f(dir); err != nil {
			return err
		}
	}
	return nil
}
