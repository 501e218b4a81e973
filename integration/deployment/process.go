package deployment

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// Process is a program that can be ended and started again.
type Process struct {
	Name string
	Env  []string // beside this program's, from the next start on
	More []string // arguments, from the next start on
	args []string // the program's path first
	dir  string   // where it runs
	log  string   // file

	mu    sync.Mutex
	cmd   *exec.Cmd
	ended chan struct{} // closed when the process has; nil: it was never started
}

// NewProcess returns a program that runs in a folder of its own, which has its log. It does
// not start it.
func NewProcess(name, dir string, args ...string) (*Process, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	return &Process{Name: name, args: args, dir: dir, log: filepath.Join(dir, "log")}, nil
}

// Start starts the process. It does not wait until it can be used.
func (p *Process) Start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(p.args[0], append(p.args[1:len(p.args):len(p.args)], p.More...)...)
	cmd.Env = append(os.Environ(), p.Env...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = p.dir, log, log
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	p.cmd, p.ended = cmd, ended
	go func() {
		_ = cmd.Wait() // the caller that ended it knows how
		close(ended)
	}()
	return nil
}

// Use has the next start run another program with the same arguments.
func (p *Process) Use(path string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.args = append([]string{path}, p.args[1:]...)
}

// Signal sends a signal, without waiting for what it does.
func (p *Process) Signal(s os.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd != nil {
		_ = p.cmd.Process.Signal(s) // it may have ended
	}
}

// Kill ends the process as the kernel would, if it runs, and returns when it
// is gone.
func (p *Process) Kill() {
	p.Signal(os.Kill)
	if ended := p.Ended(); ended != nil {
		<-ended
	}
}

// Stop ends the process as its operator would. It is an error if that takes
// longer than within; then the process is killed.
func (p *Process) Stop(within time.Duration) error { return p.end(syscall.SIGTERM, within) }

// Interrupt is Stop with SIGINT, as Ctrl-C sends it.
func (p *Process) Interrupt(within time.Duration) error { return p.end(os.Interrupt, within) }

func (p *Process) end(s os.Signal, within time.Duration) error {
	p.Signal(s)
	select {
	case <-p.Ended():
		return nil
	case <-time.After(within):
		p.Kill()
		return fmt.Errorf("%s did not stop within %s: %s", p.Name, within, p.LastWords())
	}
}

// Ended is closed when the process has ended. It is nil before the first start.
func (p *Process) Ended() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ended
}

// PID is the process's, or 0.
func (p *Process) PID() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return 0
	}
	return p.cmd.Process.Pid
}

// Log is the path of what the process has written.
func (p *Process) Log() string { return p.log }

// LastWords is the end of the process's log.
func (p *Process) LastWords() string {
	raw, _ := os.ReadFile(p.log)
	return "…" + string(raw[max(0, len(raw)-2000):])
}

// Resident is the memory of a process that is in use (RSS), in MiB; NaN if this
// system does not tell.
func Resident(pid int) float64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, rest, found := bytes.Cut(status, []byte("VmRSS:"))
	if fields := bytes.Fields(rest); err == nil && found && len(fields) > 0 {
		if kib, err := strconv.ParseFloat(string(fields[0]), 64); err == nil {
			return kib / 1024
		}
	}
	return math.NaN()
}

// Tick is the unit of /proc's times (USER_HZ).
const Tick = 10 * time.Millisecond

// Spent is what a process has taken of the machine's cores so far; 0 if this
// system does not tell.
func Spent(pid int) time.Duration {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	// The second field is a name in parentheses; utime and stime are the 14th
	// and the 15th.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	sum := time.Duration(0)
	for _, f := range fields[11:13] {
		ticks, err := strconv.ParseInt(string(f), 10, 64)
		if err != nil {
			return 0
		}
		sum += time.Duration(ticks) * Tick
	}
	return sum
}
