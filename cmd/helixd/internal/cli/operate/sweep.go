package operate

import (
	"fmt"
	"text/tabwriter"

	"github.com/helixd/helixd/cmd/helixd/internal/flags"
	"github.com/helixd/helixd/cmd/helixd/internal/source"
	"github.com/helixd/helixd/cmd/helixd/internal/terminal"
)

type sweepCmd struct {
	source.DaemonFlags
	JSON   bool `help:"Print JSON."`
	DryRun bool `help:"Count them, and change nothing."`
}

// Run ends the sessions that have expired and prints how many there were.
func (c sweepCmd) Run(p *flags.Process) error {
	s, err := c.Connect().Sweep(p.Ctx, c.DryRun)
	if err != nil {
		return source.Explained(err)
	}
	if c.JSON {
		return terminal.Result(p.Stdout, true, s, "")
	}
	w := tabwriter.NewWriter(p.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "EXPIRED\tFAILED NOW\tENDED BEFORE\tRUNNING\tERRORS\tWORKSPACES REMOVED")
	terminal.Row(w, s.Detected, s.Marked, s.AlreadyTerminal, s.Running, s.Errors, s.SnapshotsDeleted)
	return w.Flush()
}
