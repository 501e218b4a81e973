package embed

import "syscall"

// orderedFileSystems are those that write a file's content at the rename that puts it in
// another one's place, by the numbers of statfs(2). ZFS keeps the order. ext4, unless it is
// mounted with noauto_da_alloc, and btrfs begin to write and do not wait: until the sync
// that follows, for milliseconds, a power loss can take the file.
var orderedFileSystems = map[uint32]bool{
	0xef53:     true, // ext4
	0x9123683e: true, // btrfs
	0x2fc12fc1: true, // ZFS
	0x01021994: true, // tmpfs, which loses everything anyway
}

// ordersRenames reports whether a file that replaces another one by a rename is on its way
// to the disk by then, without a sync. Where it is not, it may wait there for half a minute.
func ordersRenames(dir string) bool {
	var s syscall.Statfs_t
	return syscall.Statfs(dir, &s) == nil && orderedFileSystems[uint32(s.Type)]
}
