package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"

	"github.com/helixd/helixd/eventlog"
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
		return p.printJSON(body)
	}
	var answer json.RawMessage
	if err := json.NewDecoder(body).Decode(&answer); err != nil {
		return err
	}
	enc := json.NewEncoder(&jsonWriter{w: p.stdout})
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(answer)
}

// recordLine is a record in one line: sequence, kind, type, and the payload
// without what every record of the kind has.
func recordLine(seq uint64, kind string, payload json.RawMessage) string {
	var fields map[string]json.RawMessage
	if json.Unmarshal(payload, &fields) != nil {
		return fmt.Sprintf("%8d  %-5s  %q", seq, kind, payload) // it may hold what a terminal obeys
	}
	var typ string
	_ = json.Unmarshal(fields["type"], &typ) // "" if it has none
	common := []string{"type", "timestamp", "sessionId"}
	if kind == string(eventlog.KindChunk) {
		common = []string{"type", "timestamp", "agentId", "agentType"}
	}
	for _, name := range common {
		delete(fields, name)
	}
	rest, _ := json.Marshal(fields)
	return fmt.Sprintf("%8d  %-5s  %-22s %s", seq, printable(kind), printable(typ), printableJSON(rest))
}

// escapeID is a session id as a path segment; "." and ".." would mean other
// paths.
func escapeID(id string) string { return strings.ReplaceAll(url.PathEscape(id), ".", "%2E") }

func copyAll(w io.Writer, r io.Reader) error {
	_, err := io.Copy(w, r)
	return err
}
