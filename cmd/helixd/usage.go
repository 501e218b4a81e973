package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/helixd/helixd/cmd/helixd/internal/terminal"
)

// exitMisused is the exit code of an invalid command line.
const exitMisused = 2

// argsOrHelp are the arguments, or those that show what there is.
func argsOrHelp(args []string) []string {
	if len(args) == 0 {
		return []string{"--help"}
	}
	return args
}

// misused says in three lines what is wrong with a command line: the error, how the command
// is used, and where to read more. It returns the exit code.
func misused(w io.Writer, err error) int {
	command, usage := "helixd", "<command> [flags]"
	if parse, ok := errors.AsType[*kong.ParseError](err); ok {
		for _, part := range parse.Context.Path {
			if part.Command != nil {
				command, usage = "helixd "+part.Command.Path(), strings.TrimSpace(strings.TrimPrefix(part.Command.Summary(), part.Command.Path()))
			}
		}
	}
	fmt.Fprintf(w, "helixd: %s\nusage: %s %s\n%[2]s --help shows more\n", terminal.Printable(err.Error()), command, usage)
	return exitMisused
}
