package inspect

import (
	"fmt"
	"io"
	"strconv"

	"github.com/helixd/helixd/cmd/helixd/internal/flags"
	"github.com/helixd/helixd/cmd/helixd/internal/source"
	"github.com/helixd/helixd/cmd/helixd/internal/terminal"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/projector"
)

type checkpointsCmd struct {
	listFlags
	Session string `arg:"" type:"session" help:"Session id."`
}

func (c checkpointsCmd) Run(p *flags.Process) error {
	q := given("limit", strconv.Itoa(c.Limit), "offset", strconv.Itoa(c.Offset))
	return show(p, c.Flags, source.Session(c.Session, "/checkpoints"), q, func(w io.Writer, page api.Page[projector.Checkpoint]) {
		fmt.Fprintln(w, "CHECKPOINT\tSEQUENCE\tSTEP\tMESSAGES\tSTATUS\tTIME\tRUN")
		for _, cp := range page.Items {
			terminal.Row(w, cp.ID, cp.StreamSequence, cp.StepCount, cp.MessageCount, string(cp.Status), terminal.Clock(cp.Timestamp), cp.RunID)
		}
	}, func(page api.Page[projector.Checkpoint]) { source.NoteMore(p.Stderr, page, c.Offset) })
}
