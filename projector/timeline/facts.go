package timeline

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
)

// fact folds a fact and returns the span that it is of. The claim and the
// number of dead ranges are what they were before.
func (t *Timeline) fact(l *lane, r eventlog.Record, f fact.Fact, claim *projector.Claim, dead int) *Span {
	seq := r.Sequence
	switch f := f.(type) {
	case *fact.UserMessage:
		return t.userMessage(l, seq, f)
	case *fact.RunRequested:
		t.beginRun(l, seq, f)
	case *fact.RunClaimed:
		t.claim(l, seq, f, claim)
	case *fact.ClaimSettled:
		if f.How == fact.ClaimReleased {
			t.claimed = false
		}
	case *fact.ModelTurn:
		l.endContent(StatusDone, seq)
	case *fact.ModelFailed:
		l.endContent(StatusFailed, seq)
		t.mark(l, MarkError, seq, fmt.Sprintf("attempt %d: %s: %s", f.Attempt, f.Code, f.Error))
	case *fact.WorkspaceFailed:
		t.mark(l, MarkError, seq, fmt.Sprintf("workspace %s: %s", f.Name, f.Error))
	case *fact.CallSuspended:
		return t.suspendCall(l, seq, f)
	case *fact.ResultSubmitted:
		return t.submit(l, seq, f)
	case *fact.ToolResult:
		return t.toolResult(l, seq, f)
	case *fact.MemoryRecalled:
		t.recalled(l, seq, f)
	case *fact.InterruptRequested:
		t.stop(l, seq, f)
	case *fact.SessionForked:
		t.mark(l, MarkForked, seq, fmt.Sprintf("%s at %d", f.FromSessionID, f.FromSequence))
		t.takeOver(seq)
	case *fact.RunEnded:
		t.endRun(l, seq, f)
	case *eventlog.Truncated:
		t.truncate(l, seq, f, t.state.Dead[min(dead, len(t.state.Dead)):])
	case *fact.StreamPaused:
		t.pause(l, seq, f.Reason)
	case *fact.StreamResumed:
		if l.paused {
			l.paused = false
			t.mark(l, MarkResumed, seq, "")
		}
	case *fact.StreamEnd:
		t.endStream(l, seq, StatusDone)
		t.mark(l, MarkEnded, seq, string(projector.SessionCompleted))
	case *fact.StreamFailed:
		t.endStream(l, seq, StatusFailed)
		t.mark(l, MarkEnded, seq, string(projector.SessionFailed))
	}
	return nil
}

func (t *Timeline) userMessage(l *lane, seq uint64, f *fact.UserMessage) *Span {
	l.endBlock(seq)
	label := f.Content
	if strings.TrimSpace(label) == "" && len(f.Files) > 0 {
		label = f.Files[0].Filename
	}
	s := t.open(l, KindUser, seq, label)
	if state := t.state.Get(l.id); state != nil && len(state.Messages) > 0 {
		m := state.Messages[len(state.Messages)-1]
		s.Turn, s.Step = m.Turn, m.Step
		if m.Hidden() {
			s.Label = short("hidden: "+label, MaxLabel)
		}
	}
	s.Chars = len([]rune(f.Content))
	end(s, StatusDone, seq)
	return s
}

func (t *Timeline) beginRun(l *lane, seq uint64, f *fact.RunRequested) {
	l.paused, l.stop = false, ""
	l.endContent(StatusInterrupted, seq)
	if last := l.run; last != nil {
		end(last, StatusInterrupted, seq) // it died without a word
	} else if last := t.lastRun(l); last != nil && last.Status == StatusWaiting {
		last.Status, last.Updated = StatusDone, seq
	}
	if f.Mode == fact.ModeStart {
		t.leave(l, StatusInterrupted, seq)
	} else if l.step != nil {
		l.step.Status = StatusOpen
	}
	l.run = t.open(l, KindRun, seq, string(f.Mode))
	l.run.RunID, l.run.Step, l.run.Node = f.RunID, 0, t.nodeOf()
	if turn := t.state.Get(l.id).Turn; l.step == nil && turn.Step != nil && !turn.Step.Committed {
		l.step, l.stepID = t.open(l, KindStep, seq, "step "+strconv.Itoa(turn.Step.Number)), turn.Step.ID
		l.step.ID += ".step" // it continues with one that a fork or a rollback has brought
	}
}

