package operate

import (
	"fmt"
	"strings"

	"github.com/helixd/helixd/cmd/helixd/internal/flags"
	"github.com/helixd/helixd/cmd/helixd/internal/source"
	"github.com/helixd/helixd/httpapi/api"
)

// reloadCmd has a daemon reload its configuration, as at SIGHUP, and prints the result.
type reloadCmd struct {
	source.DaemonFlags
	JSON bool `help:"Print JSON."`
}

func (c reloadCmd) Run(p *flags.Process) error {
	answer, err := c.Connect().Post(p.Ctx, "/admin/reload", struct{}{})
	if err != nil {
		return err
	}
	return source.Show(p, c.JSON, answer, func(done api.Reloaded) error {
		fmt.Fprintln(p.Stdout, "agents:", strings.Join(done.Agents, ", "))
		if len(done.NeedsRestart) > 0 {
			fmt.Fprintln(p.Stdout, "needs a restart:", strings.Join(done.NeedsRestart, ", "))
		}
		return nil
	})
}
