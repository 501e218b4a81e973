package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/helixd/helixd/agentloop/workspace"
	"github.com/helixd/helixd/eventlog"
)

// job is the supervisor's order about a command.
type job struct {
	Isolated bool     `json:"isolated"`
	Line     string   `json:"line"`
	Files    string   `json:"files"` // the workspace's folder
	Dir      string   `json:"dir"`   // within it
	Temp     string   `json:"temp"`  // within it
	Hide     []string `json:"hide"`
	// UID and GID are as whom it runs; nil: as the supervisor.
	UID          *int  `json:"uid,omitempty"`
	GID          *int  `json:"gid,omitempty"`
	MaxProcesses int   `json:"maxProcesses"`
	MaxBytes     int64 `json:"maxBytes"`
	MaxMemory    int64 `json:"maxMemory"`
	HostNetwork  bool  `json:"hostNetwork"`
	Filtered     bool  `json:"filtered"` // its calls are
}

// report is what the supervisor says at the end.
type report struct {
	Exit    int    `json:"exit"`
	Stopped string `json:"stopped,omitempty"`
	Error   string `json:"error,omitempty"`
}

// Reasons for which a command is ended.
const (
	stoppedTimeout   = "timeout"
	stoppedOutput    = "output"
	stoppedProcesses = "processes"
	stoppedMemory    = "memory"
	stoppedQuota     = "quota"
)

// endPatience is how long a supervisor may take to end everything.
const endPatience = 5 * time.Second

// run runs a command under a supervisor, and returns when all that it began is
// dead. over reports whether it has written too much to files; it may be nil.
func (p *Provider) run(ctx context.Context, stdin string, timeout time.Duration, over func(context.Context) bool, j job) (workspace.Outcome, error) {
	j.Hide = append([]string{p.dir}, *p.hidden.Load()...)
	j.MaxProcesses, j.MaxBytes, j.MaxMemory = p.opts.MaxProcesses, p.opts.MaxBytes, p.opts.MaxMemory
	j.Filtered = p.unfiltered == nil
	if os.Geteuid() != p.user.uid {
		j.UID, j.GID = &p.user.uid, &p.user.gid
	}
	control, hold, err := os.Pipe() // the supervisor ends when hold is closed
	if err != nil {
		return workspace.Outcome{}, err
	}
	defer hold.Close()
	defer control.Close()
	said, say, err := os.Pipe()
	if err != nil {
		return workspace.Outcome{}, err
	}
	defer said.Close()
	defer say.Close()
	ctx, stop := context.WithTimeoutCause(ctx, timeout, stopped(stoppedTimeout))
	defer stop()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)

	tooMuch := func() { end(stopped(stoppedOutput)) }
	stdout, stderr := &capture{full: tooMuch}, &capture{full: tooMuch}
	cmd := &exec.Cmd{
		Path: "/proc/self/exe", Args: []string{superviseName}, Env: []string{"PATH=" + searchPath}, Dir: "/",
		Stdin: strings.NewReader(stdin), Stdout: stdout, Stderr: stderr,
		ExtraFiles: []*os.File{control, say}, SysProcAttr: p.user.attributes(j), WaitDelay: endPatience,
	}
	if err := cmd.Start(); err != nil {
		return workspace.Outcome{}, fmt.Errorf("run: %w", err)
	}
	control.Close()
	say.Close()
	// What comes first ends the others.
	var group sync.WaitGroup
	done := make(chan struct{})
	group.Go(func() {
		if json.NewEncoder(hold).Encode(j) != nil {
			return // it has ended, and says why
		}
	})
	group.Go(func() {
		select {
		case <-done:
			return
		case <-ctx.Done():
			hold.Close()
		}
		if !j.Isolated { // no other process ends the orphans that it has adopted
			return
		}
		select {
		case <-done:
		case <-time.After(endPatience):
			_ = cmd.Process.Kill() // with its namespace
		}
	})
	if over != nil {
		group.Go(func() { watchQuota(ctx, over, end) })
	}
	var r report
	rerr := json.NewDecoder(io.LimitReader(said, 64<<10)).Decode(&r)
	werr := cmd.Wait()
	cause := context.Cause(ctx) // before it is ended for the others
	close(done)
	end(nil)
	group.Wait()

	o := workspace.Outcome{ExitCode: r.Exit, Stopped: r.Stopped}
	o.Stdout, o.Stderr = stdout.text(), stderr.text()
	o.Truncated = stdout.truncated() || stderr.truncated()
	var why stopped
	switch {
	case rerr == nil && r.Error == "" && r.Stopped == "" && r.Exit >= 0 && cause == nil:
		return o, nil
	case errors.As(cause, &why):
		o.ExitCode, o.Stopped = -1, string(why)
		return o, nil
	case cause != nil:
		return workspace.Outcome{}, cause
	case r.Error != "":
		return workspace.Outcome{}, fmt.Errorf("run: %s", r.Error)
	case r.Stopped != "":
		o.ExitCode = -1
		return o, nil
	}
	return workspace.Outcome{}, fmt.Errorf("run: the supervisor ended: %w", errors.Join(rerr, werr))
}

// stopped is the limit that has ended a command.
type stopped string

func (s stopped) Error() string { return "ended: " + string(s) }

// watchQuota ends a command that fills the disk. It counts for a tenth of the
// time, at most.
func watchQuota(ctx context.Context, over func(context.Context) bool, end context.CancelCauseFunc) {
	pause := quotaEvery
	for eventlog.Sleep(ctx, pause) == nil {
		began := time.Now()
		if over(ctx) {
			end(stopped(stoppedQuota))
			return
		}
		pause = max(quotaEvery, 10*time.Since(began))
	}
}

// attributes are how a supervisor is started.
func (u user) attributes(j job) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setsid: true}
	if !j.Isolated {
		return a
	}
	a.Cloneflags = unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWIPC
	if !j.HostNetwork {
		a.Cloneflags |= unix.CLONE_NEWNET
	}
	same := func(id int) syscall.SysProcIDMap { return syscall.SysProcIDMap{ContainerID: id, HostID: id, Size: 1} }
	a.UidMappings, a.GidMappings = []syscall.SysProcIDMap{same(u.uid)}, []syscall.SysProcIDMap{same(u.gid)}
	if os.Geteuid() == 0 { // the supervisor's own
		a.UidMappings, a.GidMappings = append(a.UidMappings, same(0)), append(a.GidMappings, same(0))
		a.GidMappingsEnableSetgroups = true
		return a
	}
	// To mount, to forbid more namespaces, and for the loopback interface; commands
	// don't get them.
	a.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SYS_RESOURCE, unix.CAP_NET_ADMIN}
	return a
}

// capture keeps the beginning of an output.
type capture struct {
	full func() // called when there is far too much

	mu   sync.Mutex
	kept []byte
	n    int
}

func (c *capture) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept = append(c.kept, b[:min(len(b), workspace.MaxOutput-len(c.kept))]...)
	if c.n += len(b); c.n > maxWritten {
		c.full()
	}
	return len(b), nil
}

func (c *capture) truncated() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n > len(c.kept)
}

// text is valid UTF-8 for any output.
func (c *capture) text() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.ToValidUTF8(string(c.kept), "\uFFFD")
}