func (t *Timeline) lastRun(l *lane) *Span {
	for i := len(t.spans) - 1; i >= 0; i-- {
		if s := t.spans[i]; s.Kind == KindRun && s.Lane == l.id && !s.Truncated {
			return s
		}
	}
	return nil
}

// leave ends the open spans of a lane, which no run will continue.
func (t *Timeline) leave(l *lane, status Status, seq uint64) {
	l.endContent(status, seq)
	end(l.step, status, seq)
	l.step, l.stepID = nil, ""
	for _, open := range []map[string]*Span{l.calls, l.waits} {
		for _, s := range open {
			end(s, StatusInterrupted, seq)
		}
		clear(open)
	}
}

// claim marks the node that drives the tree from now on, and whether another node has
// left its work unfinished.
func (t *Timeline) claim(l *lane, seq uint64, f *fact.RunClaimed, last *projector.Claim) {
	if t.state.Claim.Fences() {
		t.claimed = false
		return
	}
	kind, label := MarkClaimed, f.Node
	if f.Attempt > 1 {
		label = fmt.Sprintf("%s, attempt %d", f.Node, f.Attempt)
	}
	moved := last != nil && !last.Fences() && last.Node != f.Node
	if moved {
		label += ", from " + last.Node
	}
	if f.Attempt > 1 && moved || t.claimed && (f.Attempt > 1 || moved) {
		kind = MarkTakeover
	}
	t.claimed = true
	t.mark(l, kind, seq, label)
	for _, l := range t.lanes {
		if l.run != nil {
			l.run.Node, l.run.Updated = f.Node, seq
		}
	}
}

// suspendCall has a call wait.
func (t *Timeline) suspendCall(l *lane, seq uint64, f *fact.CallSuspended) *Span {
	switch f.Kind {
	case fact.PendingApproval:
		l.endBlock(seq)
		s := t.open(l, KindApproval, seq, f.ToolName)
		s.CallID, s.Status = f.ToolCallID, StatusWaiting
		l.waits[f.ToolCallID] = s
		return s
	case fact.PendingChild:
		s := l.calls[f.ToolCallID]
		if s == nil || !s.Open {
			s = t.call(l, KindChild, seq, f.ToolCallID, f.ToolName)
		}
		s.Kind, s.Status = KindChild, StatusWaiting
		return s
	}
	end(l.calls[f.ToolCallID], StatusWaiting, seq)
	s := t.call(l, KindClientTool, seq, f.ToolCallID, f.ToolName)
	s.Status = StatusWaiting
	return s
}

// submit ends the wait of a call; the first answer counts.
func (t *Timeline) submit(l *lane, seq uint64, f *fact.ResultSubmitted) *Span {
	s := l.waits[f.ToolCallID]
	if s == nil || !s.Open {
		if s = l.calls[f.ToolCallID]; s == nil || !s.Open || s.Kind != KindClientTool {
			return nil
		}
	}
	t.grow(s, seq)
	switch {
	case f.Kind == fact.SubmitTimeout:
		end(s, StatusFailed, seq)
	case f.Kind == fact.SubmitAbandoned:
		end(s, StatusInterrupted, seq)
	case s.Kind == KindApproval && !f.Approved:
		end(s, StatusDenied, seq)
	case f.Error != "":
		end(s, StatusFailed, seq)
	default:
		end(s, StatusDone, seq)
	}
	if s.Error = short(f.Error, MaxError); s.Error == "" && s.Status == StatusDenied {
		s.Error = short(f.Reason, MaxError)
	}
	return s
}

