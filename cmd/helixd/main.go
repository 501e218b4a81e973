package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/alecthomas/kong"
)

// cli is the command line.
type cli struct {
	LogLevel slog.Level `help:"Least level of log messages: debug, info, warn or error." default:"info" env:"HELIX_LOG_LEVEL"`

	Dev      devCmd      `cmd:"" help:"Run everything in one process, with demo agents."`
	Serve    serveCmd    `cmd:"" help:"Run the daemon."`
	Tail     tailCmd     `cmd:"" help:"Follow a session's stream until it ends."`
	Sessions sessionsCmd `cmd:"" help:"List sessions."`
	State    stateCmd    `cmd:"" help:"Show a session's folded state."`
	Records  recordsCmd  `cmd:"" help:"Show a session's records with their envelopes."`
	Append   appendCmd   `cmd:"" help:"Append chunks of an outside producer to a session."`
	Export   exportCmd   `cmd:"" help:"Write all records of a session, one a line, for import elsewhere."`
	Import   importCmd   `cmd:"" help:"Make a new session of exported records."`
	Erase    eraseCmd    `cmd:"" help:"Erase a session, every byte of it."`
	Retain   retainCmd   `cmd:"" help:"Remove old records from the log, or for good."`
	Verify   verifyCmd   `cmd:"" help:"Look for damage in what is stored; exit code 2 if there is any."`
	Doctor   doctorCmd   `cmd:"" help:"Look at the deployment and say what to change; exit code 1 if there is a problem, 2 if it could not look."`
	Version  versionCmd  `cmd:"" help:"Show the version."`
}

// process is what a command has of its process.
type process struct {
	ctx    context.Context // ends at SIGINT and SIGTERM
	stdin  io.Reader
	stdout io.Writer
	log    *slog.Logger
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	var c cli
	k := kong.Parse(&c, kong.Name("helixd"), kong.UsageOnError(),
		kong.Description("The durable home of AI-agent sessions."))
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: c.LogLevel}))
	err := k.Run(&process{ctx: ctx, stdin: os.Stdin, stdout: os.Stdout, log: log})
	switch {
	case err == nil, errors.Is(err, context.Canceled) && ctx.Err() != nil:
	default:
		fmt.Fprintln(os.Stderr, "helixd:", err)
		os.Exit(max(exitCode(err), doctorCode(err)))
	}
}

type versionCmd struct{}

func (versionCmd) Run(p *process) error {
	_, err := fmt.Fprintln(p.stdout, "helixd", version())
	return err
}

// version is the module's version, or the commit that it was built from.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && (info.Main.Version == "" || info.Main.Version == "(devel)") {
			return s.Value
		}
	}
	return info.Main.Version
}
