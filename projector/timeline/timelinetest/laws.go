// Package timelinetest checks the laws of timelines for the tests of any package with a log.
package timelinetest

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
	"github.com/helixd/helixd/projector/timeline"
)

// Fold returns the timeline of the given records.
func Fold(records ...eventlog.Record) *timeline.Timeline {
	t := timeline.New()
	for _, r := range records {
		t.Apply(r)
	}
	return t
}

var (
	kinds = []timeline.Kind{
		timeline.KindRun, timeline.KindStep, timeline.KindUser, timeline.KindReasoning, timeline.KindText, timeline.KindTool,
		timeline.KindApproval, timeline.KindClientTool, timeline.KindChild, timeline.KindSuspended, timeline.KindCustom,
		timeline.KindOutside,
	}
	over = []timeline.Status{
		timeline.StatusDone, timeline.StatusFailed, timeline.StatusInterrupted, timeline.StatusDenied, timeline.StatusWaiting,
	}
	goesOn = []timeline.Status{timeline.StatusOpen, timeline.StatusWaiting, timeline.StatusInterrupted}
)

// Laws checks that the timeline of records, truncated ones too, is one: valid
// after each of them, true to the state's fold and to what is truncated, and the
// same however it is asked for.
func Laws(t require.TestingT, rnd *rand.Rand, records []eventlog.Record) {
	if h, ok := t.(interface{ Helper() }); ok {
		h.Helper()
	}
	whole, state := timeline.New(), new(projector.Tree)
	client := follower{spans: map[string]timeline.Span{}, marks: map[mark]timeline.Mark{}}
	for i, r := range records {
		whole.Apply(r)
		projector.Apply(state, r)
		if rnd.IntN(20) == 0 {
			before := encoded(t, whole.Since(0))
			whole.Apply(records[rnd.IntN(i+1)])
			require.Equal(t, before, encoded(t, whole.Since(0)), "a duplicate changes nothing")
		}
		if rnd.IntN(8) == 0 || i == len(records)-1 {
			v := whole.Since(0)
			valid(t, v, state)
			client.merge(t, whole.Since(client.head))
			client.equals(t, v)
		}
	}
	v := whole.Since(0)
	require.Equal(t, encoded(t, v), encoded(t, Fold(records...).Since(0)), "two folds are equal")
	require.Equal(t, len(state.Parked), len(slices.DeleteFunc(slices.Clone(v.Marks), func(m timeline.Mark) bool {
		return m.Kind != timeline.MarkParked
	})), "each parked record has a mark")
	tokens(t, v, records, state)
}

func encoded(t require.TestingT, v any) string {
	raw, err := json.Marshal(v)
	require.NoError(t, err)
	return string(raw)
}

