package engine

import (
	"cmp"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/internal/decide"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
)

// A step that has begun ends in the log with one of two chunks: step_end, or
// step_discarded with the reason why. A step whose answer is recorded outlives
// an interrupt, a suspension and a crash: a later run continues it, and
// nothing of it is discarded.

// discarded records that a step of the session ends without a step_end.
func (l *Loop) discarded(s *projector.Session, step *projector.Step, reason string) fact {
	run := cmp.Or(step.RunID, s.Turn.RunID)
	base := l.chunkBase(s)
	base.Step = step.Number
	return fact{c: &eventlog.StepDiscarded{RunID: run, StepID: step.ID, Reason: reason, Base: base}}
}

// discard returns the record that ends the session's step without a step_end;
// none if no step has begun, or if keep says that it goes on.
func (t *task) discard(reason func(*projector.Session, *projector.Step) string) (facts []fact) {
	t.look(func(s *projector.Session) {
		step := s.Begun()
		if step == nil {
			return
		}
		if why := reason(s, step); why != "" {
			f := t.l.discarded(s, step, why)
			f.run = t.runID
			facts = append(facts, f)
		}
	})
	return facts
}

// failed is the reason with which a run's end discards its step.
func failed(s *projector.Session, _ *projector.Step) string {
	switch {
	case !decide.Aborting(s):
		return eventlog.DiscardFailure
	case s.Turn.Stop.Code == agentloop.CodePoisoned:
		return eventlog.DiscardCrash
	}
	return eventlog.DiscardAbort
}

// interrupted is the reason with which an interrupt discards a step: an answer
// that is recorded is kept.
func interrupted(_ *projector.Session, step *projector.Step) string {
	if step.Recorded {
		return ""
	}
	return eventlog.DiscardInterrupt
}

// orphaned returns the reason with which a truncation of ranges discards a step,
// if it truncates the step's answer. What this node has written since its claim
// was not cut off by a crash.
func orphaned(claim *projector.Claim, ranges []eventlog.Range) func(*projector.Session, *projector.Step) string {
	return func(s *projector.Session, step *projector.Step) string {
		for _, g := range ranges {
			switch {
			case g.AgentID != s.SessionID || g.CallID != "" || step.Recorded:
			case step.Failure != nil:
				return eventlog.DiscardFailure
			case claim != nil && claim.Sequence < step.Streamed.From:
				return eventlog.DiscardSupersede
			default:
				return eventlog.DiscardCrash
			}
		}
		return ""
	}
}

// takenBack discards the steps that a rollback ends: those that are open now, unless
// their answer is recorded in then, and those whose answer was streaming in then.
func (l *Loop) takenBack(now, then *projector.Tree) (facts []fact) {
	for _, s := range now.Sessions() {
		var kept *projector.Step
		if past := then.Get(s.SessionID); past != nil {
			if kept = past.Begun(); kept != nil && !kept.Recorded {
				facts = append(facts, l.discarded(past, kept, eventlog.DiscardRollback))
			}
		}
		if step := s.Begun(); step != nil && (kept == nil || kept.ID != step.ID) {
			facts = append(facts, l.discarded(s, step, eventlog.DiscardRollback))
		}
	}
	return facts
}
