package eventlog

import (
	"context"
	"time"

	"github.com/helixd/helixd/eventlog/fact"
)

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
	plan := &cleanup{agent: agent, step: step}
	_, err := Update(ctx, log, session, UpdateOptions{
		Writer: randomID("cleanup:"), CatchUp: reading(log, session, minSequence, false, plan.see),
	}, func(head uint64) ([]Entry, error) {
		plan.marker = nil
		ranges := plan.ranges()
		if len(ranges) == 0 {
			return nil, nil
		}
		plan.marker = &Truncated{
			Reason: reason, Ranges: ranges, AtSequence: head, TruncatedAtStep: &step, MinSequence: minSequence,
			Base: fact.Base{SessionID: session, Timestamp: time.Now().UnixMilli()},
		}
		return entriesOf(session, plan.marker)
	})
	if err != nil {
		return nil, err
	}
	return plan.marker, nil
}

// cleanup collects what a clean-up by step has to judge.
type cleanup struct {
	agent  string
	step   int
	chunks []stepped // alive, in order
	marker *Truncated
}

// stepped is a chunk without its payload.
type stepped struct {
	Record
	step int
}

func (c *cleanup) see(r Record) error {
	var dead Truncations
	if err := dead.Add(r); err != nil {
		return err
	}
	if len(dead) > 0 {
		alive := c.chunks[:0]
		for _, s := range c.chunks {
			if !dead.Covers(s.Record) {
				alive = append(alive, s)
			}
		}
		c.chunks = alive
	}
	if r.Agent != c.agent || !ScopeChunks.Truncates(r.Envelope) {
		return nil
	}
	step := c.step // of a chunk that stays, as one without a step does
	if chunk, err := r.Chunk(); err == nil {
		step = BaseOf(chunk).Step
	}
	r.Entry = Entry{Envelope: r.Envelope}
	c.chunks = append(c.chunks, stepped{Record: r, step: step})
	return nil
}

// ranges returns what is to be truncated. A range ends where a chunk of the same
// call stays. Its scope is content, which earlier versions know, if it covers
// nothing else.
func (c *cleanup) ranges() []Range {
	var ranges []Range
	open := map[string]int{} // index of a call's open range, from 1
	for _, s := range c.chunks {
		at := open[s.Call]
		switch {
		case s.step <= c.step:
			open[s.Call] = 0
			continue
		case at > 0:
			ranges[at-1].To = s.Sequence
		default:
			ranges = append(ranges, Range{
				AgentID: c.agent, CallID: s.Call, From: s.Sequence, To: s.Sequence, Scope: ScopeContent,
			})
			at = len(ranges)
			open[s.Call] = at
		}
		if !ScopeContent.Truncates(s.Envelope) {
			ranges[at-1].Scope = ScopeChunks
		}
	}
	return ranges
}

// entriesOf makes entries of facts about a session.
func entriesOf(session string, facts ...fact.Fact) ([]Entry, error) {
	entries := make([]Entry, len(facts))
	for i, f := range facts {
		var err error
		if entries[i], err = NewFact(session, f, Labels{}); err != nil {
			return nil, err
		}
	}
	return entries, nil
}
