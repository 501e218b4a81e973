package flags

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/helixd/helixd/httpapi/api"
)

// Process is what a command uses of its process.
type Process struct {
	Ctx    context.Context // ends at SIGINT and SIGTERM
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
	Log    *slog.Logger // to stderr
	Logs   Log          // the flags of Log, for commands that read a configuration

	lines  chan string // of Stdin, once Ask has been called
	failed error       // why there are no more of them, nil: the input has ended
}

// Ask writes a question to the standard error, and returns the next line of the standard
// input without the spaces around it. At the end of the input the error is io.EOF.
func (p *Process) Ask(question string) (string, error) {
	fmt.Fprint(p.Stderr, question)
	if p.lines == nil {
		lines := make(chan string)
		p.lines = lines
		go func() { // a read of a terminal can't be ended
			defer close(lines)
			in := bufio.NewScanner(p.Stdin)
			in.Buffer(nil, api.MaxBody) // a longer one can't be sent
			for in.Scan() {
				select {
				case lines <- in.Text():
				case <-p.Ctx.Done():
					return
				}
			}
			p.failed = in.Err()
		}()
	}
	select {
	case line, ok := <-p.lines:
		if !ok && p.failed != nil {
			return "", fmt.Errorf("the standard input: %w", p.failed)
		}
		if !ok {
			return "", io.EOF
		}
		return strings.TrimSpace(line), nil
	case <-p.Ctx.Done():
		return "", p.Ctx.Err()
	}
}

// Confirm asks a question, and reports whether the answer is yes. No answer is no.
func (p *Process) Confirm(question string) bool {
	answer, _ := p.Ask(question + " [y/N] ")
	return isWord(answer, "yes")
}

// Decide asks a question until the answer is yes or no.
func (p *Process) Decide(question string) (yes bool, err error) {
	for {
		answer, err := p.Ask(question + " [y/n] ")
		if yes := isWord(answer, "yes"); err != nil || yes || isWord(answer, "no") {
			return yes, err
		}
	}
}

// isWord reports whether an answer is a word or its first letter.
func isWord(answer, word string) bool {
	return strings.EqualFold(answer, word) || strings.EqualFold(answer, word[:1])
}

// Open opens a file that a command reads; - is the standard input.
func (p *Process) Open(file string) (io.ReadCloser, error) {
	if file == "-" {
		return io.NopCloser(p.Stdin), nil
	}
	return os.Open(file)
}

// exitError is an error with its own exit code.
type exitError struct {
	code int
	text string
}

// Error implements error.
func (e *exitError) Error() string { return e.text }

// ExitCode is the code that the process exits with.
func (e *exitError) ExitCode() int { return e.code }

// WithCode returns an error with the exit code that it gives the process.
func WithCode(code int, err error) error { return &exitError{code, err.Error()} }

// Misuse is an invalid command line that the command finds, or the daemon: the parser did
// not.
type Misuse struct{ cause error }

// Misused returns an error as one of the command line.
func Misused(err error) error { return &Misuse{err} }

func (m *Misuse) Error() string { return m.cause.Error() }
func (m *Misuse) Unwrap() error { return m.cause }

// ExitCode is that of an invalid command line.
func (m *Misuse) ExitCode() int { return ExitMisused }

// ExitMisused is the exit code of an invalid command line.
const ExitMisused = 2

// Errors with their own exit codes.
var (
	// ErrDamage reports that a verification has run and found damage or a difference.
	ErrDamage error = &exitError{2, "problems were found"}
	// ErrWaits and ErrStopped report that a run has neither completed nor failed.
	ErrWaits   error = &exitError{3, "the run waits for an answer"}
	ErrStopped error = &exitError{4, "the run was interrupted"}
)

// ExitCode is the code that the process exits with: the error's own, or 1.
func ExitCode(err error) int {
	var e interface{ ExitCode() int }
	if errors.As(err, &e) {
		return e.ExitCode()
	}
	return 1
}
