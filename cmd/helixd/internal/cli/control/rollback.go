package control

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/helixd/helixd/cmd/helixd/internal/flags"
	"github.com/helixd/helixd/cmd/helixd/internal/source"
	"github.com/helixd/helixd/cmd/helixd/internal/terminal"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/client"
)

type rollbackCmd struct {
	source.DaemonFlags
	Session    string  `arg:"" help:"Session id, or SESSION@N: back to sequence N; what comes after it is discarded."`
	To         *uint64 `help:"Sequence to go back to, in place of SESSION@N." placeholder:"N" xor:"where"`
	Checkpoint string  `help:"Checkpoint to go back to." placeholder:"ID" xor:"where"`
	Yes        bool    `help:"Don't ask."`
	JSON       bool    `help:"Print JSON."`
}

var errNotConfirmed = errors.New("nothing was changed; --yes confirms it without a question")

// place returns the session and where it goes back to.
func (c rollbackCmd) place() (session string, to client.Target, err error) {
	if c.Checkpoint != "" {
		session, err = source.ParseSession(c.Session)
		return session, client.Target{CheckpointID: c.Checkpoint}, err
	}
	at, err := source.PointOr(c.Session, c.To)
	switch {
	case err != nil:
	case at.At == nil:
		err = errors.New("name the point to go back to: SESSION@N, --to=N or --checkpoint=ID")
	case *at.At == 0:
		err = errors.New("there is nothing up to sequence 0")
	default:
		to.Sequence = *at.At
	}
	return at.Session, to, err
}

// Validate makes a bad point a matter of usage.
func (c rollbackCmd) Validate() error {
	_, _, err := c.place()
	return err
}

// Run takes a session back. What it truncates stays in the log, but there is no
// way to have it count again: so it asks first.
func (c rollbackCmd) Run(p *flags.Process) error {
	session, to, err := c.place()
	if err != nil {
		return err
	}
	if !c.Yes {
		if !terminal.IsTerminal(p.Stdin) {
			return fmt.Errorf("the standard input is no terminal to ask on: %w", errNotConfirmed)
		}
		if !p.Confirm(c.question(p, session, to)) {
			return errNotConfirmed
		}
	}
	done, err := c.Connect().Rollback(p.Ctx, session, to)
	if err != nil {
		return source.Explained(err)
	}
	words := "there was nothing to take back"
	if done.RolledBack {
		words = fmt.Sprintf("%s is back at %d: what came after it, up to %d, is discarded", terminal.Printable(done.SessionID), done.AfterSequence, done.AtSequence)
	}
	return terminal.Result(p.Stdout, c.JSON, done, words)
}

// question says what there is to lose, as far as the caller may see it.
func (c rollbackCmd) question(p *flags.Process, session string, to client.Target) string {
	at, where := to.Sequence, "sequence "+strconv.FormatUint(to.Sequence, 10)
	if to.CheckpointID != "" {
		at, where = c.checkpoint(p, session), to.CheckpointID
	}
	text := fmt.Sprintf("Take %s back to %s?", session, where)
	if at == 0 {
		return terminal.Printable(text)
	}
	if diff, err := c.Connect().Diff(p.Ctx, session, at, nil); err == nil && diff.To > at {
		text += fmt.Sprintf(" What came after it, up to %d, is discarded: %s.", diff.To, terminal.Count(len(diff.Messages), "message"))
	}
	return terminal.Printable(text)
}

// checkpoint returns the sequence of the checkpoint, 0 if it can't be found.
func (c rollbackCmd) checkpoint(p *flags.Process, session string) uint64 {
	for offset, more := 0, true; more; {
		page, err := c.Connect().Checkpoints(p.Ctx, session, client.Paging{Offset: offset, Limit: api.MaxPage})
		if err != nil {
			return 0
		}
		for _, cp := range page.Items {
			if cp.ID == c.Checkpoint {
				return cp.StreamSequence
			}
		}
		offset, more = offset+len(page.Items), page.HasMore && len(page.Items) > 0
	}
	return 0
}