func (t *Timeline) toolResult(l *lane, seq uint64, f *fact.ToolResult) *Span {
	s := l.calls[f.ToolCallID]
	wait := l.waits[f.ToolCallID]
	if s == nil && wait != nil && f.Error != "" { // it was not executed
		if wait.Open {
			t.grow(wait, seq)
			end(wait, StatusDenied, seq)
		}
		return wait
	}
	if s == nil {
		s = t.call(l, KindTool, seq, f.ToolCallID, f.ToolName)
	}
	if f.Error != "" {
		s.Error, s.Cause = short(f.Error, MaxError), short(f.Cause, MaxError)
	}
	if !s.Open {
		if f.Error != "" && s.Status == StatusDone { // an answer that could not be used
			s.Status = StatusFailed
		}
		return s
	}
	t.grow(s, seq)
	status := StatusDone
	if f.Error != "" {
		status = StatusFailed
	}
	end(s, status, seq)
	return s
}

// recalled marks of how much an agent was reminded, if of anything.
func (t *Timeline) recalled(l *lane, seq uint64, f *fact.MemoryRecalled) {
	switch n := len(f.Memories); {
	case f.Error != "":
		t.mark(l, MarkRecalled, seq, "failed: "+f.Error)
	case n == 1:
		t.mark(l, MarkRecalled, seq, "1 memory")
	case n > 1:
		t.mark(l, MarkRecalled, seq, fmt.Sprintf("%d memories", n))
	}
}

// stop marks a wish that a run should stop, once.
func (t *Timeline) stop(l *lane, seq uint64, f *fact.InterruptRequested) {
	wish := f.RunID + " " + string(f.Kind)
	if l.stop == wish { // the node that drives the run has acknowledged it
		return
	}
	l.stop = wish
	kind := MarkInterrupt
	if f.Kind == fact.StopAbort {
		kind = MarkAbort
	}
	t.mark(l, kind, seq, f.Reason)
}

func (t *Timeline) endRun(l *lane, seq uint64, f *fact.RunEnded) {
	if t.state.Claim != nil && t.state.Claim.RunID == f.RunID {
		t.claimed = false
	}
	if f.Status == fact.RunFailed {
		t.mark(l, MarkError, seq, strings.TrimPrefix(f.ErrorCode+": "+f.Error, ": "))
	}
	if l.run == nil || l.run.RunID != f.RunID {
		return
	}
	run := l.run
	l.run = nil
	status := StatusWaiting
	switch f.Status {
	case fact.RunCompleted:
		status = StatusDone
	case fact.RunFailed:
		status = StatusFailed
		run.Error = short(f.Error, MaxError)
	case fact.RunStopped:
		status = StatusInterrupted
	}
	end(run, status, seq)
	if status == StatusDone || status == StatusFailed {
		t.leave(l, status, seq)
		return
	}
	l.endContent(StatusInterrupted, seq)
	if l.step != nil {
		l.step.Status, l.step.Updated = status, seq
	}
}

// endStream ends what an outside producer's end of the stream ends.
func (t *Timeline) endStream(l *lane, seq uint64, status Status) {
	if state := t.state.Get(l.id); state == nil || state.Turn != nil {
		return
	}
	end(l.run, status, seq)
	l.run = nil
	t.leave(l, status, seq)
}

// takeOver opens what waits in a state that the timeline has no records of.
func (t *Timeline) takeOver(seq uint64) {
	for _, s := range t.state.Sessions() {
		l := t.lane(s.SessionID)
		for c := range s.OpenCalls() {
			if c.Pending != nil && !c.Done {
				t.waiting(l, seq, c)
			}
		}
		t.suspend(l, seq)
	}
}

// waiting opens a span for a call that has waited since before.
func (t *Timeline) waiting(l *lane, seq uint64, c *projector.Call) {
	for _, s := range []*Span{l.calls[c.ID], l.waits[c.ID]} {
		if s != nil && s.From == seq {
			return // a damaged state may have a call twice
		}
	}
	var s *Span
	switch {
	case c.Pending.Kind == fact.PendingApproval:
		s = t.open(l, KindApproval, seq, c.Name)
		l.waits[c.ID] = s
	case c.Pending.Kind == fact.PendingChild:
		s = t.call(l, KindChild, seq, c.ID, c.Name)
	default:
		s = t.call(l, KindClientTool, seq, c.ID, c.Name)
	}
	s.ID += ".call." + l.id + "." + c.ID
	s.CallID, s.Status, s.Records = c.ID, StatusWaiting, 1
	if c.Answer != nil && c.Pending.Kind != fact.PendingChild {
		end(s, StatusDone, seq)
	}
}
