//go:build darwin || linux

package datadir

import "syscall"

// FreeBytes returns how many bytes a user may still store in a folder. ok is false if the
// operating system can't say.
func FreeBytes(dir string) (n uint64, ok bool) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, false
	}
	return s.Bavail * uint64(s.Bsize), true
}
