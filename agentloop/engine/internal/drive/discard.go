package drive

import (
	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine/internal/record"
	"github.com/helixd/helixd/agentloop/internal/decide"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
)

// A step that has begun ends in the log with one of two chunks: step_end, or
// step_discarded with the reason why. A step whose answer is recorded outlives
// an interrupt, a suspension and a crash: a later run continues it, and
// nothing of it is discarded.

// discard returns the record that ends the session's step without a step_end;
// none if no step has begun, or if it continues: then reason returns none.
func (t *task) discard(reason func(*projector.Session, *projector.Step) string) (facts []record.Draft) {
	t.look(func(s *projector.Session) {
		step := s.Begun()
		if step == nil {
			return
		}
		if why := reason(s, step); why != "" {
			f := t.host.Discarded(s, step, why)
			f.Run = t.runID
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
