//go:build darwin || linux

package main

import "syscall"

// freeBytes is what a user may still store in the folder.
func freeBytes(dir string) (n uint64, ok bool) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, false
	}
	return s.Bavail * uint64(s.Bsize), true
}
