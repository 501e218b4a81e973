package timeline

import (
	"strconv"
	"unicode/utf8"

	"github.com/helixd/helixd/eventlog"
)

// chunk folds a chunk and returns the span that it is of, with how many
// characters it brings.
func (t *Timeline) chunk(l *lane, r eventlog.Record, c eventlog.Chunk) (*Span, int) {
	seq := r.Sequence
	if r.Run == "" && eventlog.ScopeContent.Truncates(r.Envelope) {
		return t.outside(l, r, c)
	}
	switch c := c.(type) {
	case *eventlog.TextDelta:
		if r.Call == "" {
			return t.block(l, KindText, seq, ""), utf8.RuneCountInString(c.Delta)
		}
		return l.calls[r.Call], utf8.RuneCountInString(c.Delta)
	case *eventlog.Thinking:
		if r.Call != "" {
			return l.calls[r.Call], 0
		}
		return t.thinking(l, seq, c)
	case *eventlog.ToolArgStreamStart:
		l.endBlock(seq)
		s := t.open(l, KindText, seq, c.ToolName+" arguments")
		s.CallID = c.ToolCallID
		end(l.arguments[c.ToolCallID], StatusInterrupted, seq)
		l.arguments[c.ToolCallID] = s
		return s, 0
	case *eventlog.ToolArgStreamDelta:
		if s := l.arguments[c.ToolCallID]; s != nil {
			return s, utf8.RuneCountInString(c.Delta)
		}
	case *eventlog.ToolArgStreamEnd:
		if s := l.arguments[c.ToolCallID]; s != nil {
			delete(l.arguments, c.ToolCallID)
			t.grow(s, seq)
			end(s, StatusDone, seq)
			return s, 0
		}
	case *eventlog.CustomEvent:
		if r.Call == "" {
			return t.block(l, KindCustom, seq, c.EventName), 0
		}
		return l.calls[r.Call], 0
	case *eventlog.StepStart:
		l.endContent(StatusInterrupted, seq)
		t.beginStep(l, seq, c)
	case *eventlog.StepCommitted:
		l.endContent(StatusDone, seq)
		if l.step != nil && l.stepID == c.StepID {
			end(l.step, StatusDone, seq)
			l.step, l.stepID = nil, ""
		}
	case *eventlog.StepDiscarded:
		t.discardStep(l, seq, c)
	case *eventlog.ToolStart:
		return t.startTool(l, r, c), 0
	case *eventlog.ToolEnd:
		return l.calls[c.ToolCallID], 0
	case *eventlog.ToolApprovalRequest:
		return l.waits[c.ToolCallID], 0
	case *eventlog.ToolApprovalResponse:
		if s := l.waits[c.ToolCallID]; s != nil && !c.Approved {
			s.Status = StatusDenied
		}
		return l.waits[c.ToolCallID], 0
	case *eventlog.ToolInputError:
		return l.calls[c.ToolCallID], 0
	case *eventlog.ToolOutputError:
		return l.calls[c.ToolCallID], 0
	case *eventlog.SubAgentStart:
		return t.child(l, seq, c.CallID, c.SubAgentType), 0
	case *eventlog.SubAgentEnd:
		if s := l.calls[c.CallID]; s != nil && s.Open { // a call that has not waited is finished already
			return s, 0
		}
	default:
		t.moment(l, seq, c)
	}
	return nil, 0
}

// block returns the block that continues, or begins one.
func (t *Timeline) block(l *lane, kind Kind, seq uint64, label string) *Span {
	if s := l.content; s != nil && s.Kind == kind && s.Label == short(label, MaxLabel) {
		return s
	}
	l.endBlock(seq)
	l.content = t.open(l, kind, seq, label)
	return l.content
}

// endBlock ends the open block: other content follows.
func (l *lane) endBlock(seq uint64) {
	end(l.content, StatusDone, seq)
	l.content = nil
}

