package flags

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
)

// Process is what a command uses of its process.
type Process struct {
	Ctx    context.Context // ends at SIGINT and SIGTERM
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
	Log    *slog.Logger // to stderr
	Logs   Log          // the flags of Log, for commands that read a configuration
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

// ErrDamage reports that a verification has run and found damage or a difference.
var ErrDamage error = &exitError{2, "problems were found"}

// ExitCode is the code that the process exits with: the error's own, or 1.
func ExitCode(err error) int {
	var e interface{ ExitCode() int }
	if errors.As(err, &e) {
		return e.ExitCode()
	}
	return 1
}
