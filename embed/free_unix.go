//go:build darwin || linux

package embed

import "syscall"

// FreeBytes is how many bytes a user may still store in a folder, where the
// system tells.
func FreeBytes(dir string) (n uint64, ok bool) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, false
	}
	return s.Bavail * uint64(s.Bsize), true
}
