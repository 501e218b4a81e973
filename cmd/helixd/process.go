package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
)

// process is what a command has of its process.
type process struct {
	ctx    context.Context // ends at SIGINT and SIGTERM
	stdin  io.Reader
	stdout io.Writer
	stderr io.Writer
	log    *slog.Logger // to stderr
	logs   logFlags     // what log is made of, for those that read a configuration
}

// exitError is an error with an exit code of its own.
type exitError struct {
	code int
	text string
}

// Error implements error.
func (e *exitError) Error() string { return e.text }

// ExitCode is the code that the process exits with.
func (e *exitError) ExitCode() int { return e.code }

// errDamage reports that a verification has run and found damage or a difference.
var errDamage error = &exitError{2, "problems were found"}

// exitCode is the code that the process exits with: the error's own, or 1.
func exitCode(err error) int {
	var e interface{ ExitCode() int }
	if errors.As(err, &e) {
		return e.ExitCode()
	}
	return 1
}
