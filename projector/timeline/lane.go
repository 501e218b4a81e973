package timeline

import (
	"cmp"
	"slices"
)

// lane is what is known of a session beside its state.
type lane struct {
	id string
	// points are the records of the lane. They decide which part of a span is
	// truncated.
	points []point

	// The open spans. A truncated span is not open any more.
	run, step *Span
	stepID    string
	content   *Span            // the block of text, reasoning, custom events or outside chunks that continues
	arguments map[string]*Span // by call
	calls     map[string]*Span // the last execution of a call, over or not
	waits     map[string]*Span // the last approval of a call, over or not
	suspended *Span

	paused bool // a mark says so, and no later one says that it continues
	stop   string
}

// point is a record.
type point struct {
	seq   uint64
	at    int64
	chars int32
	// leaf is the span that the record is of, beside a run and a step.
	leaf *Span
}

// lane returns the lane of a session.
func (t *Timeline) lane(id string) *lane {
	l := t.byID[id]
	if l == nil {
		l = &lane{id: id, arguments: map[string]*Span{}, calls: map[string]*Span{}, waits: map[string]*Span{}}
		t.lanes = append(t.lanes, l)
		t.byID[id] = l
	}
	return l
}

// within returns the points with from <= sequence <= to.
func (l *lane) within(from, to uint64) []point {
	bySeq := func(p point, seq uint64) int { return cmp.Compare(p.seq, seq) }
	i, _ := slices.BinarySearchFunc(l.points, from, bySeq)
	j, _ := slices.BinarySearchFunc(l.points, to+1, bySeq) // to is not the largest number
	if i >= j {
		return nil
	}
	return l.points[i:j]
}

// view returns the lanes as they are shown.
func (t *Timeline) view() []Lane {
	below := map[string][]Lane{}
	for _, l := range t.lanes {
		shown := Lane{SessionID: l.id, ParentSessionID: t.parent(l.id)}
		if s := t.state.Get(l.id); s != nil {
			shown.AgentType = s.AgentType
			if s.Child != nil {
				shown.ParentToolCallID = s.Child.CallID
			}
		}
		below[shown.ParentSessionID] = append(below[shown.ParentSessionID], shown)
	}
	all := []Lane{}
	var add func(parent string, depth int)
	add = func(parent string, depth int) {
		for _, shown := range below[parent] {
			shown.Depth = depth
			all = append(all, shown)
			if shown.SessionID != "" { // of a foreign record: nothing hangs beneath nobody
				add(shown.SessionID, depth+1)
			}
		}
	}
	add("", 0)
	return all
}

// parent returns the session whose lane a lane hangs beneath, empty for the
// root. What an outside producer wrote hangs beneath the root, and so does what
// hangs on nothing in a damaged state.
func (t *Timeline) parent(id string) string {
	root := t.state.SessionID
	if id == root {
		return ""
	}
	above := func(id string) string {
		if s := t.state.Get(id); s != nil && s.Child != nil {
			return s.Child.ParentSessionID
		}
		return ""
	}
	parent := above(id)
	if parent == "" {
		return root
	}
	at := parent
	for range t.lanes {
		switch {
		case t.byID[at] == nil:
			return root
		case at == root:
			return parent
		}
		if at = above(at); at == "" { // an outside producer's
			return parent
		}
	}
	return root
}

// open begins a span with the record at seq.
func (t *Timeline) open(l *lane, kind Kind, seq uint64, label string) *Span {
	s := &Span{
		ID: number(seq), Lane: l.id, Kind: kind, From: seq, To: seq, Open: true, StartedAt: t.now, EndedAt: t.now,
		Label: short(label, MaxLabel), Status: StatusOpen, Updated: seq,
	}
	if state := t.state.Get(l.id); state != nil {
		s.Turn = state.TurnCount
		if turn := state.Turn; turn != nil {
			s.RunID, s.Turn = turn.RunID, turn.Number
			if turn.Step != nil {
				s.Step = turn.Step.Number
			}
		}
	}
	t.spans = append(t.spans, s)
	return s
}

// grow has a span continue up to the record at seq.
func (t *Timeline) grow(s *Span, seq uint64) {
	s.To, s.EndedAt, s.Updated = max(s.To, seq), max(s.EndedAt, t.now), seq
}

// end ends a span where it is.
func end(s *Span, status Status, seq uint64) {
	if s != nil && s.Open {
		s.Open, s.Status, s.Updated = false, status, seq
	}
}

// endContent ends the blocks that continue.
func (l *lane) endContent(status Status, seq uint64) {
	end(l.content, status, seq)
	l.content = nil
	for id, s := range l.arguments {
		end(s, status, seq)
		delete(l.arguments, id)
	}
}

func (t *Timeline) mark(l *lane, kind MarkKind, seq uint64, label string) *Mark {
	m := &Mark{Sequence: seq, Kind: kind, Lane: l.id, At: t.now, Label: short(label, MaxLabel), Updated: seq}
	t.marks = append(t.marks, m)
	return m
}

// nodeOf returns the node that drives the tree.
func (t *Timeline) nodeOf() string {
	if t.state.Claim == nil || t.state.Claim.Fences() {
		return ""
	}
	return t.state.Claim.Node
}
