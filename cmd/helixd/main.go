package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/helixd/helixd/cmd/helixd/config"
	"github.com/helixd/helixd/cmd/helixd/internal/cli/control"
	"github.com/helixd/helixd/cmd/helixd/internal/cli/inspect"
	"github.com/helixd/helixd/cmd/helixd/internal/cli/lab"
	"github.com/helixd/helixd/cmd/helixd/internal/cli/operate"
	"github.com/helixd/helixd/cmd/helixd/internal/daemon"
	"github.com/helixd/helixd/cmd/helixd/internal/flags"
	"github.com/helixd/helixd/cmd/helixd/internal/terminal"
)

// cli is the command line.
type cli struct {
	flags.Log
	ShowVersion kong.VersionFlag `name:"version" help:"Show the version."`

	Dev     devCmd              `cmd:"" group:"run" help:"Run everything in one process, with demo agents."`
	Serve   daemon.ServeCommand `cmd:"" group:"run" help:"Run the daemon."`
	Talk    control.Talk        `embed:""`
	Inspect inspect.Commands    `embed:""`
	Control control.Commands    `embed:""`
	Operate operate.Commands    `embed:""`
	Lab     lab.Commands        `embed:""`

	Config     daemon.ConfigCommands `cmd:"" group:"care" help:"Help with the configuration file."`
	Completion completionCmd         `cmd:"" group:"care" help:"Print a script that completes command lines in bash, zsh or fish."`
	Man        manCmd                `cmd:"" group:"care" help:"Print a manual page, or write all of them."`
}

// untilStopped are the commands whose end is a signal. To any other it is a
// failure: half a backup is none.
var untilStopped = map[string]bool{"serve": true, "dev": true, "tail": true, "watch": true}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	var c cli
	parser, err := newParser(&c)
	if err != nil {
		panic(err) // the commands are not well defined
	}
	if len(os.Args) > 1 && os.Args[1] == completing {
		complete(os.Stdout, parser.Model, os.Args[2:], atDaemon)
		return
	}
	k, err := parser.Parse(argsOrHelp(os.Args[1:]))
	if err != nil {
		os.Exit(misused(os.Stderr, err, nil))
	}
	if err := checkNames(k); err != nil {
		os.Exit(misused(os.Stderr, err, k))
	}
	p := &flags.Process{Ctx: ctx, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Logs: c.Log}
	cfg := config.Default()
	_ = c.Set(cfg) // it is valid, or the parser had refused it
	p.Log = flags.NewLogger(p.Stderr, cfg.Log)
	err = k.Run(p)
	_, isMisuse := errors.AsType[*flags.Misuse](err)
	switch {
	case isMisuse:
		os.Exit(misused(os.Stderr, err, k))
	case err == nil, untilStopped[k.Selected().Name] && errors.Is(err, context.Canceled) && ctx.Err() != nil:
	default:
		fmt.Fprintln(os.Stderr, "helixd:", terminal.Readable(err.Error()))
		os.Exit(flags.ExitCode(err))
	}
}
