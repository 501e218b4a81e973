package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
)

type sweepCmd struct {
	daemonFlags
	DryRun bool `help:"Count them, and change nothing."`
}

// Run ends the sessions that have expired and prints how many there were.
func (c sweepCmd) Run(p *process) error {
	body, err := json.Marshal(map[string]bool{"dryRun": c.DryRun})
	if err != nil {
		return err
	}
	answer, err := c.source().do(p.ctx, http.MethodPost, "/sweep", http.Header{"Content-Type": {"application/json"}}, bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer answer.Close()
	if err := copyAll(p.stdout, answer); err != nil {
		return err
	}
	_, err = fmt.Fprintln(p.stdout)
	return err
}
