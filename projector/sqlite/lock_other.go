//go:build !unix || solaris || aix

package sqlite

import "os"

// lockFile locks nothing where the system has no flock.
func lockFile(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
}
