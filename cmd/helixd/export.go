package main

import (
	"github.com/helixd/helixd/cmd/helixd/internal/flags"
	"github.com/helixd/helixd/cmd/helixd/internal/source"
)

type exportCmd struct {
	source.ServerFlags
	Session string `arg:"" help:"Session id."`
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
	body, err := s.Get(p.Ctx, "/sessions/"+source.EscapeID(c.Session)+"/records?dead=1", nil)
	if err != nil {
		return err
	}
	defer body.Close()
	return copyAll(p.Stdout, body)
}
