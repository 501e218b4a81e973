package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/helixd/helixd/cmd/helixd/internal/flags"
	"github.com/helixd/helixd/cmd/helixd/internal/terminal"
)

// argsOrHelp are the arguments, or those that show what there is.
func argsOrHelp(args []string) []string {
	if len(args) == 0 {
		return []string{"--help"}
	}
	return args
}

// misused says in three lines what is wrong with a command line: the error, how the command
// is used, and where to read more. It returns the exit code. k is the line if it was parsed.
func misused(w io.Writer, err error, k *kong.Context) int {
	command, usage := "helixd", "<command> [flags]"
	if parse, ok := errors.AsType[*kong.ParseError](err); ok {
		k = parse.Context
	}
	if k != nil {
		for _, part := range k.Path {
			if part.Command != nil {
				command, usage = "helixd "+part.Command.Path(), strings.TrimSpace(strings.TrimPrefix(part.Command.Summary(), part.Command.Path()))
			}
		}
	}
	fmt.Fprintf(w, "helixd: %s\nusage: %s %s\n%[2]s --help shows more\n", terminal.Printable(err.Error()), command, usage)
	return flags.ExitMisused
}

// checkNames refuses empty names, such as those of a shell's unset variable: an empty id in
// the path of a request would be another route.
func checkNames(k *kong.Context) error {
	for _, value := range k.Selected().Positional {
		if text, ok := value.Target.Interface().(string); ok && value.Required && text == "" {
			return fmt.Errorf("<%s> must not be empty", value.Name)
		}
	}
	return nil
}
