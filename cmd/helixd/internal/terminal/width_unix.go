//go:build unix

package terminal

import (
	"os"

	"golang.org/x/sys/unix"
)

// Width returns how many columns a terminal has; 0: it is none.
func Width(stream any) int {
	f, ok := stream.(*os.File)
	if !ok {
		return 0
	}
	raw, err := f.SyscallConn()
	if err != nil {
		return 0
	}
	width := 0
	_ = raw.Control(func(fd uintptr) { // of a file that is closed, it has none
		if size, err := unix.IoctlGetWinsize(int(fd), unix.TIOCGWINSZ); err == nil {
			width = int(size.Col)
		}
	})
	return width
}
