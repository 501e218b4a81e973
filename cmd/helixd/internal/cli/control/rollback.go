package control

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/helixd/helixd/cmd/helixd/internal/flags"
	"github.com/helixd/helixd/cmd/helixd/internal/source"
	"github.com/helixd/helixd/cmd/helixd/internal/terminal"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/client"
)

type rollbackCmd struct {
	source.DaemonFlags
	Session    string `arg:"" help:"Session id."`
	To         uint64 `help:"Sequence to go back to: what comes after it is discarded." placeholder:"N" xor:"where" required:""`
	Checkpoint string `help:"Checkpoint to go back to." placeholder:"ID" xor:"where" required:""`
	Yes        bool   `help:"Don't ask."`
	JSON       bool   `help:"Print JSON."`
}

var errNotConfirmed = errors.New("nothing was changed; --yes confirms it without a question")

// Run takes a session back. What it truncates stays in the log, but there is no
// way to have it count again: so it asks first.
func (c rollbackCmd) Run(p *flags.Process) error {
	if c.To == 0 && c.Checkpoint == "" {
		return errors.New("--to: there is nothing up to sequence 0")
	}
	if !c.Yes {
		if !terminal.IsTerminal(p.Stdin) {
			return fmt.Errorf("the standard input is no terminal to ask on: %w", errNotConfirmed)
		}
		if !confirmed(p, c.question(p)) {
			return errNotConfirmed
		}
	}
	to := client.Target{CheckpointID: c.Checkpoint, Sequence: c.To}
	return change(p, c.DaemonFlags, c.Session, "/rollback", to, c.JSON, func(done api.RolledBack) string {
		if !done.RolledBack {
			return "there was nothing to take back"
		}
		return fmt.Sprintf("%s is back at %d: what came after it, up to %d, is discarded", terminal.Printable(done.SessionID), done.AfterSequence, done.AtSequence)
	})
}

// question says what there is to lose, as far as the caller may see it.
func (c rollbackCmd) question(p *flags.Process) string {
	at := c.To
	if c.Checkpoint != "" {
		at = c.checkpoint(p)
	}
	where := "sequence " + strconv.FormatUint(at, 10)
	if c.Checkpoint != "" {
		where = c.Checkpoint
	}
	text := fmt.Sprintf("Take %s back to %s?", c.Session, where)
	if at == 0 {
		return terminal.Printable(text)
	}
	if diff, err := c.Connect().Diff(p.Ctx, c.Session, at, nil); err == nil && diff.To > at {
		text += fmt.Sprintf(" What came after it, up to %d, is discarded: %s.", diff.To, terminal.Count(len(diff.Messages), "message"))
	}
	return terminal.Printable(text)
}

// checkpoint returns the sequence of the checkpoint, 0 if it can't be found.
func (c rollbackCmd) checkpoint(p *flags.Process) uint64 {
	for offset, more := 0, true; more; {
		page, err := c.Connect().Checkpoints(p.Ctx, c.Session, client.Paging{Offset: offset, Limit: api.MaxPage})
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

// confirmed asks a question, and reports whether the answer is yes.
func confirmed(p *flags.Process, question string) bool {
	fmt.Fprintf(p.Stderr, "%s [y/N] ", question)
	answer := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(io.LimitReader(p.Stdin, 100)).ReadString('\n') // no answer is no
		answer <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case said := <-answer:
		return said == "y" || said == "yes"
	case <-p.Ctx.Done():
		return false
	}
}
