package operate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/helixd/helixd/cmd/helixd/internal/flags"
	"github.com/helixd/helixd/cmd/helixd/internal/source"
	"github.com/helixd/helixd/cmd/helixd/internal/terminal"
	"github.com/helixd/helixd/eventlog"
)

// healthyCmd asks a daemon once whether it takes work. It is what a
// container's health check and scripts that wait for a start call; the exit
// code is 0 if it does, else 1.
type healthyCmd struct {
	Server string `help:"URL of the daemon." default:"http://127.0.0.1:8080" env:"HELIX_SERVER"`
	Token  string `help:"Bearer token for the daemon; without one it does not say why it is not ready." env:"HELIX_TOKEN"`
	flags.Trust
	Timeout time.Duration `help:"How long an answer may take." default:"5s"`
	Wait    time.Duration `help:"Ask again until it is, for as long as this."`
	JSON    bool          `help:"Print JSON."`
}

const (
	healthyEvery = 100 * time.Millisecond // how long --wait waits between two questions
)

func (c healthyCmd) Run(p *flags.Process) error {
	deadline := time.Now().Add(c.Wait)
	for {
		err := c.ask(p.Ctx)
		if err == nil {
			return terminal.Result(p.Stdout, c.JSON, map[string]bool{"ready": true}, "ready")
		}
		if time.Until(deadline) < healthyEvery {
			return err
		}
		if eventlog.Sleep(p.Ctx, healthyEvery) != nil {
			return errors.New("interrupted") // which is no success
		}
	}
}

// ask returns why the daemon takes no work now, or nil.
func (c healthyCmd) ask(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	answer, err := source.DaemonFlags{Server: c.Server, Token: c.Token, Trust: c.Trust}.Connect().Ready(ctx)
	if err != nil {
		return errors.New(err.Error()) // the time-out's error would look like our own end
	}
	switch {
	case !answer.Daemon:
		return fmt.Errorf("%s answers %s, and not as a daemon does", c.Server, answer.Status)
	case answer.Error != "":
		return fmt.Errorf("%s: %s", c.Server, answer.Error)
	case answer.Ready:
		return nil
	case answer.Draining:
		return fmt.Errorf("%s is draining: it is going to stop", c.Server)
	case answer.Refuses != "":
		return fmt.Errorf("%s takes no appends: %s", c.Server, answer.Refuses)
	}
	return fmt.Errorf("%s is not ready: its log does not answer, or it is stopping", c.Server)
}
