package operate

import (
	"github.com/helixd/helixd/cmd/helixd/internal/flags"
	"github.com/helixd/helixd/cmd/helixd/internal/source"
	"github.com/helixd/helixd/cmd/helixd/internal/terminal"
)

type sweepCmd struct {
	source.DaemonFlags
	DryRun bool `help:"Count them, and change nothing."`
}

// Run ends the sessions that have expired and prints how many there were.
func (c sweepCmd) Run(p *flags.Process) error {
	answer, err := c.Connect().Post(p.Ctx, "/sweep", map[string]bool{"dryRun": c.DryRun})
	if err != nil {
		return err
	}
	defer answer.Close()
	return terminal.PrintJSON(p.Stdout, answer)
}
