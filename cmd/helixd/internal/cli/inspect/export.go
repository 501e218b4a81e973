package inspect

import (
	"net/url"

	"github.com/helixd/helixd/cmd/helixd/internal/flags"
	"github.com/helixd/helixd/cmd/helixd/internal/source"
	"github.com/helixd/helixd/cmd/helixd/internal/terminal"
)

type exportCmd struct {
	source.ServerFlags
	Session string `arg:"" type:"session" help:"Session id."`
}

// Run writes all records of the session up to its present head, truncated ones
// included, in the interchange form (eventlog.Record.MarshalJSON). What it has
// written is whole only if it ends without an error.
func (c exportCmd) Run(p *flags.Process) error {
	s, err := c.Open(p.Ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	answer, err := recordsOf(p.Ctx, s, c.Session, url.Values{"dead": {"1"}})
	if err != nil {
		return err
	}
	defer answer.Close()
	return terminal.PrintJSON(p.Stdout, answer)
}
