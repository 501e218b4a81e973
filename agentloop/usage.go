package agentloop

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
)

// RecordUsage counts something that the call has used: amount is added to what
// the tool has recorded under the name (facts 3.6, source type; an id of at
// most 256 bytes, one of few). It returns when that is durable. It counts
// also if the call fails, and again if the call is executed again.
func (c *Call) RecordUsage(ctx context.Context, name string, amount float64) error {
	c.mu.Lock()
	done := c.done
	c.mu.Unlock()
	switch {
	case done:
		return errCallDone
	case name == eventlog.ClientToolWait:
		return fmt.Errorf("usage %s: the name is reserved", name)
	case math.IsNaN(amount) || math.IsInf(amount, 0):
		return errors.New("usage: the amount is no number")
	}
	return c.r.append(ctx, c.fact(&eventlog.UsageRecorded{
		RunID: c.RunID, StepCount: c.step, Source: eventlog.UsageTool, SourceType: name, SourceName: c.ToolName,
		Amount: amount, FactBase: c.r.factBase(),
	}))
}

// Usage returns what a session and its sub-agents have used so far, all runs
// together, also what a rollback has taken back. A fork begins at zero.
//
// Errors: eventlog.ErrSessionNotFound and what the log returns.
func (l *Loop) Usage(ctx context.Context, session string) (projector.Rollup, error) {
	t, err := l.states.Head(ctx, session)
	if err != nil {
		return projector.Rollup{}, err
	}
	return t.RollUp(session), nil
}

// UsageEntries yields what has been used in a session's tree, one by one, in
// the order of the log; an error is last. Errors: as eventlog.Log's Read.
func (l *Loop) UsageEntries(ctx context.Context, session string) iter.Seq2[projector.UsageEntry, error] {
	return projector.UsageEntries(l.log.Read(ctx, session, 0, 0))
}

// UsageRollup returns what the session has used; see [Loop.Usage].
func (h *Handle) UsageRollup(ctx context.Context) (projector.Rollup, error) {
	return h.l.Usage(ctx, h.SessionID)
}
