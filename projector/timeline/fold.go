package timeline

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
)

// Apply folds a record into t. Records at or before its head change nothing.
func (t *Timeline) Apply(r eventlog.Record) {
	if r.Sequence <= t.state.Head {
		return
	}
	r.Agent = strings.ToValidUTF8(r.Agent, "\ufffd") // as in the state
	claim, parked, dead := t.state.Claim, len(t.state.Parked), len(t.state.Dead)
	d := projector.Decode(r)
	projector.ApplyDecoded(t.state, r, d)
	t.weigh += weight(r)
	switch {
	case d.Chunk != nil:
		t.now = eventlog.BaseOf(d.Chunk).Timestamp
	case d.Fact != nil:
		t.now = d.Fact.At()
	}
	l := t.lane(r.Agent)
	run, step := l.run, l.step
	var leaf *Span
	chars := 0
	switch {
	case len(t.state.Parked) > parked:
		p := t.state.Parked[len(t.state.Parked)-1]
		t.mark(l, MarkParked, r.Sequence, p.Type+": "+p.Reason)
		l.endContent(StatusDone, r.Sequence)
		t.truncateRanges(r.Sequence, t.state.Dead[min(dead, len(t.state.Dead)):]) // a rollback that can't be used does so all the same
	case d.Chunk != nil:
		leaf, chars = t.chunk(l, r, d.Chunk)
	case d.Fact != nil:
		leaf = t.fact(l, r, d.Fact, claim, dead)
	}
	if leaf != nil {
		t.add(leaf, r.Sequence, chars)
	}
	l.points = append(l.points, point{seq: r.Sequence, at: t.now, chars: int32(min(chars, 1<<30)), leaf: leaf})
	t.contain(l, r, run, step, chars)
	if r.Kind == eventlog.KindFact || r.Type == (*eventlog.RunInterrupted)(nil).Type() {
		t.suspend(l, r.Sequence)
	}
}

// add counts a record of a leaf.
func (t *Timeline) add(s *Span, seq uint64, chars int) {
	s.Records++
	s.Chars += chars
	s.Updated = seq
	if s.Open || s.From == seq {
		t.grow(s, seq)
		return
	}
	if s.Kind == KindTool || s.Kind == KindChild { // these report their end to clients
		s.To = max(s.To, seq)
	}
}

// contain counts a record within the run and the step that it is in: those that
// were open before, unless others have come with it, and those that are now. One
// that the run has not written, be it an answer or a request to continue, says
// nothing of how long the run has lived.
func (t *Timeline) contain(l *lane, r eventlog.Record, run, step *Span, chars int) {
	switch {
	case r.Kind == eventlog.KindFact && r.Type == (*eventlog.Truncated)(nil).Type():
		run, step = nil, nil
	case r.Kind == eventlog.KindFact && r.Type == (*fact.RunRequested)(nil).Type():
		run = nil
	}
	if l.step != nil && l.step.From == r.Sequence {
		step = nil
	}
	all := [...]*Span{run, step, l.run, l.step}
	for i, s := range all {
		if s == nil || slices.Contains(all[:i], s) || s.Kind == KindRun && s.RunID != r.Run && s.From != r.Sequence {
			continue
		}
		s.Records++
		s.Chars += chars
		t.grow(s, r.Sequence)
	}
}

// suspend follows whether a session waits.
func (t *Timeline) suspend(l *lane, seq uint64) {
	state := t.state.Get(l.id)
	waits := state != nil && (state.Waits() || state.Suspended())
	switch {
	case waits && l.suspended == nil:
		l.suspended = t.open(l, KindSuspended, seq, reasonOf(state))
		l.suspended.ID += ".suspended." + l.id // what made it wait may be a span as well
		l.suspended.Status = StatusWaiting
		l.suspended.Records = 1
	case !waits && l.suspended != nil:
		s := l.suspended
		l.suspended = nil
		end(s, StatusDone, seq)
		t.grow(s, seq)
		s.Records = max(s.Records, len(l.within(s.From, s.To)))
	}
}

func reasonOf(s *projector.Session) string {
	if run := s.CurrentRun(); run != nil && run.Suspended() {
		return strings.TrimPrefix(string(run.Status), "suspended_")
	}
	// A fork has no run: it is interrupted, and waits for somebody if its calls do.
	fork := s.CurrentRun() == nil && s.Turn != nil && s.Turn.Step != nil && slices.ContainsFunc(s.Turn.Step.Calls, func(c projector.Call) bool { return c.Awaited() })
	if s.Status == projector.SessionInterrupted && !fork {
		return "interrupted"
	}
	return "paused"
}

// weight is about how many bytes a record adds to the state.
func weight(r eventlog.Record) int {
	switch r.Type {
	case (*eventlog.TextDelta)(nil).Type(), (*eventlog.Thinking)(nil).Type(), (*eventlog.ToolArgStreamDelta)(nil).Type():
		return 0
	}
	return len(r.Payload)
}

func number(n uint64) string { return strconv.FormatUint(n, 10) }

// short cuts a text to at most n characters, and to its first line.
func short(text string, n int) string {
	text = strings.TrimSpace(text)
	if i := strings.IndexAny(text, "\r\n"); i >= 0 {
		text = text[:i]
	}
	text = strings.ToValidUTF8(text, "\ufffd")
	if utf8.RuneCountInString(text) <= n {
		return text
	}
	return string([]rune(text)[:n-1]) + "…"
}
