package mcptool

import (
	"context"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// inherited are the variables that every command gets.
var inherited = []string{"PATH", "HOME", "LANG"}

// drainTime is how long what a process wrote may still be read when it has
// ended. Whom it started may hold its stdout open, and would hide its end.
const drainTime = time.Second

// process is a server that runs as a child. It is the transport to it.
type process struct {
	cmd    *exec.Cmd
	stdin  *os.File
	stdout *os.File
	grace  time.Duration // before each harder way to stop it
	once   sync.Once

	exited chan struct{}
	state  *os.ProcessState // once it has exited
}

// startProcess runs a command. Its stderr is dropped.
func startProcess(command []string, env map[string]string, grace time.Duration) (*process, error) {
	theirIn, stdin, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	stdout, theirOut, err := os.Pipe()
	if err != nil {
		theirIn.Close()
		stdin.Close()
		return nil, err
	}
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env, cmd.Stdin, cmd.Stdout = environment(env), theirIn, theirOut
	isolate(cmd)
	err = cmd.Start()
	theirIn.Close()
	theirOut.Close()
	if err != nil {
		stdin.Close()
		stdout.Close()
		return nil, err
	}
	p := &process{cmd: cmd, stdin: stdin, stdout: stdout, grace: grace, exited: make(chan struct{})}
	go p.wait()
	return p, nil
}

// wait collects the process when it ends.
func (p *process) wait() {
	p.state, _ = p.cmd.Process.Wait()
	_ = p.stdout.SetReadDeadline(time.Now().Add(drainTime))
	close(p.exited)
}

// environment is never nil: that would be all of ours.
func environment(env map[string]string) []string {
	vars := []string{}
	for _, name := range inherited {
		if value, ok := os.LookupEnv(name); ok {
			vars = append(vars, name+"="+value)
		}
	}
	for name, value := range env { // of two values the last counts
		vars = append(vars, name+"="+value)
	}
	return vars
}

// Connect makes it a transport of the SDK. Closing the connection closes the
// server's stdin; its stdout is closed when it has ended, so that it can still
// write while it stops.
func (p *process) Connect(ctx context.Context) (mcp.Connection, error) {
	inner, err := (&mcp.IOTransport{Reader: io.NopCloser(p.stdout), Writer: p.stdin}).Connect(ctx)
	if err != nil {
		return nil, err
	}
	return newPipe(inner), nil
}

// stop ends the process and waits for it: it closes its stdin and, if it does
// not end within the grace, sends SIGTERM, then SIGKILL.
func (p *process) stop() {
	p.once.Do(func() {
		defer p.stdout.Close()
		p.stdin.Close()
		for _, signal := range []os.Signal{syscall.SIGTERM, os.Kill} {
			timer := time.NewTimer(p.grace)
			select {
			case <-p.exited:
				timer.Stop()
				return
			case <-timer.C:
			}
			if p.cmd.Process.Signal(signal) != nil {
				_ = p.cmd.Process.Kill() // there may be no SIGTERM
			}
		}
		<-p.exited
	})
}
