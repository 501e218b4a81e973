//go:build !windows

package embed

import (
	"errors"
	"os"
)

// syncFolder has what was renamed in a folder reach the disk.
func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
