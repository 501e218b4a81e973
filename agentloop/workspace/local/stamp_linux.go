package local

import (
	"io/fs"
	"syscall"
	"time"
)

// stamp differs when a file has changed: only root can set the time of a file's
// last inode change.
type stamp struct {
	inode  uint64
	size   int64
	mode   uint32
	change syscall.Timespec
}

func stampOf(info fs.FileInfo) (s stamp, ok bool) {
	i, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return s, false
	}
	return stamp{inode: i.Ino, size: i.Size, mode: i.Mode, change: i.Ctim}, true
}

func (s stamp) changed() time.Time { return time.Unix(s.change.Unix()) }
