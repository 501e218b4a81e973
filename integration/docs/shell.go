package docs

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// mark ends a command's output. No command prints it.
const mark = "\x1e"

// Shell is one bash for all commands of a page.
type Shell struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	out   *bufio.Reader
	close sync.Once
}

// Isolated says whether this system gives a page its own network.
func Isolated() bool {
	return exec.Command("unshare", "-rn", "ip", "link", "set", "lo", "up").Run() == nil
}

// StartShell starts a shell in a folder. Its processes end with [Shell.Close],
// or with ctx.
func StartShell(ctx context.Context, dir string, env []string, isolated bool) (*Shell, error) {
	args := []string{"bash", "--norc", "--noprofile"}
	if isolated {
		args = []string{"unshare", "-rn", "bash", "--norc", "--noprofile"}
	}
	s := &Shell{cmd: exec.CommandContext(ctx, args[0], args[1:]...)}
	s.cmd.Dir, s.cmd.Env = dir, env
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	s.cmd.Cancel = s.kill
	s.cmd.WaitDelay = 10 * time.Second
	var err error
	if s.stdin, err = s.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	s.out = bufio.NewReader(out)
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	begin := "exec 2>&1"
	if isolated {
		begin += "; ip link set lo up"
	}
	if _, err := s.Run(begin); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// ErrFailed is a command's that ended with another code than 0.
var ErrFailed = errors.New("the command failed")

// Run runs a command and returns what it wrote. Its error is [ErrFailed] when
// the command failed.
func (s *Shell) Run(command string) (output string, err error) {
	// In the shell itself, since later commands need its variables and jobs.
	// Without input: a command would read the next ones.
	_, err = fmt.Fprintf(s.stdin, "{ %s\n} </dev/null; printf '\\036%%d\\036' $?\n", strings.TrimRight(command, "\n"))
	if err != nil {
		return "", err
	}
	output, err = s.out.ReadString(mark[0])
	if err != nil {
		return output, fmt.Errorf("the shell has ended: %w", err)
	}
	output = strings.TrimSuffix(output, mark)
	code, err := s.out.ReadString(mark[0])
	if err != nil {
		return output, fmt.Errorf("the shell has ended: %w", err)
	}
	if n, err := strconv.Atoi(strings.TrimSuffix(code, mark)); err != nil || n != 0 {
		return output, fmt.Errorf("%w: exit code %s", ErrFailed, strings.TrimSuffix(code, mark))
	}
	return output, nil
}

// stay starts a command that goes on until [Shell.Close]. It returns what the
// command has written as soon as that is what a page shows, or within a minute.
func (s *Shell) stay(command, shown string) (output string, err error) {
	file, err := os.CreateTemp("", "terminal")
	if err != nil {
		return "", err
	}
	defer os.Remove(file.Name())
	defer file.Close()
	if _, err := s.Run(fmt.Sprintf("(%s\n) </dev/null >%s 2>&1 &", command, file.Name())); err != nil {
		return "", err
	}
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		written, err := os.ReadFile(file.Name())
		if err != nil || Matches(shown, string(written)) || time.Since(began) > time.Minute {
			return string(written), err
		}
	}
}

// kill ends the shell and what it started: all of its process group.
func (s *Shell) kill() error { return syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL) }

// Close ends the shell and what it started. It can be called again.
func (s *Shell) Close() {
	s.close.Do(func() {
		s.kill()
		s.stdin.Close()
		s.cmd.Wait()
	})
}
