package timeline_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector/timeline"
	"github.com/helixd/helixd/projector/timeline/timelinetest"
)

// A step that ends without a step_end says so, and continues as the same span if
// its model is asked again.
func TestADiscardedStepIsMarked(t *testing.T) {
	s := new(story)
	s.begin("s")
	s.claim("node-1", 1)
	s.step("s", "st1")
	s.text("s", "a", "b")
	discarded := s.chunk("s", "", func(b eventlog.Base) eventlog.Chunk {
		return &eventlog.StepDiscarded{RunID: "r1", StepID: "st1", Reason: eventlog.DiscardCrash, Base: b}
	})
	view := timelinetest.Fold(s.records...).Since(0)
	require.Equal(t, timeline.StatusInterrupted, spanOf(t, view, timeline.KindStep).Status)
	text := spanOf(t, view, timeline.KindText)
	require.False(t, text.Open)
	require.Equal(t, timeline.StatusInterrupted, text.Status)
	var marks []timeline.Mark
	for _, m := range view.Marks {
		if m.Kind == timeline.MarkDiscarded {
			marks = append(marks, m)
		}
	}
	require.Len(t, marks, 1)
	require.Equal(t, discarded, marks[0].Sequence)
	require.Equal(t, "step 1: crash", marks[0].Label)

	s.step("s", "st1")
	require.Equal(t, timeline.StatusOpen, spanOf(t, timelinetest.Fold(s.records...).Since(0), timeline.KindStep).Status)
}

// spanOf returns the only span of a kind.
func spanOf(t *testing.T, v timeline.View, kind timeline.Kind) (found timeline.Span) {
	t.Helper()
	n := 0
	for _, s := range v.Spans {
		if s.Kind == kind {
			found = s
			n++
		}
	}
	require.Equal(t, 1, n, kind)
	return found
}
