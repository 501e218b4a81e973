package datadir

import "syscall"

// tmpfs is the number of that file system in statfs(2).
const tmpfs = 0x01021994

// FreeMemory returns how many bytes a folder takes if it is on a file system in memory.
func FreeMemory(dir string) (n uint64, ok bool) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil || uint32(s.Type) != tmpfs {
		return 0, false
	}
	return s.Bavail * uint64(s.Bsize), true
}