// thinking folds a piece of reasoning, or a whole block of it: after its
// pieces it is their end.
func (t *Timeline) thinking(l *lane, seq uint64, c *eventlog.Thinking) (*Span, int) {
	pieces := l.content != nil && l.content.Kind == KindReasoning
	s, chars := t.block(l, KindReasoning, seq, ""), utf8.RuneCountInString(c.Content)
	if c.IsComplete {
		if pieces {
			chars = 0
		}
		t.grow(s, seq)
		l.endBlock(seq)
	}
	return s, chars
}

// outside folds what belongs to no run.
func (t *Timeline) outside(l *lane, r eventlog.Record, c eventlog.Chunk) (*Span, int) {
	chars := 0
	if c, ok := c.(*eventlog.TextDelta); ok {
		chars = utf8.RuneCountInString(c.Delta)
	}
	if s := l.content; s != nil && s.Kind == KindOutside {
		return s, chars
	}
	return t.block(l, KindOutside, r.Sequence, r.Type), chars
}

func (t *Timeline) beginStep(l *lane, seq uint64, c *eventlog.StepStart) {
	id := ""
	if c.StepID != nil {
		id = *c.StepID
	}
	if l.step != nil && l.stepID == id { // another attempt
		l.step.Status, l.step.Updated = StatusOpen, seq
		return
	}
	end(l.step, StatusInterrupted, seq)
	l.step, l.stepID = t.open(l, KindStep, seq, "step "+strconv.Itoa(c.Step)), id
	l.step.Step = c.Step
}

// discardStep marks that a step ends without a step_end. Its span stays: another
// attempt continues with it.
func (t *Timeline) discardStep(l *lane, seq uint64, c *eventlog.StepDiscarded) {
	l.endContent(StatusInterrupted, seq)
	t.mark(l, MarkDiscarded, seq, "step "+strconv.Itoa(c.Step)+": "+c.Reason)
	if l.step != nil && l.stepID == c.StepID {
		l.step.Status, l.step.Updated = StatusInterrupted, seq
	}
}

// startTool begins the execution of a call. That of a client's tool began when
// the call was suspended.
func (t *Timeline) startTool(l *lane, r eventlog.Record, c *eventlog.ToolStart) *Span {
	s := l.calls[c.ToolCallID]
	if s != nil && s.Open && s.Kind == KindClientTool {
		return s
	}
	end(s, StatusInterrupted, r.Sequence) // it is executed again
	return t.call(l, KindTool, r.Sequence, c.ToolCallID, c.ToolName)
}

// call begins a span of a call.
func (t *Timeline) call(l *lane, kind Kind, seq uint64, id, label string) *Span {
	l.endContent(StatusDone, seq)
	s := t.open(l, kind, seq, label)
	s.CallID, s.Node = id, t.nodeOf()
	l.calls[id] = s
	return s
}

// child says that a call is a sub-agent's.
func (t *Timeline) child(l *lane, seq uint64, call, agent string) *Span {
	s := l.calls[call]
	if s == nil || !s.Open {
		s = t.call(l, KindChild, seq, call, agent)
	}
	s.Kind, s.Label = KindChild, short(agent, MaxLabel)
	return s
}

// moment marks a chunk of a run's life.
func (t *Timeline) moment(l *lane, seq uint64, c eventlog.Chunk) {
	switch c := c.(type) {
	case *eventlog.CheckpointCreated:
		t.mark(l, MarkCheckpoint, seq, "step "+strconv.Itoa(c.StepCount)).ID = c.CheckpointID
	case *eventlog.RunPaused:
		t.pause(l, seq, c.Reason)
	case *eventlog.RunResumed:
		l.paused = false
		t.mark(l, MarkResumed, seq, c.Mode)
	case *eventlog.Error:
		label := c.Error
		if c.Code != nil && *c.Code != "" {
			label = *c.Code + ": " + label
		}
		t.mark(l, MarkError, seq, label)
	}
}

// pause marks that a lane pauses, once.
func (t *Timeline) pause(l *lane, seq uint64, reason string) {
	if !l.paused {
		l.paused = true
		t.mark(l, MarkPaused, seq, reason)
	}
}
