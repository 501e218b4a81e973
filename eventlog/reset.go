package eventlog

import "context"

// resetStream truncates the chunks of all agents, and makes the session's stream active.
func resetStream(ctx context.Context, log Log, session string) (*Truncated, error) {
	life, plan := lifecycle{session: session}, truncation{scope: ScopeChunks}
	see := func(r Record) error {
		if err := life.see(r); err != nil {
			return err
		}
		return plan.see(r)
	}
	return mark(ctx, log, session, UpdateOptions{
		Writer: randomID("reset:"), CatchUp: reading(log, session, 0, false, see),
	}, func(head uint64) *Truncated {
		var inactive []string
		if life.now() != StreamActive {
			inactive = []string{session}
		}
		return &Truncated{Reason: ResyncRollback, Ranges: plan.ranges(Range{From: 1, To: head, Scope: ScopeStream}, inactive...)}
	}, nil)
}
