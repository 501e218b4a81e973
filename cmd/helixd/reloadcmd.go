package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/helixd/helixd/cmd/helixd/internal/flags"
	"github.com/helixd/helixd/cmd/helixd/internal/source"
	"github.com/helixd/helixd/httpapi"
)

// reloadCmd has a daemon do what it does at SIGHUP, and prints what came of it.
type reloadCmd struct {
	source.DaemonFlags
	JSON bool `help:"Print JSON."`
}

func (c reloadCmd) Run(p *flags.Process) error {
	body, err := c.Connect().Do(p.Ctx, http.MethodPost, "/admin/reload",
		http.Header{"Content-Type": {"application/json"}}, strings.NewReader("{}"))
	if err != nil {
		return err
	}
	defer body.Close()
	raw, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	if c.JSON {
		_, err = p.Stdout.Write(append(raw, '\n'))
		return err
	}
	var done httpapi.Reloaded
	if err := json.Unmarshal(raw, &done); err != nil {
		return fmt.Errorf("the daemon's answer is no JSON: %w", err)
	}
	fmt.Fprintln(p.Stdout, "agents:", strings.Join(done.Agents, ", "))
	if len(done.NeedsRestart) > 0 {
		fmt.Fprintln(p.Stdout, "needs a restart:", strings.Join(done.NeedsRestart, ", "))
	}
	return nil
}
