package main

import (
	"encoding/json"
	"github.com/helixd/helixd/cmd/helixd/internal/flags"
	"github.com/helixd/helixd/cmd/helixd/internal/source"
	"github.com/helixd/helixd/cmd/helixd/internal/terminal"
	"io"
	"strconv"
)

type stateCmd struct {
	source.Flags
	Session string  `arg:"" help:"Session id."`
	At      *uint64 `help:"Sequence; without it the head."`
}

func (c stateCmd) Run(p *flags.Process) error {
	s, err := c.Open(p.Ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	path := "/sessions/" + source.EscapeID(c.Session) + "/state"
	if c.At != nil {
		path += "?at=" + strconv.FormatUint(*c.At, 10)
	}
	body, err := s.Get(p.Ctx, path, nil)
	if err != nil {
		return err
	}
	defer body.Close()
	if c.JSON {
		return terminal.PrintJSON(p.Stdout, body)
	}
	var answer json.RawMessage
	if err := json.NewDecoder(body).Decode(&answer); err != nil {
		return err
	}
	enc := json.NewEncoder(terminal.EscapeJSON(p.Stdout))
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(answer)
}

func copyAll(w io.Writer, r io.Reader) error {
	_, err := io.Copy(w, r)
	return err
}
