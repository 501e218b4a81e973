//go:build !windows

package datadir

import (
	"errors"
	"os"
)

// Sync writes the names in a folder to the disk: after a rename, the new name may otherwise be lost.
func Sync(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
