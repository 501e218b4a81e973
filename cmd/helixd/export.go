package main

type exportCmd struct {
	placeFlags
	Session string `arg:"" help:"Session id."`
}

// Run writes all records of the session up to its present head, truncated ones
// included, in the interchange form (eventlog.Record.MarshalJSON). What it has
// written is whole only if it ends without an error.
func (c exportCmd) Run(p *process) error {
	s, err := c.open(p.ctx)
	if err != nil {
		return err
	}
	defer s.close()
	body, err := s.get(p.ctx, "/sessions/"+escapeID(c.Session)+"/records?dead=1", nil)
	if err != nil {
		return err
	}
	defer body.Close()
	return copyAll(p.stdout, body)
}
