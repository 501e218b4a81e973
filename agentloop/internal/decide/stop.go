package decide

import (
	"slices"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
)

// interrupt decides about a run that is to stop for now: model calls end at
// once, tools that run come to their end, nothing new begins, sub-agents stop
// first, remote ones too. Then the files are saved that a checkpoint needs.
func (d Decider) interrupt(t *projector.Tree, s *projector.Session, stop projector.Stop) []Effect {
	def := d.Agents[s.AgentType]
	var effects []Effect // with the tools that run: what is not wanted is cut off
	busy := d.asking(s)
	if step := s.Turn.Step; step != nil && !step.Committed {
		for _, c := range step.Pending() {
			e := RunCall{Session: s.SessionID, StepID: step.ID, Call: c}
			busy = busy || d.Busy(e.Key())
			if d.Busy(e.Key()) && (def == nil || def.Remotes[c.Name] == nil) {
				effects = append(effects, e)
			}
		}
	}
	children := slices.ContainsFunc(t.ChildrenOf(s.SessionID), (*projector.Session).Running)
	saves := !busy && !children && s.Running() && Unsaved(s) // otherwise the checkpoint lacks the changes of tools to files
	if saves {
		effects = append(effects, SaveWorkspace{Session: s.SessionID})
	}
	if !stop.Heard && (children || len(effects) > 0) { // another node must not take over a run that only needs time
		effects = append(effects, StopChild{Session: s.SessionID, Stop: stop})
	}
	handed := stop
	handed.ByParent = true
	effects = append(effects, stopChildren(t, s, handed, (*projector.Session).Running)...)
	if busy || children || saves {
		return effects
	}
	return []Effect{Interrupt{Session: s.SessionID, Reason: stop.Reason}}
}

// abort decides about a run that is to end at once: what it does is cut off,
// and remote agents that this node does not follow get an abort.
func (d Decider) abort(t *projector.Tree, s *projector.Session, stop projector.Stop) []Effect {
	open := func(child *projector.Session) bool { return child.Turn != nil }
	handed := stop
	handed.ByParent, handed.Code = true, ""
	if effects := stopChildren(t, s, handed, open); len(effects) > 0 {
		return effects
	}
	busy := d.asking(s)
	var left []Effect
	if step := s.Turn.Step; step != nil {
		for _, c := range step.Calls {
			switch e := (StopRemote{Session: s.SessionID, Call: c}); {
			case d.Busy(CallKey(s.SessionID, c.ID)):
				busy = true
			case d.worksElsewhere(t, s, c) && !d.Stopped[e.Key()]:
				left = append(left, e)
			}
		}
	}
	if busy || len(left) > 0 || slices.ContainsFunc(t.ChildrenOf(s.SessionID), open) {
		return left
	}
	code, message := stop.Code, "the run was aborted"
	switch code {
	case "":
		code = agentloop.CodeAborted
	case agentloop.CodeSessionExpired:
		message = "the session has expired"
	}
	if stop.Reason != "" {
		message += ": " + stop.Reason
	}
	return []Effect{Fail{Session: s.SessionID, Code: code, Message: message}}
}

// worksElsewhere reports whether another server may be working on a call.
func (d Decider) worksElsewhere(t *projector.Tree, s *projector.Session, c projector.Call) bool {
	def := d.Agents[s.AgentType]
	if def == nil || def.Remotes[c.Name] == nil || c.Done || c.Pending == nil {
		return false
	}
	child := t.Get(c.Pending.Child)
	return child != nil && child.Child != nil && child.Child.Remote
}

// stopChildren hands a stop on to the children that are concerned and have not
// heard of it.
func stopChildren(t *projector.Tree, s *projector.Session, stop projector.Stop, concerned func(*projector.Session) bool) []Effect {
	var effects []Effect
	for _, child := range t.ChildrenOf(s.SessionID) {
		heard := child.Turn != nil && child.Turn.Stop != nil &&
			(child.Turn.Stop.Kind == stop.Kind || child.Turn.Stop.Kind == fact.StopAbort)
		if concerned(child) && !heard {
			effects = append(effects, StopChild{Session: child.SessionID, Stop: stop})
		}
	}
	return effects
}
