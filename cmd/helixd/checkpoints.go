package main

import (
	"fmt"
	"io"
	"strconv"

	"github.com/helixd/helixd/httpapi"
	"github.com/helixd/helixd/projector"
)

type checkpointsCmd struct {
	listFlags
	Session string `arg:"" help:"Session id."`
}

func (c checkpointsCmd) Run(p *process) error {
	q := given("limit", strconv.Itoa(c.Limit), "offset", strconv.Itoa(c.Offset))
	var page httpapi.Page[projector.Checkpoint]
	return show(p, c.sourceFlags, "/sessions/"+escapeID(c.Session)+"/checkpoints", q, &page, func(w io.Writer) {
		fmt.Fprintln(w, "CHECKPOINT\tSEQUENCE\tSTEP\tMESSAGES\tSTATUS\tTIME\tRUN")
		for _, cp := range page.Items {
			row(w, cp.ID, cp.StreamSequence, cp.StepCount, cp.MessageCount, string(cp.Status), clock(cp.Timestamp), cp.RunID)
		}
	}, func() { tellMore(p, page, c.Offset) })
}
