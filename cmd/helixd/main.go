package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/helixd/helixd/cmd/helixd/config"
	"github.com/helixd/helixd/cmd/helixd/internal/flags"
	"github.com/helixd/helixd/cmd/helixd/internal/terminal"
)

// cli is the command line.
type cli struct {
	flags.Log

	Dev         devCmd         `cmd:"" group:"run" help:"Run everything in one process, with demo agents."`
	Serve       serveCmd       `cmd:"" group:"run" help:"Run the daemon."`
	Tail        tailCmd        `cmd:"" group:"look" help:"Follow a session's stream until it ends."`
	Sessions    sessionsCmd    `cmd:"" group:"look" help:"List sessions."`
	Runs        runsCmd        `cmd:"" group:"look" help:"List runs of all sessions, the last begun first."`
	Usage       usageCmd       `cmd:"" group:"look" help:"Sum what was used and cost, by agent, model, user or day."`
	Search      searchCmd      `cmd:"" group:"look" help:"Find messages and tool calls by their words."`
	Parked      parkedCmd      `cmd:"" group:"look" help:"List the records that could not be used."`
	State       stateCmd       `cmd:"" group:"look" help:"Show a session's folded state."`
	Records     recordsCmd     `cmd:"" group:"look" help:"Show a session's records with their envelopes."`
	Diff        diffCmd        `cmd:"" group:"look" help:"Show what has changed between two moments of a session."`
	Compare     compareCmd     `cmd:"" group:"look" help:"Show two moments side by side, of one session or of two."`
	Replay      replayCmd      `cmd:"" group:"look" help:"Show a session's stream again, at the pace of its records."`
	Checkpoints checkpointsCmd `cmd:"" group:"look" help:"List a session's checkpoints, oldest first."`
	Audit       auditCmd       `cmd:"" group:"look" help:"List who has done what to a session, and from which request."`
	Append      appendCmd      `cmd:"" group:"change" help:"Append chunks of an outside producer to a session."`
	Memories    memoriesCmd    `cmd:"" group:"memories" help:"Look at what agents remember, and change it."`
	Export      exportCmd      `cmd:"" group:"look" help:"Write all records of a session, one a line, for import elsewhere."`
	Import      importCmd      `cmd:"" group:"change" help:"Make a new session of exported records."`
	Fork        forkCmd        `cmd:"" group:"change" help:"Make a new session of a session's past."`
	Rollback    rollbackCmd    `cmd:"" group:"change" help:"Take a session back to a moment of its past."`
	Erase       eraseCmd       `cmd:"" group:"change" help:"Erase a session, every byte of it."`
	Retain      retainCmd      `cmd:"" group:"care" help:"Remove old records from the log, or for good."`
	Backup      backupCmd      `cmd:"" group:"care" help:"Write everything that is stored to a file, while it is in use."`
	Restore     restoreCmd     `cmd:"" group:"care" help:"Make a deployment of a backup, with every sequence as it was."`
	Partitions  partitionsCmd  `cmd:"" group:"care" help:"Grow the log on a NATS deployment, while all nodes are stopped."`
	Sweep       sweepCmd       `cmd:"" group:"care" help:"End the sessions that have expired and still wait."`
	Verify      verifyCmd      `cmd:"" group:"care" help:"Look for damage in what is stored; exit code 2 if there is any."`
	Doctor      doctorCmd      `cmd:"" group:"care" help:"Look at the deployment and say what to change; exit code 1 if there is a problem, 2 if it could not look."`
	Healthy     healthyCmd     `cmd:"" group:"care" help:"Ask a daemon whether it takes work; exit code 1 if it does not."`
	Reload      reloadCmd      `cmd:"" group:"care" help:"Have a daemon read its agents and tokens anew."`
	Config      configCmd      `cmd:"" group:"care" help:"Help with the configuration file."`
	Version     versionCmd     `cmd:"" group:"care" help:"Show the version."`
}

// untilStopped are the commands whose end is a signal. To any other it is a
// failure: half a backup is none.
var untilStopped = map[string]bool{"serve": true, "dev": true, "tail": true}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	var c cli
	parser, err := newParser(&c)
	if err != nil {
		panic(err) // the commands are not well defined
	}
	k, err := parser.Parse(os.Args[1:])
	parser.FatalIfErrorf(err)
	p := &flags.Process{Ctx: ctx, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Logs: c.Log}
	cfg := config.Default()
	k.FatalIfErrorf(c.Set(cfg))
	p.Log = flags.NewLogger(p.Stderr, cfg.Log)
	err = k.Run(p)
	switch {
	case err == nil, untilStopped[k.Selected().Name] && errors.Is(err, context.Canceled) && ctx.Err() != nil:
	default:
		fmt.Fprintln(os.Stderr, "helixd:", terminal.Readable(err.Error()))
		os.Exit(flags.ExitCode(err))
	}
}
