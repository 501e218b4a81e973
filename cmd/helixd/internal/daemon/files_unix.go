//go:build unix

package daemon

import "golang.org/x/sys/unix"

// openFiles is how many files the process may open; 0: it is not known.
func openFiles() int {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return 0
	}
	return int(min(uint64(limit.Cur), 1<<30))
}
