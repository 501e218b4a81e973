package workspace

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

type runArgs struct {
	Command        string `json:"command" jsonschema:"the command line"`
	Dir            string `json:"dir,omitempty" jsonschema:"the folder to run it in, relative to the workspace; the workspace itself if you leave it out"`
	Stdin          string `json:"stdin,omitempty" jsonschema:"what the command reads"`
	TimeoutSeconds int    `json:"timeoutSeconds,omitempty" jsonschema:"after what time it is ended; there is a limit in any case"`
}

func run(ctx context.Context, w Workspace, in runArgs) (any, error) {
	dir, err := clean(in.Dir)
	if err != nil {
		return nil, err
	}
	timeout, err := timeoutOf(in.TimeoutSeconds)
	if err != nil {
		return nil, err
	}
	o, err := w.Shell().Run(ctx, Command{Line: in.Command, Dir: dir, Stdin: in.Stdin, Timeout: timeout})
	if err != nil {
		return nil, about(dir, err)
	}
	return shown(o), nil
}

type codeArgs struct {
	Language       string `json:"language"`
	Source         string `json:"source"`
	TimeoutSeconds int    `json:"timeoutSeconds,omitempty" jsonschema:"after what time it is ended; there is a limit in any case"`
}

func runCode(ctx context.Context, w Workspace, in codeArgs) (any, error) {
	timeout, err := timeoutOf(in.TimeoutSeconds)
	if err != nil {
		return nil, err
	}
	if known := w.Code().Languages(); !slices.Contains(known, in.Language) {
		return nil, fmt.Errorf("language must be one of: %s", strings.Join(known, ", "))
	}
	o, err := w.Code().RunCode(ctx, in.Language, in.Source, timeout)
	if err != nil {
		return nil, err
	}
	return shown(o), nil
}

func timeoutOf(seconds int) (time.Duration, error) {
	if seconds < 0 {
		return 0, errors.New("timeoutSeconds must not be negative")
	}
	return time.Duration(min(seconds, 1<<30)) * time.Second, nil
}

// shown is an outcome as a model gets it.
func shown(o Outcome) Outcome {
	stdout, stderr := shorten(o.Stdout), shorten(o.Stderr)
	o.Truncated = o.Truncated || len(o.Stdout) > MaxText || len(o.Stderr) > MaxText
	o.Stdout, o.Stderr = stdout, stderr
	return o
}

// shorten leaves out the middle of a long output: how it began and how it ended
// say most.
func shorten(s string) string {
	if len(s) > MaxText {
		const half = MaxText / 2
		s = fmt.Sprintf("%s\n… %d bytes left out …\n%s", s[:half], len(s)-2*half, s[len(s)-half:])
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
