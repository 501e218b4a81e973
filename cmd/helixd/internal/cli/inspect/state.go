package inspect

import (
	"encoding/json"
	"net/url"
	"strconv"

	"github.com/helixd/helixd/cmd/helixd/internal/flags"
	"github.com/helixd/helixd/cmd/helixd/internal/source"
	"github.com/helixd/helixd/cmd/helixd/internal/terminal"
)

type stateCmd struct {
	source.Flags
	Session string  `arg:"" help:"Session id, or SESSION@N: as it was at sequence N."`
	At      *uint64 `help:"Sequence; without one the head."`
}

func (c stateCmd) Run(p *flags.Process) error {
	at, err := source.PointOr(c.Session, c.At)
	if err != nil {
		return err
	}
	q := url.Values{}
	if at.At != nil {
		q.Set("at", strconv.FormatUint(*at.At, 10))
	}
	return inWords(p, c.Flags, source.Session(at.Session, "/state"), q, func(_ *source.Source, state json.RawMessage) error {
		enc := json.NewEncoder(terminal.EscapeJSON(p.Stdout))
		enc.SetIndent("", "  ")
		enc.SetEscapeHTML(false)
		return enc.Encode(state)
	})
}
