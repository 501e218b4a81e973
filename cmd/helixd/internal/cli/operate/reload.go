package operate

import (
	"strings"

	"github.com/helixd/helixd/cmd/helixd/internal/flags"
	"github.com/helixd/helixd/cmd/helixd/internal/source"
	"github.com/helixd/helixd/cmd/helixd/internal/terminal"
)

// reloadCmd has a daemon reload its configuration, as at SIGHUP, and prints the result.
type reloadCmd struct {
	source.DaemonFlags
	JSON bool `help:"Print JSON."`
}

func (c reloadCmd) Run(p *flags.Process) error {
	done, err := c.Connect().Reload(p.Ctx)
	if err != nil {
		return source.Explained(err)
	}
	words := "agents: " + strings.Join(done.Agents, ", ")
	if len(done.NeedsRestart) > 0 {
		words += "\nneeds a restart: " + strings.Join(done.NeedsRestart, ", ")
	}
	return terminal.Result(p.Stdout, c.JSON, done, words)
}
