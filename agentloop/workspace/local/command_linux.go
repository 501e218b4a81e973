package local

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	// commandName is what this program is called where it becomes a command: a
	// supervisor with the limits of one could not begin the threads that it needs
	// to end that.
	commandName = "helixd-workspace-command"
	// notBegun is the exit code of a command that could not begin, as of a shell.
	notBegun = 126
	// threadsEach bounds the threads of all processes together, so that what
	// begins processes faster than they are counted fails.
	threadsEach = 8
)

// commandMain becomes a command, under the limits of a job.
func commandMain(limits, line string) int {
	runtime.LockOSThread() // rights are a thread's
	debug.SetGCPercent(-1) // which would begin threads after the limits are set
	fmt.Fprintln(os.Stderr, "helixd: the command can't begin:", begin(limits, line))
	return notBegun
}

func begin(limits, line string) error {
	var j job
	if err := json.Unmarshal([]byte(limits), &j); err != nil {
		return err
	}
	if err := limit(j); err != nil {
		return err
	}
	if j.Filtered {
		if err := filterCalls(j); err != nil {
			return fmt.Errorf("filter system calls: %w", err)
		}
	}
	return syscall.Exec("/bin/sh", []string{"sh", "-c", line}, os.Environ())
}

// limit takes from this thread what a command must not have.
func limit(j job) error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no new rights: %w", err)
	}
	for right := range uintptr(unix.CAP_LAST_CAP + 1) { // where it runs as root of a namespace
		_ = unix.Prctl(unix.PR_CAPBSET_DROP, right, 0, 0, 0)
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("no ambient rights: %w", err)
	}
	threads := threadsOf(j) // the limit counts what the user has besides, too
	if j.UID != nil {
		if err := errors.Join(syscall.Setgroups(nil), syscall.Setgid(*j.GID), syscall.Setuid(*j.UID)); err != nil {
			return fmt.Errorf("run as %d: %w", *j.UID, err)
		}
	}
	for _, l := range []struct {
		what int
		most uint64
	}{
		{unix.RLIMIT_CORE, 0},
		{unix.RLIMIT_FSIZE, uint64(j.MaxBytes)},
		{unix.RLIMIT_NPROC, threads + uint64(threadsEach*j.MaxProcesses)}, // late: this process has threads
		{unix.RLIMIT_DATA, uint64(j.MaxMemory)},                           // and memory
	} {
		var now unix.Rlimit
		if err := unix.Getrlimit(l.what, &now); err != nil {
			return fmt.Errorf("limits: %w", err)
		}
		most := min(l.most, now.Max)
		if err := unix.Setrlimit(l.what, &unix.Rlimit{Cur: most, Max: most}); err != nil {
			return fmt.Errorf("limits: %w", err)
		}
	}
	return nil
}
