package datadir

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
)

// Replace writes a file atomically, and returns when it is on the disk.
func Replace(path string, content []byte) error {
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
	return Sync(filepath.Dir(path))
}
