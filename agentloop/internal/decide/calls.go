package decide

import (
	"slices"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/internal/plan"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
)

// calls decides about the calls of a recorded step. Ordinary ones, sub-agents
// among them, run together; then those that finish the turn, one by one; then
// companion tools. Of each phase all are finished before the next
// begins. If what is left waits, so does the run.
func (d Decider) calls(t *projector.Tree, s *projector.Session, def *plan.Agent, step *projector.Step) []Effect {
	phases := [3][]projector.Call{}
	for _, c := range step.Pending() {
		p := def.Phase(c.Name)
		phases[p] = append(phases[p], c)
	}
	for p, calls := range phases {
		if len(calls) == 0 {
			continue
		}
		if p == plan.PhaseFinishing {
			calls = calls[:1]
		}
		if p == plan.PhaseCompanion {
			for _, c := range calls {
				if c.Pending == nil {
					return []Effect{RunCompanion{Session: s.SessionID, StepID: step.ID, Call: c}}
				}
			}
		}
		return d.phase(t, s, step, calls)
	}
	if Unsaved(s) {
		return []Effect{SaveWorkspace{Session: s.SessionID}}
	}
	return []Effect{CommitStep{Session: s.SessionID, Step: *step}}
}

// phase decides about the unfinished calls of one phase.
func (d Decider) phase(t *projector.Tree, s *projector.Session, step *projector.Step, calls []projector.Call) []Effect {
	var effects []Effect
	var waiting []projector.Call
	moving := false // something continues that needs no effect of ours
	for _, c := range calls {
		switch p := c.Pending; {
		case p == nil:
			effects = append(effects, RunCall{Session: s.SessionID, StepID: step.ID, Call: c})
		case p.Kind == fact.PendingChild:
			child := t.Get(p.Child)
			switch {
			case child != nil && child.Child != nil && child.Child.Remote:
				effects = append(effects, RunCall{Session: s.SessionID, StepID: step.ID, Call: c})
			case child == nil || child.Child == nil || child.Turn == nil:
				effects = append(effects, CloseCall{Session: s.SessionID, StepID: step.ID, Call: c})
			case Aborting(child): // its own run records that
				moving = true
			case child.Running() || d.goesOn(t, child):
				moving = true
				if p.Deadline > 0 {
					effects = append(effects, AwaitDeadline{Session: s.SessionID, StepID: step.ID, Call: c, At: p.Deadline})
				}
			case c.Expired(now(t)):
				effects = append(effects, AwaitDeadline{Session: s.SessionID, StepID: step.ID, Call: c, At: p.Deadline})
			default:
				waiting = append(waiting, c)
			}
		case c.Answer != nil && c.Answer.Kind == fact.SubmitApproval && c.Answer.Approved:
			effects = append(effects, RunCall{Session: s.SessionID, StepID: step.ID, Call: c})
		case c.Answer != nil || c.Expired(now(t)):
			effects = append(effects, CloseCall{Session: s.SessionID, StepID: step.ID, Call: c})
		default:
			waiting = append(waiting, c)
		}
	}
	if len(effects) > 0 || moving || len(waiting) == 0 {
		return effects
	}
	if Unsaved(s) {
		return []Effect{SaveWorkspace{Session: s.SessionID}}
	}
	return []Effect{Suspend{Session: s.SessionID, Status: suspension(step, waiting), Calls: waiting}}
}

// Aborting reports whether an open turn is about to fail.
func Aborting(s *projector.Session) bool {
	return s.Turn != nil && s.Turn.Stop != nil && s.Turn.Stop.Kind == fact.StopAbort
}

// suspension says how the run waits: for sub-agents only, with
// a part of the step done, or for people.
func suspension(step *projector.Step, waiting []projector.Call) fact.RunStatus {
	people := false
	for _, c := range waiting {
		people = people || c.Pending.Kind != fact.PendingChild
	}
	switch {
	case !people:
		return fact.RunChildren
	case len(step.Pending()) < len(step.Calls):
		return fact.RunStepPartial
	default:
		return fact.RunClientTool
	}
}

// now is the time of the last request: deadlines are
// enforced then, not by a timer.
func now(t *projector.Tree) int64 { return t.AskedAt }

// goesOn reports whether a sub-agent that has stopped is to continue by itself:
// its parent runs and waits for it, or it was stopped with its parent, and
// there is something to do. A sub-agent that no call waits for continues when its
// answer is there.
func (d Decider) goesOn(t *projector.Tree, s *projector.Session) bool {
	if s.Child == nil || s.Child.Remote || s.Turn == nil {
		return false
	}
	parent := t.Get(s.Child.ParentSessionID)
	if parent == nil {
		return false
	}
	awaited := Awaits(parent, s.SessionID)
	switch {
	case s.Status == projector.SessionInterrupted:
		return parent.Running() && parent.Turn.Stop == nil && (awaited || s.Turn.Stop != nil && s.Turn.Stop.ByParent)
	case s.Suspended() && s.Turn.Stop == nil:
		return (!awaited || parent.Running() && parent.Turn.Stop == nil) && d.moves(t, s, 0)
	}
	return false
}

// Awaits reports whether a call of the session waits for a child.
func Awaits(s *projector.Session, child string) bool { return AwaitsBy(s, child, "") }

// AwaitsBy reports whether the call with the given id waits for a child; empty:
// any call of the session.
func AwaitsBy(s *projector.Session, child, call string) bool {
	for c := range s.OpenCalls() {
		if !c.Done && c.Pending != nil && c.Pending.Child == child && (call == "" || c.ID == call) {
			return true
		}
	}
	return false
}

func childOf(child, parent *projector.Session) bool {
	return child.Child != nil && child.Child.ParentSessionID == parent.SessionID
}

// moves reports whether something that a suspended session waits for is
// there.
func (d Decider) moves(t *projector.Tree, s *projector.Session, depth int) bool {
	for c := range s.OpenCalls() {
		switch p := c.Pending; {
		case c.Done:
		case p == nil:
			return true
		case p.Kind != fact.PendingChild:
			if c.Answer != nil || c.Expired(now(t)) {
				return true
			}
		default:
			child := t.Get(p.Child)
			if child == nil || !child.Suspended() || childOf(child, s) && depth < agentloop.MaxDepth && d.moves(t, child, depth+1) {
				return true
			}
		}
	}
	return false
}

// Unsaved reports whether files are to be kept before the session's step
// becomes final, or its run rests: a rollback or a fork to there brings them
// along.
func Unsaved(s *projector.Session) bool {
	w := s.Workspace
	return w != nil && w.Dirty && !w.Stale && w.Status == projector.WorkspaceOpen &&
		slices.Contains(w.Capabilities, fact.WorkspaceSnapshot)
}
