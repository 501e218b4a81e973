package control

import (
	"errors"
	"fmt"

	"github.com/helixd/helixd/cmd/helixd/internal/flags"
	"github.com/helixd/helixd/cmd/helixd/internal/source"
	"github.com/helixd/helixd/cmd/helixd/internal/terminal"
	"github.com/helixd/helixd/httpapi/client"
)

type forkCmd struct {
	source.DaemonFlags
	Session      string  `arg:"" help:"Session id, or SESSION@N: the fork has the past up to sequence N."`
	At           *uint64 `help:"Sequence up to which the fork has the session's past; without a place it is the head." placeholder:"N" xor:"where"`
	Checkpoint   string  `help:"Checkpoint at which the fork begins." placeholder:"ID" xor:"where"`
	MessageIndex *int    `help:"Message after which the fork begins, from 0." placeholder:"N" xor:"where"`
	As           string  `type:"session" help:"Id of the new session; without it, one that the daemon chooses." placeholder:"ID"`
	JSON         bool    `help:"Print JSON."`
}

// Run makes a session of another one's past.
func (c forkCmd) Run(p *flags.Process) error {
	at, err := source.PointOr(c.Session, c.At)
	if c.Checkpoint != "" || c.MessageIndex != nil {
		at.Session, err = source.ParseSession(c.Session)
	}
	if err != nil {
		return err
	}
	req := client.ForkRequest{Target: client.Target{CheckpointID: c.Checkpoint}, MessageIndex: c.MessageIndex, SessionID: c.As}
	if at.At != nil {
		if *at.At == 0 {
			return flags.Misused(errors.New("there is nothing up to sequence 0"))
		}
		req.Sequence = *at.At
	}
	done, err := c.Connect().Fork(p.Ctx, at.Session, req)
	if err != nil {
		return source.Explained(err)
	}
	words := fmt.Sprintf("%s is what %s was at %d", terminal.Printable(done.SessionID), terminal.Printable(done.FromSessionID), done.FromSequence)
	return terminal.Result(p.Stdout, c.JSON, done, words)
}
