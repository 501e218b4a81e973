package control

import (
	"context"
	"errors"
	"fmt"

	"github.com/helixd/helixd/cmd/helixd/internal/flags"
	"github.com/helixd/helixd/cmd/helixd/internal/source"
	"github.com/helixd/helixd/cmd/helixd/internal/terminal"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/httpapi/client"
)

type resumeCmd struct {
	followFlags
	Session    string `arg:"" type:"session" help:"Session id."`
	Checkpoint string `help:"Checkpoint from which it continues; what came after it is discarded." placeholder:"ID"`
	Retry      bool   `help:"Run a turn again; what came of it is discarded."`
	Turn       int    `help:"With --retry: which turn, from 1; without it the last one." placeholder:"N"`
}

// Validate refuses flags that don't go together.
func (c resumeCmd) Validate() error {
	switch {
	case c.Retry && c.Checkpoint != "":
		return errors.New("--retry and --checkpoint can't be used together")
	case c.Turn != 0 && !c.Retry:
		return errors.New("--turn goes with --retry")
	}
	return nil
}

func (c resumeCmd) Run(p *flags.Process) error {
	r := client.ResumeRequest{SessionID: c.Session, CheckpointID: c.Checkpoint, Turn: c.Turn}
	switch {
	case c.Checkpoint != "":
		r.Mode = fact.ModeFromCheckpoint
	case c.Retry:
		r.Mode = fact.ModeRetry
	}
	s, err := c.ConnectPatiently(p.Ctx)
	if err != nil {
		return err
	}
	after, err := c.head(p, s, c.Session)
	if err != nil {
		return err
	}
	started, err := s.Resume(p.Ctx, r)
	if err != nil {
		return refused(err, c.Session)
	}
	return c.done(p, s, c.Session, after, started, started.RunID+" continues "+c.Session)
}

// stopFlags are of the commands that stop a run.
type stopFlags struct {
	source.DaemonFlags
	Session string `arg:"" type:"session" help:"Session id."`
	Reason  string `help:"Why; it is stored."`
	JSON    bool   `help:"Print JSON."`
}

type interruptCmd struct{ stopFlags }

func (c interruptCmd) Run(p *flags.Process) error { return c.stop(p, c.Connect().Interrupt) }

type abortCmd struct{ stopFlags }

func (c abortCmd) Run(p *flags.Process) error { return c.stop(p, c.Connect().Abort) }

// stop returns when the run has stopped. A session that does not run is left as it is.
func (c stopFlags) stop(p *flags.Process, ask func(ctx context.Context, session, reason string) error) error {
	if err := ask(p.Ctx, c.Session, c.Reason); err != nil {
		return source.Explained(err)
	}
	if c.JSON {
		return terminal.Result(p.Stdout, true, map[string]bool{"ok": true}, "")
	}
	status, err := c.Connect().Status(p.Ctx, c.Session)
	if err != nil {
		return source.Explained(err)
	}
	_, err = fmt.Fprintf(p.Stdout, "%s is %s\n", terminal.Printable(c.Session), terminal.Printable(status.Status))
	return err
}
