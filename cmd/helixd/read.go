package main

import (
	"encoding/json"
	"io"
	"strconv"
)

type stateCmd struct {
	sourceFlags
	Session string  `arg:"" help:"Session id."`
	At      *uint64 `help:"Sequence; without it the head."`
}

func (c stateCmd) Run(p *process) error {
	s, err := c.open(p.ctx)
	if err != nil {
		return err
	}
	defer s.close()
	path := "/sessions/" + escapeID(c.Session) + "/state"
	if c.At != nil {
		path += "?at=" + strconv.FormatUint(*c.At, 10)
	}
	body, err := s.get(p.ctx, path, nil)
	if err != nil {
		return err
	}
	defer body.Close()
	if c.JSON {
		return printJSON(p.stdout, body)
	}
	var answer json.RawMessage
	if err := json.NewDecoder(body).Decode(&answer); err != nil {
		return err
	}
	enc := json.NewEncoder(escapeJSON(p.stdout))
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(answer)
}

func copyAll(w io.Writer, r io.Reader) error {
	_, err := io.Copy(w, r)
	return err
}
