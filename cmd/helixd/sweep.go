package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"github.com/helixd/helixd/cmd/helixd/internal/flags"
	"github.com/helixd/helixd/cmd/helixd/internal/source"
	"net/http"
)

type sweepCmd struct {
	source.DaemonFlags
	DryRun bool `help:"Count them, and change nothing."`
}

// Run ends the sessions that have expired and prints how many there were.
func (c sweepCmd) Run(p *flags.Process) error {
	body, err := json.Marshal(map[string]bool{"dryRun": c.DryRun})
	if err != nil {
		return err
	}
	answer, err := c.Connect().Do(p.Ctx, http.MethodPost, "/sweep", http.Header{"Content-Type": {"application/json"}}, bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer answer.Close()
	if err := copyAll(p.Stdout, answer); err != nil {
		return err
	}
	_, err = fmt.Fprintln(p.Stdout)
	return err
}
