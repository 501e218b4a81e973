package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/helixd/helixd/cmd/helixd/internal/flags"
	"github.com/helixd/helixd/cmd/helixd/internal/source"
	"github.com/helixd/helixd/cmd/helixd/internal/terminal"
	"github.com/helixd/helixd/httpapi/client"
)

type forkCmd struct {
	source.DaemonFlags
	Session      string  `arg:"" help:"Session id."`
	At           *uint64 `help:"Sequence up to which the fork has the session's past; without a place it is the head." placeholder:"N" xor:"where"`
	Checkpoint   string  `help:"Checkpoint at which the fork begins." placeholder:"ID" xor:"where"`
	MessageIndex *int    `help:"Message behind which the fork begins, from 0." placeholder:"N" xor:"where"`
	As           string  `help:"Id of the new session; without it, one that the daemon chooses." placeholder:"ID"`
	JSON         bool    `help:"Print JSON."`
}

// Run makes a session of another one's past.
func (c forkCmd) Run(p *flags.Process) error {
	req := client.ForkRequest{Target: client.Target{CheckpointID: c.Checkpoint}, MessageIndex: c.MessageIndex, SessionID: c.As}
	if c.At != nil {
		if *c.At == 0 {
			return fmt.Errorf("--at: there is nothing up to sequence 0")
		}
		req.Sequence = *c.At
	}
	var done client.Forked
	return change(p, c.DaemonFlags, c.Session, "fork", req, c.JSON, &done, func() string {
		return fmt.Sprintf("%s is what %s was at %d", terminal.Printable(done.SessionID), terminal.Printable(done.FromSessionID), done.FromSequence)
	})
}

// change asks the daemon to do something with a session, and prints what it
// answers: as it is, or in words.
func change(p *flags.Process, daemon source.DaemonFlags, session, verb string, request any, asJSON bool, answer any, words func() string) error {
	raw, err := json.Marshal(request)
	if err != nil {
		return err
	}
	body, err := daemon.Connect().Do(p.Ctx, http.MethodPost, "/sessions/"+source.EscapeID(session)+"/"+verb,
		http.Header{"Content-Type": {"application/json"}}, bytes.NewReader(raw))
	if err != nil {
		return err
	}
	defer body.Close()
	if asJSON {
		return terminal.PrintJSON(p.Stdout, body)
	}
	if err := json.NewDecoder(body).Decode(answer); err != nil {
		return fmt.Errorf("the daemon's answer is no JSON: %w", err)
	}
	_, err = fmt.Fprintln(p.Stdout, words())
	return err
}
