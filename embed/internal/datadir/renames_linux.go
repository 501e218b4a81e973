package datadir

import "syscall"

// orderedFileSystems are the file systems, by their numbers in statfs(2), that write the content
// of a file when it is renamed over another one. ZFS keeps the order. btrfs and ext4 (unless it is
// mounted with noauto_da_alloc) start to write and do not wait: a power loss can still take the
// file in the milliseconds before the next sync.
var orderedFileSystems = map[uint32]bool{
	0xef53:     true, // ext4
	0x9123683e: true, // btrfs
	0x2fc12fc1: true, // ZFS
	tmpfs:      true, // which loses everything anyway
}

// OrdersRenames reports whether the file system starts to write a file when it is renamed over
// another one, without a sync. On other file systems the content may stay in memory for 30 seconds.
func OrdersRenames(dir string) bool {
	var s syscall.Statfs_t
	return syscall.Statfs(dir, &s) == nil && orderedFileSystems[uint32(s.Type)]
}
