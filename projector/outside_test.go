package projector_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
)

// TestRecordsOfOutsideProducersAreNoOrphans: they were acknowledged to a producer that
// will not write them again.
func TestRecordsOfOutsideProducersAreNoOrphans(t *testing.T) {
	step := "st"
	own := func(text string) eventlog.Entry { return chunk(&eventlog.TextDelta{Delta: text, Base: base("s")}, "") }
	foreign := own("foreign")
	foreign.Run = ""
	records := numbered(append(opening(), chunk(&eventlog.StepStart{StepID: &step, Base: base("s")}, ""), own("own "), foreign, own("words"))...)
	state := projector.Fold(records...)
	require.Equal(t, "own words", string(state.Turn.Step.Partial[0].Text))
	orphans := state.Orphans()
	require.Equal(t, []eventlog.Range{{AgentID: "s", From: 8, To: 14}}, orphans)
	for _, r := range records[3:] {
		require.Equal(t, r.Run != "", orphans[0].Covers(r))
	}
}
