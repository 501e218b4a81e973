package main

import (
	"fmt"
	"syscall"
)

// spareFiles is what a process has open beside its clients' connections.
const spareFiles = 1000

// raiseFiles lets this process and those that it starts have so many files
// open, as far as the system allows it, and returns how many that is.
func raiseFiles(want uint64) (uint64, error) {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return 0, fmt.Errorf("RLIMIT_NOFILE: %w", err)
	}
	if l.Max < want { // allowed to root only
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: want, Max: want}); err == nil {
			return want, nil
		}
	}
	// Set in any case: what the runtime has raised it does not hand on.
	l.Cur = min(want, l.Max)
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return 0, fmt.Errorf("RLIMIT_NOFILE: %w", err)
	}
	return l.Cur, nil
}
