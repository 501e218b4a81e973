package control

import (
	"errors"
	"fmt"

	"github.com/helixd/helixd/cmd/helixd/internal/flags"
	"github.com/helixd/helixd/cmd/helixd/internal/source"
	"github.com/helixd/helixd/cmd/helixd/internal/terminal"
	"github.com/helixd/helixd/httpapi/api"
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
	return change(p, c.DaemonFlags, at.Session, "/fork", req, c.JSON, func(done api.Forked) string {
		return fmt.Sprintf("%s is what %s was at %d", terminal.Printable(done.SessionID), terminal.Printable(done.FromSessionID), done.FromSequence)
	})
}

// change requests a change of a session, and prints the answer.
func change[T any](p *flags.Process, daemon source.DaemonFlags, session, path string, request any, asJSON bool, words func(T) string) error {
	answer, err := daemon.Connect().Post(p.Ctx, source.Session(session, path), request)
	if err != nil {
		return err
	}
	return source.Show(p, asJSON, answer, func(done T) error {
		_, err := fmt.Fprintln(p.Stdout, words(done))
		return err
	})
}
