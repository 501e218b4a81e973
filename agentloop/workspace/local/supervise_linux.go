package local

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// superviseName is what this program is called where it supervises a
	// command instead of doing what it is for.
	superviseName = "helixd-workspace"

	searchPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

	controlFile, reportFile = 3, 4
	maxInherited            = 4096
	// countEvery is how often processes are counted.
	countEvery = 50 * time.Millisecond
)

// A program that uses this package is its own supervisor, so that there is
// nothing to be installed, and no hook to be forgotten in main.
func init() {
	if len(os.Args) == 1 && os.Args[0] == superviseName {
		syscall.Exit(superviseMain()) // os.Exit waits a second for the race detector
	}
	if len(os.Args) == 3 && os.Args[0] == commandName {
		syscall.Exit(commandMain(os.Args[1], os.Args[2]))
	}
}

func superviseMain() int {
	// Also what the daemon itself inherited.
	if unix.CloseRange(controlFile, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC) != nil { // before Linux 5.11
		for fd := controlFile; fd < maxInherited; fd++ {
			unix.CloseOnExec(fd)
		}
	}
	unix.Umask(0o022) // not the daemon's
	// Caught and not ignored: what is ignored, the command would ignore, too.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGPIPE)
	r, err := supervise(os.NewFile(controlFile, "control"))
	if err != nil {
		r.Error = err.Error()
	}
	if json.NewEncoder(os.NewFile(reportFile, "report")).Encode(r) != nil {
		return 1
	}
	return 0
}

// supervise runs the command that it reads from control, until it ends, has too many
// processes, or control is closed. All that it began is dead then, or dies with
// this process.
func supervise(control io.Reader) (r report, err error) {
	var j job
	if err := json.NewDecoder(control).Decode(&j); err != nil {
		return r, fmt.Errorf("control: %w", err)
	}
	closed := make(chan struct{})
	go func() { // ends with the process
		_, _ = io.Copy(io.Discard, control)
		close(closed)
	}()
	// The first process to be killed when memory is short, if that can be set.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
	home, temp := j.Files, filepath.Join(j.Files, j.Temp)
	if j.Isolated {
		if home, temp, err = isolate(j); err != nil {
			return r, err
		}
	} else if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return r, fmt.Errorf("adopt orphans: %w", err)
	}
	if err := enter(home, j.Dir); err != nil {
		return r, err
	}
	limits, err := json.Marshal(job{
		UID: j.UID, GID: j.GID, MaxProcesses: j.MaxProcesses, MaxBytes: j.MaxBytes, MaxMemory: j.MaxMemory,
		Isolated: j.Isolated, HostNetwork: j.HostNetwork, Filtered: j.Filtered,
	})
	if err != nil {
		return r, err
	}
	cmd := &exec.Cmd{
		Path: "/proc/self/exe", Args: []string{commandName, string(limits), j.Line},
		Env:   []string{"PATH=" + searchPath, "HOME=" + home, "TMPDIR=" + temp, "LANG=C.UTF-8"},
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	if err := cmd.Start(); err != nil {
		return r, err
	}
	exited, dead := make(chan int, 1), make(chan struct{})
	go reap(cmd.Process.Pid, exited, dead)
	r.Exit = -1
	tick := time.NewTicker(countEvery)
	defer tick.Stop()
	for ended := false; !ended; {
		select {
		case r.Exit = <-exited:
			ended = true
		case <-closed:
			ended = true
		case <-tick.C:
		}
		// Also at the end: what begins too many may end by that itself.
		n, memory, err := descendants()
		switch {
		case err != nil:
		case len(n) > j.MaxProcesses:
			r.Stopped, ended = stoppedProcesses, true
		case memory > j.MaxMemory:
			r.Stopped, ended = stoppedMemory, true
		}
	}
	if !j.Isolated {
		endAll(dead)
	}
	return r, nil
}

// enter makes a folder of the workspace the current one. It may be a link that
// was exchanged since it was looked at.
func enter(home, dir string) error {
	root, err := os.OpenRoot(home)
	if err != nil {
		return err
	}
	defer root.Close()
	d, err := root.OpenFile(dir, os.O_RDONLY|folderFlags, 0)
	if err != nil {
		return err
	}
	return errors.Join(d.Chdir(), d.Close())
}

// reap waits for all children, orphans too, so that none stays a zombie. It
// says how the command ended, and when there are no more.
func reap(command int, exited chan<- int, dead chan<- struct{}) {
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			close(dead)
			return
		case pid == command && status.Signaled():
			exited <- 128 + int(status.Signal())
		case pid == command:
			exited <- status.ExitStatus()
		}
	}
}
