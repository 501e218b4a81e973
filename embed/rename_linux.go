package embed

import "syscall"

// orderedFileSystems are those that write a file's content to the disk before the
// rename that puts it in another one's place: by the numbers of statfs(2). ext4 does so
// unless it is mounted with noauto_da_alloc.
var orderedFileSystems = map[uint32]bool{
	0xef53:     true, // ext4
	0x9123683e: true, // btrfs
	0x2fc12fc1: true, // ZFS
	0x01021994: true, // tmpfs, which loses everything anyway
}

// ordersRenames reports whether a file that replaces another one by a rename is whole
// after a power loss, also without a sync before.
func ordersRenames(dir string) bool {
	var s syscall.Statfs_t
	return syscall.Statfs(dir, &s) == nil && orderedFileSystems[uint32(s.Type)]
}
