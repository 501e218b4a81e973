package timeline

import (
	"maps"
	"slices"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
)

// truncate applies a marker.
func (t *Timeline) truncate(l *lane, seq uint64, f *eventlog.Truncated, ranges []eventlog.Range) {
	if f.AfterSequence > 0 {
		t.mark(l, MarkRollback, seq, "back to "+number(f.AfterSequence))
	} else {
		t.mark(l, MarkTruncated, seq, string(f.Reason))
	}
	t.truncateRanges(seq, ranges)
	if f.AfterSequence > 0 {
		for _, l := range t.lanes {
			t.rolledBack(l, seq)
		}
	}
}

// truncateRanges applies the ranges of the marker at seq.
func (t *Timeline) truncateRanges(seq uint64, ranges []eventlog.Range) {
	for _, g := range ranges {
		l := t.byID[g.AgentID]
		if l == nil || len(l.within(g.From, g.To)) == 0 {
			continue
		}
		for _, s := range t.spans { // parts are appended, and truncated already or after the range
			if s.Lane == l.id && !s.Truncated && reaches(g, s) && s.From <= g.To && g.From <= last(s, seq) {
				t.truncateSpan(l, s, g, seq)
			}
		}
		if g.Scope.AnyCall() {
			for _, m := range t.marks {
				if m.Lane == l.id && !m.Truncated && g.From <= m.Sequence && m.Sequence <= g.To && mortal(m.Kind) {
					m.Truncated, m.TruncatedBy, m.Updated = true, seq, seq
				}
			}
		}
	}
}

// last is up to where a span reaches: an open one does so up to now.
func last(s *Span, seq uint64) uint64 {
	if s.Open {
		return max(s.To, seq-1)
	}
	return s.To
}

// mortal reports whether a rollback takes such a mark back: not what is true in
// any case.
func mortal(k MarkKind) bool {
	switch k {
	case MarkTruncated, MarkRollback, MarkClaimed, MarkTakeover, MarkForked, MarkParked:
		return false
	}
	return true
}

// reaches reports whether a range can truncate records of a span.
func reaches(g eventlog.Range, s *Span) bool {
	if g.Scope.AnyCall() {
		return true
	}
	switch s.Kind {
	case KindText, KindReasoning, KindCustom:
		return g.CallID == ""
	case KindOutside:
		return g.CallID == "" && g.Scope != eventlog.ScopeRun
	case KindTool, KindChild:
		return g.CallID == s.CallID
	}
	return false
}

// truncateSpan truncates the part of a span that is in a range. The parts before and
// after it become separate spans: the first one keeps the id.
func (t *Timeline) truncateSpan(l *lane, s *Span, g eventlog.Range, seq uint64) {
	if g.From <= s.From && last(s, seq) <= g.To {
		l.forget(s, nil)
		truncated(s, s.Open, seq)
		return
	}
	var before, inner, behind []int
	points := l.within(s.From, last(s, seq))
	for i, p := range points {
		switch {
		case p.leaf != s && s.leaf():
		case p.seq < g.From:
			before = append(before, i)
		case p.seq <= g.To:
			inner = append(inner, i)
		case s.leaf(): // after a rollback nothing continues
			behind = append(behind, i)
		}
	}
	if len(inner) == 0 {
		return
	}
	was, first := *s, s
	take := func(which []int) *Span {
		if len(which) == 0 {
			return nil
		}
		part := first
		if first = nil; part == nil {
			part = new(Span)
			*part = was
			from := points[which[0]]
			part.ID, part.From, part.StartedAt = was.ID+"."+number(from.seq), from.seq, max(was.StartedAt, from.at)
			t.spans = append(t.spans, part)
		}
		part.cut(points, which)
		part.Updated = seq
		if was.leaf() {
			for _, i := range which {
				points[i].leaf = part
			}
		}
		return part
	}
	kept := take(before)
	if kept == nil && was.From < g.From { // it began with another lane's record
		kept, first = first, nil
		kept.To, kept.EndedAt, kept.Records, kept.Chars, kept.Updated = was.From, was.StartedAt, 1, 0, seq
	}
	truncated(take(inner), was.Open || len(behind) > 0, seq)
	rest := take(behind)
	if kept != nil {
		kept.Open, kept.Status = false, StatusInterrupted
		if k := kept.Kind; k == KindText || k == KindReasoning || k == KindCustom || k == KindOutside || k == KindSuspended {
			kept.Status = StatusDone
		}
	}
	if rest == nil {
		rest = kept
	}
	l.forget(s, rest)
}

// leaf reports whether the span has its own records.
func (s *Span) leaf() bool { return s.Kind != KindRun && s.Kind != KindStep && s.Kind != KindSuspended }

// cut makes the span one of only some of its records.
func (s *Span) cut(points []point, which []int) {
	to := points[which[len(which)-1]]
	s.To, s.EndedAt, s.Records, s.Chars = to.seq, max(s.StartedAt, to.at), len(which), 0
	for _, i := range which {
		s.Chars += int(points[i].chars)
	}
}

func truncated(s *Span, broken bool, seq uint64) {
	s.Open, s.Truncated, s.TruncatedBy, s.Updated = false, true, seq, seq
	if broken {
		s.Status = StatusInterrupted
	}
}

// forget puts what is left of a span, or nothing, where it was the one that
// continues. A call keeps its own, whether that continues or not.
func (l *lane) forget(s, left *Span) {
	open := left
	if left != nil && !left.Open {
		open = nil
	}
	for _, at := range []**Span{&l.run, &l.step, &l.content, &l.suspended} {
		if *at == s {
			*at = open
		}
	}
	if l.step == nil {
		l.stepID = ""
	}
	for id, a := range l.arguments {
		switch {
		case a != s:
		case open == nil:
			delete(l.arguments, id)
		default:
			l.arguments[id] = open
		}
	}
	for _, calls := range []map[string]*Span{l.calls, l.waits} {
		if calls[s.CallID] != s {
			continue
		}
		if calls[s.CallID] = left; left == nil {
			delete(calls, s.CallID)
		}
	}
}

// rolledBack follows the state back: nothing is driven, and calls that waited there wait
// again.
func (t *Timeline) rolledBack(l *lane, seq uint64) {
	l.paused, l.stop = false, ""
	l.endContent(StatusInterrupted, seq)
	end(l.run, StatusInterrupted, seq)
	end(l.step, StatusInterrupted, seq)
	l.run, l.step, l.stepID = nil, nil, ""
	pending := map[string]*projector.Call{}
	if state := t.state.Get(l.id); state != nil {
		for c := range state.OpenCalls() {
			if c.Pending != nil && !c.Done && (c.Answer == nil || c.Pending.Kind == fact.PendingChild) {
				pending[c.ID] = c
			}
		}
	}
	for _, calls := range []map[string]*Span{l.calls, l.waits} {
		for id, s := range calls {
			if _, waits := pending[id]; waits && s.Open && s.Kind != KindTool {
				delete(pending, id)
				continue
			}
			end(s, StatusInterrupted, seq)
			delete(calls, id)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(pending)) {
		t.waiting(l, seq, pending[id])
	}
	t.suspend(l, seq)
}