// valid checks what is true of every timeline.
func valid(t require.TestingT, v timeline.View, state *projector.Tree) {
	require.Equal(t, []any{state.SessionID, state.Head, state.Status, state.StreamStatus, state.CreatedAt, state.UpdatedAt},
		[]any{v.SessionID, v.Head, v.Status, v.StreamStatus, v.StartedAt, v.UpdatedAt}, "as the state")
	lanes := map[string]int{}
	for i, l := range v.Lanes {
		_, twice := lanes[l.SessionID]
		require.False(t, twice, "lane %s is there twice", l.SessionID)
		lanes[l.SessionID] = l.Depth
		if l.ParentSessionID == "" {
			require.Zero(t, l.Depth)
			continue
		}
		parent, there := lanes[l.ParentSessionID]
		require.True(t, there, "lane %s (%d) comes before its parent", l.SessionID, i)
		require.Equal(t, parent+1, l.Depth)
	}
	ids := map[string]bool{}
	last := uint64(0)
	for _, s := range v.Spans {
		require.False(t, ids[s.ID], "span %s is there twice", s.ID)
		ids[s.ID] = true
		require.Contains(t, lanes, s.Lane)
		require.Contains(t, kinds, s.Kind)
		require.LessOrEqual(t, last, s.From, "spans come by their beginnings")
		last = s.From
		require.True(t, 0 < s.From && s.From <= s.To && s.To <= s.Updated && s.Updated <= v.Head, "%+v", s)
		require.LessOrEqual(t, s.StartedAt, s.EndedAt, "%+v", s)
		require.Positive(t, s.Records, "%+v", s)
		require.LessOrEqual(t, utf8.RuneCountInString(s.Label), timeline.MaxLabel)
		require.Equal(t, s.Truncated, s.TruncatedBy > 0)
		if s.Truncated {
			require.True(t, !s.Open && s.To < s.TruncatedBy, "%+v", s)
		}
		if s.Open {
			require.Contains(t, goesOn, s.Status, "%+v", s)
		} else {
			require.Contains(t, over, s.Status, "%+v", s)
		}
	}
	seen := map[mark]bool{}
	last = 0
	for _, m := range v.Marks {
		require.False(t, seen[mark{m.Sequence, m.Kind}], "mark %+v is there twice", m)
		seen[mark{m.Sequence, m.Kind}] = true
		require.Contains(t, lanes, m.Lane)
		require.True(t, last <= m.Sequence && m.Sequence <= m.Updated && m.Updated <= v.Head, "%+v", m)
		last = m.Sequence
	}
}

// mark is what names a mark.
type mark struct {
	sequence uint64
	kind     timeline.MarkKind
}

// follower is a client that asks for news.
type follower struct {
	head  uint64
	lanes []timeline.Lane
	spans map[string]timeline.Span
	marks map[mark]timeline.Mark
}

func (f *follower) merge(t require.TestingT, news timeline.View) {
	for _, s := range news.Spans {
		if was, known := f.spans[s.ID]; known {
			require.Equal(t, []any{was.Lane, was.From}, []any{s.Lane, s.From}, "an id stays")
		}
		f.spans[s.ID] = s
	}
	for _, m := range news.Marks {
		f.marks[mark{m.Sequence, m.Kind}] = m
	}
	f.head, f.lanes = news.Head, news.Lanes
}

func (f *follower) equals(t require.TestingT, v timeline.View) {
	require.Equal(t, v.Lanes, f.lanes)
	require.Len(t, f.spans, len(v.Spans))
	for _, s := range v.Spans {
		require.Equal(t, s, f.spans[s.ID], "changes are reported")
	}
	require.Len(t, f.marks, len(v.Marks))
	for _, m := range v.Marks {
		require.Equal(t, m, f.marks[mark{m.Sequence, m.Kind}], "changes are reported")
	}
}

// tokens checks that a model's text is in exactly one span, which is
// truncated if the record is.
func tokens(t require.TestingT, v timeline.View, records []eventlog.Record, state *projector.Tree) {
	parked := map[uint64]bool{}
	for _, p := range state.Parked {
		parked[p.Sequence] = true
	}
	chars := 0
	for _, r := range records {
		if r.Kind != eventlog.KindChunk || r.Type != (*eventlog.TextDelta)(nil).Type() || r.Call != "" || r.Run == "" || parked[r.Sequence] {
			continue
		}
		c, err := r.Chunk()
		require.NoError(t, err)
		chars += utf8.RuneCountInString(c.(*eventlog.TextDelta).Delta)
		var of []timeline.Span
		for _, s := range v.Spans {
			if s.Kind == timeline.KindText && s.CallID == "" && s.Lane == r.Agent && s.From <= r.Sequence && r.Sequence <= s.To {
				of = append(of, s)
			}
		}
		require.Len(t, of, 1, "text %d is in one span", r.Sequence)
		require.Equal(t, state.Dead.Covers(r), of[0].Truncated, "text %d, %+v", r.Sequence, of[0])
	}
	for _, s := range v.Spans {
		if s.Kind == timeline.KindText && s.CallID == "" {
			chars -= s.Chars
		}
	}
	require.Zero(t, chars, "all characters are counted once")
}
