package lab

import (
	"errors"
	"fmt"
	"os"

	"github.com/helixd/helixd/cmd/helixd/config"
	"github.com/helixd/helixd/cmd/helixd/internal/daemon"
	"github.com/helixd/helixd/cmd/helixd/internal/flags"
	"github.com/helixd/helixd/cmd/helixd/internal/settings"
	"github.com/helixd/helixd/cmd/helixd/internal/terminal"
)

type viewCmd struct {
	File   string `arg:"" help:"The lab's file, lab.yaml." default:"lab.yaml"`
	Dir    string `help:"Folder of the lab's log; .lab/NAME beside the file if left out." type:"path"`
	Listen string `help:"Loopback address of the page." default:"127.0.0.1:8088" placeholder:"HOST:PORT"`
}

// Help is shown by helixd lab view --help.
func (viewCmd) Help() string {
	return "Serves the debugger on the lab's log: the labs that were run here, the sessions in which lanes part, and labels by hand. No agent runs. It ends with a signal; helixd lab run can't use the log until then."
}

// Run serves until the process gets a signal.
func (c viewCmd) Run(p *flags.Process) error {
	cfg := config.Default()
	cfg.DataDir, cfg.Listen, cfg.DrainTimeout = folderOf(c.File, c.Dir), c.Listen, 0
	if !settings.IsLoopback(cfg.Listen) {
		return flags.Misused(fmt.Errorf("--listen: %s is not a loopback address: everybody could read the sessions", c.Listen))
	}
	cfg.Auth.AllowUnauthenticated = true
	if _, err := os.Stat(cfg.DataDir); errors.Is(err, os.ErrNotExist) { // an empty page would hide a wrong name
		return fmt.Errorf("no lab was run there: there is no %s: helixd lab run %s makes it", cfg.DataDir, c.File)
	}
	if err := makeFolder(cfg.DataDir); err != nil {
		return err
	}
	d, err := daemon.Start(p.Ctx, cfg, nil, false, p.Log)
	if err != nil {
		return fmt.Errorf("the lab's log in %s: %w", cfg.DataDir, err)
	}
	fmt.Fprintf(p.Stdout, "The lab is at %s/\n", terminal.Printable(d.URL))
	return d.Run(p.Ctx, nil)
}
