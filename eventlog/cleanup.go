package eventlog

import "context"

// CleanupToStep truncates the chunks of agent that have a step after step and a
// sequence after minSequence. It returns the marker. If there is nothing to truncate,
// it appends nothing and returns nil. If another writer appends meanwhile, its chunks
// are truncated too.
//
// Step numbers restart at 1 in each turn. A resume therefore passes the
// sequence at which its run began (projector.Run's StartSequence) as
// minSequence, so that earlier turns stay; the marker's reason is then crash
// recovery. With 0, CleanupToStep considers all turns, and the reason is rollback.
//
// Chunks of all kinds are truncated, inside and outside of tool calls. State and
// messages do not change: [Rollback] changes them. A chunk that can't be decoded has no
// step and stays.
//
// Errors: ErrSessionNotFound, also if the session is erased meanwhile;
// *CursorAheadError if minSequence is beyond the
// head; *ValidationError; ErrOutcomeUnknown if ctx ended too early.
func CleanupToStep(ctx context.Context, log Log, session, agent string, step int, minSequence uint64) (*Truncated, error) {
	reason := ResyncRollback
	if minSequence > 0 {
		reason = ResyncCrashRecovery
	}
	plan := &cleanup{agent: agent, step: step, chunks: truncation{scope: ScopeChunks}, late: map[uint64]bool{}}
	return mark(ctx, log, session, UpdateOptions{
		Writer: randomID("cleanup:"), CatchUp: reading(log, session, minSequence, false, plan.see),
	}, func(uint64) *Truncated {
		return &Truncated{Reason: reason, Ranges: plan.ranges(), TruncatedAtStep: &step, MinSequence: minSequence}
	}, nil)
}

// cleanup collects what a clean-up by step has to judge.
type cleanup struct {
	agent  string
	step   int
	chunks truncation
	late   map[uint64]bool // the sequences of the chunks after step
}

func (c *cleanup) see(r Record) error {
	if r.Kind == KindChunk {
		if r.Agent != c.agent {
			return nil
		}
		if chunk, err := r.Chunk(); err == nil && BaseOf(chunk).Step > c.step {
			c.late[r.Sequence] = true
		}
	}
	return c.chunks.see(r)
}

// ranges returns what is to be truncated. A range ends where a chunk of the same
// call stays. Its scope is content, which earlier versions know, if it covers
// nothing else.
func (c *cleanup) ranges() []Range {
	var ranges []Range
	open := map[string]int{} // index of a call's open range, from 1
	for _, r := range c.chunks.alive {
		at := open[r.Call]
		switch {
		case !c.late[r.Sequence]:
			open[r.Call] = 0
			continue
		case at > 0:
			ranges[at-1].To = r.Sequence
		default:
			ranges = append(ranges, Range{
				AgentID: c.agent, CallID: r.Call, From: r.Sequence, To: r.Sequence, Scope: ScopeContent,
			})
			at = len(ranges)
			open[r.Call] = at
		}
		if !ScopeContent.Truncates(r.Envelope) {
			ranges[at-1].Scope = ScopeChunks
		}
	}
	return ranges
}
